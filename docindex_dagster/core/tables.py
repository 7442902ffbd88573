"""The intermediate tables: one Parquet file per asset and source, replaced as a whole.

A table's data version is a hash of its content; a file whose version stays the same is not written again. Tables of
files are sorted by path, so that the rows of a few files can be replaced without reading the others.

Readers map Arrow IPC files into memory. These hold the values of their rows and no other data.
"""

import os
import shutil
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from docindex_dagster.core import files
from docindex_dagster.core.files import replacing, reporting_full_disk
from docindex_dagster.core.hashing import digest, digest_parts

_OURS = b"docindex."
# The data version of a table.
VERSION = b"docindex.data_version"
# When the run began that made a table, nanoseconds since 1970: the one value that does not come from its content.
STARTED_NS = b"docindex.started_ns"
_ROWS_WORTH_THREADS = 1000
# Of a file's stamp: inode, bytes, and time of its content.
_KEPT_BY_RENAMING = 3
_MOST_RECENT_BYTES = 256 << 20  # all tables of a source of 20,000 chunks
_MOST_RECENT = 64  # tables: an empty one of many columns takes memory, too
# A table is read as a whole, for which neither dictionaries nor statistics are of use; they take a fifth of the time.
_PLAIN = {"use_dictionary": False, "write_statistics": False}
_COMPRESSED = {"compression": "zstd", "compression_level": 1}
_LARGE = 16 << 20  # bytes of a column


def write_arrow(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write batches to a file, as compact copies.

    Arrow pads each buffer to 64 bytes with whatever follows the values in memory. For a slice of a table, that is the
    text of other rows, which may have been erased. Behind a compact copy, Arrow writes zeros.
    """
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        for batch in batches:
            out.write_batch(pa.RecordBatch.from_arrays([_compact(column) for column in batch.columns], schema=schema))


def read_arrow(path: Path) -> pa.Table:
    """Map a file into memory.

    Raises OSError or pa.ArrowException where it is missing or damaged.
    """
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _compact(array: pa.Array) -> pa.Array:
    """Return an array whose buffers hold its values alone. Vectors, which are large, are copied only if sliced."""
    return array if array.nbytes == array.get_total_buffer_size() else pa.concat_arrays([array])


class _Recent:
    """The tables that were used last, by their files, with stamps of these. Threads share them."""

    def __init__(self) -> None:
        self._tables: OrderedDict[Path, tuple[tuple[int, ...] | None, pa.Table, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, path: Path, stamp: tuple[int, ...] | None) -> pa.Table | None:
        """The table of a file, as it was when it had this stamp."""
        with self._lock:
            known, table, _ = self._tables.get(path, (None, None, 0))
            if table is None or known != stamp:
                return None
            self._tables.move_to_end(path)
            return table

    def put(self, path: Path, stamp: tuple[int, ...] | None, table: pa.Table) -> None:
        """Keep a table, and let go of those that were used longest ago where all are too large together."""
        size = table.nbytes
        with self._lock:
            self._bytes += size - self._tables.pop(path, (None, None, 0))[2]
            self._tables[path] = stamp, table, size
            while self._bytes > _MOST_RECENT_BYTES or len(self._tables) > _MOST_RECENT:
                self._bytes -= self._tables.popitem(last=False)[1][2]


_recent = _Recent()


def data_version(table: pa.Table) -> str:
    """Hash the values of a table in row order; how they lie in memory, and metadata, play no part."""
    return digest_parts(*(part for name in table.column_names for part in (name, _values_version(table[name]))))


def _values_version(column: pa.ChunkedArray) -> str:
    if pa.types.is_fixed_size_list(column.type):
        return digest(column.combine_chunks().flatten().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_string(column.type):
        return _texts_version(column)
    return digest(repr(column.to_pylist()).encode("utf-8", "surrogatepass"))


def _texts_version(column: pa.ChunkedArray) -> str:
    """Hash texts by their lengths and bytes: an object a text takes ten times as long."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(column), -1), np.int32)  # no text is not an empty one
    return digest(b"".join([lengths.tobytes(), *map(_bytes, pc.fill_null(column, "").chunks)]))


def _bytes(texts: pa.StringArray) -> memoryview:
    """The bytes of texts, one behind the other."""
    _, ends, data = texts.buffers()
    if data is None or not len(texts):
        return memoryview(b"")
    begin, end = np.frombuffer(ends, np.int32)[[texts.offset, texts.offset + len(texts)]].tolist()
    return memoryview(data)[begin:end]


def column_version(table: pa.Table, column: str) -> str:
    """Hash one string column in row order: the data version of a table whose rows carry hashes of their own."""
    return digest_parts(*table[column].to_pylist())


def stamp(table: pa.Table, version: str) -> pa.Table:
    """The table with its data version in its schema's metadata."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), VERSION: version.encode()})


def stamped_version(metadata: dict[bytes, bytes] | None) -> str | None:
    """The data version that `stamp` put there."""
    version = (metadata or {}).get(VERSION)
    return version.decode() if version else None


def read(source: Path | pa.NativeFile) -> pa.Table | None:
    """Read a table, or return None where there is none or it is damaged: it is then made anew.

    The last ones that were read or written stay in memory, 64 of them or 256 MiB: a run reads each several times, and
    the next run of the process goes on from them.

    Raises:
        PermissionError: the file may not be read.
    """
    if not isinstance(source, Path):
        return _read(source)
    stamp = files.stamp(source)
    table = _recent.get(source, stamp)
    if table is None:
        table = _read(source)
        if table is not None and stamp == files.stamp(source):
            _recent.put(source, stamp, table)
    return table


def _read(source: Path | pa.NativeFile) -> pa.Table | None:
    try:
        with pq.ParquetFile(source) as file:
            return file.read(use_threads=file.metadata.num_rows > _ROWS_WORTH_THREADS)
    except PermissionError:
        raise
    except (OSError, pa.ArrowException):
        return None


def write(path: Path, table: pa.Table) -> bool:
    """Write a stamped table unless the file holds the same version and metadata, whole; says whether it wrote."""
    about = _about(table.schema.metadata)
    if VERSION in about and about == _about(_metadata(path)) and read(path) is not None:
        return False
    # Vectors do not compress; trying to takes as long again as all the rest.
    has_vectors = any(pa.types.is_fixed_size_list(field.type) for field in table.schema)
    compression = {"compression": "none"} if has_vectors else _COMPRESSED
    with replacing(path) as temporary:
        pq.write_table(table, temporary, **_PLAIN, **compression)
        written = files.stamp(temporary)
    found = files.stamp(path)  # of another file, if another process has replaced it since
    if written and found and written[:_KEPT_BY_RENAMING] == found[:_KEPT_BY_RENAMING]:
        _recent.put(path, found, table)
    return True


def copy(source: Path, path: Path, version: str) -> bool:
    """Let a file be a copy of that of a table of this version; False where that is another one, or none.

    A copy takes a tenth of the time that it takes to write the rows. A file that is one already stays.
    """
    if metadata_value(source, VERSION) != version:
        return False
    if metadata_value(path, VERSION) != version or _read(path) is None:
        with replacing(path) as temporary:
            shutil.copyfile(source, temporary)
    return True


def write_part(folder: Path, table: pa.Table) -> None:
    """Write a table into a folder under a name of its own, as an Arrow file, which takes a tenth of Parquet's time.

    Several threads may do so at once. It outlives the process, but is not synced: a power cut may leave anything there.
    """
    path = folder / f"{uuid4().hex}.arrow"
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with reporting_full_disk(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            write_arrow(temporary, table.to_batches(), table.schema)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def read_part(path: Path) -> pa.Table | None:
    """What `write_part` wrote; None where it is gone or damaged."""
    try:
        table = read_arrow(path)
        table.validate(full=True)
    except (OSError, pa.ArrowException):
        return None
    return table


def row_count(path: Path) -> int:
    """The rows of a table, by its footer; 0 where there is none or it is damaged."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return 0


def metadata_value(path: Path, key: bytes) -> str | None:
    """One value of the metadata of a table's schema; None where there is no such table or value."""
    value = _metadata(path).get(key)
    return value.decode() if value else None


def _metadata(path: Path) -> dict[bytes, bytes]:
    try:
        return dict(pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return {}


def _about(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
    """What the metadata say of a table's content."""
    return {key: value for key, value in (metadata or {}).items() if key.startswith(_OURS) and key != STARTED_NS}


def joined_by_path(parts: list[pa.Table]) -> pa.Table:
    """One table of all, sorted by path, the rows of a file in the order in which they were found.

    The list is emptied, and each column is let go of when it is copied: large tables are not in memory twice.
    """
    table = pa.concat_tables(parts)
    parts.clear()
    order, schema, columns = _order(table["path"]), table.schema, []
    while table.num_columns:
        column = table.column(0)
        table = table.remove_column(0)
        columns.append(column.combine_chunks() if order is None else column.take(order).combine_chunks())
        if column.nbytes > _LARGE:
            del column
            pa.default_memory_pool().release_unused()  # Arrow's allocator holds on to it
    return pa.Table.from_arrays(columns, schema=schema)


def _order(paths: pa.ChunkedArray) -> pa.Array | None:
    """The rows of paths, sorted by these; None where they are sorted."""
    encoded = paths.combine_chunks().dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    places = ranks[encoded.indices.to_numpy()]
    return None if np.all(places[1:] >= places[:-1]) else pa.array(np.argsort(places, kind="stable"))


def replaced(table: pa.Table, paths: Sequence[str], new: pa.Table) -> pa.Table:
    """A table with new rows of some files, of which it has the old ones, or none.

    Args:
        table: sorted by path.
        paths: of these files, sorted.
        new: their new rows, sorted by path; none of files that are gone.
    """
    parts: list[pa.Table] = []
    end = 0
    for path in paths:
        first, last = _span(table, path, end)
        parts += [table.slice(end, first - end), _rows_of(new, path)]
        end = last
    return pa.concat_tables([*parts, table.slice(end)])


def _rows_of(table: pa.Table, path: str) -> pa.Table:
    begin, end = _span(table, path, 0)
    return table.slice(begin, end - begin)


def _span(table: pa.Table, path: str, start: int) -> tuple[int, int]:
    """Where the rows of a path begin and end, from some row on."""
    begin = bisect_left(table["path"], path, start, key=pa.StringScalar.as_py)
    return begin, bisect_right(table["path"], path, begin, key=pa.StringScalar.as_py)
