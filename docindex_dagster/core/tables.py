"""Intermediate tables: one Parquet file per asset and source, always replaced completely.

A table's data version is a hash of its content; a file whose version is unchanged is not rewritten. Tables of files
are sorted by path, so the rows of a few files can be replaced without reading the others.

Readers map Arrow IPC files into memory. These files contain the values of their rows and no other data.
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
from docindex_dagster.core.files import atomic_write, reporting_full_disk
from docindex_dagster.core.hashing import digest, digest_parts

_OURS = b"docindex."
# The data version of a table.
VERSION = b"docindex.data_version"
# Start of the run that wrote the table, in nanoseconds since 1970: the only value not derived from its content.
STARTED_NS = b"docindex.started_ns"
_MIN_ROWS_FOR_THREADS = 1000
# The leading values of a file's stamp: inode, size and mtime.
_KEPT_BY_RENAMING = 3
_MAX_CACHED_BYTES = 256 << 20  # fits all tables of a source with 20,000 chunks
_MAX_CACHED_TABLES = 64  # an empty table with many columns takes memory, too
# Tables are always read completely, so dictionaries and statistics are useless; they take a fifth of the time.
_PLAIN = {"use_dictionary": False, "write_statistics": False}
_COMPRESSED = {"compression": "zstd", "compression_level": 1}
_LARGE = 16 << 20  # bytes in a column


def write_arrow(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write compact copies of batches to a file.

    Arrow pads each buffer to 64 bytes with whatever follows the values in memory. For a slice of a table, that is text
    of other rows, which may have been erased. A compact copy is padded with zeros.
    """
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        for batch in batches:
            out.write_batch(pa.RecordBatch.from_arrays([_compact(column) for column in batch.columns], schema=schema))


def read_arrow(path: Path) -> pa.Table:
    """Map a file into memory.

    Raises:
        OSError: The file is missing or damaged.
        pa.ArrowException: The file is damaged.
    """
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _compact(array: pa.Array) -> pa.Array:
    """Return an array whose buffers contain only its values. Vectors, which are large, are copied only if sliced."""
    return array if array.nbytes == array.get_total_buffer_size() else pa.concat_arrays([array])


class _Recent:
    """Thread-safe LRU cache of tables, keyed by file and validated by its stamp."""

    def __init__(self) -> None:
        self._tables: OrderedDict[Path, tuple[tuple[int, ...] | None, pa.Table, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, path: Path, stamp: tuple[int, ...] | None) -> pa.Table | None:
        """Return the cached table of a file if its stamp matches."""
        with self._lock:
            cached, table, _ = self._tables.get(path, (None, None, 0))
            if table is None or cached != stamp:
                return None
            self._tables.move_to_end(path)
            return table

    def put(self, path: Path, stamp: tuple[int, ...] | None, table: pa.Table) -> None:
        """Cache a table, and evict the least recently used ones if the cache is too large."""
        size = table.nbytes
        with self._lock:
            self._bytes += size - self._tables.pop(path, (None, None, 0))[2]
            self._tables[path] = stamp, table, size
            while self._bytes > _MAX_CACHED_BYTES or len(self._tables) > _MAX_CACHED_TABLES:
                self._bytes -= self._tables.popitem(last=False)[1][2]


_recent = _Recent()


def data_version(table: pa.Table) -> str:
    """Hash the values of a table in row order, independently of their memory layout and of metadata."""
    return digest_parts(*(part for name in table.column_names for part in (name, _values_version(table[name]))))


def _values_version(column: pa.ChunkedArray) -> str:
    if pa.types.is_fixed_size_list(column.type):
        return digest(column.combine_chunks().flatten().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_string(column.type):
        return _texts_version(column)
    return digest(repr(column.to_pylist()).encode("utf-8", "surrogatepass"))


def _texts_version(column: pa.ChunkedArray) -> str:
    """Hash texts through their lengths and bytes; a Python object per text would take ten times as long."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(column), -1), np.int32)  # tells null from an empty text
    return digest(b"".join([lengths.tobytes(), *map(_bytes, pc.fill_null(column, "").chunks)]))


def _bytes(texts: pa.StringArray) -> memoryview:
    """Return the concatenated bytes of texts."""
    _, ends, data = texts.buffers()
    if data is None or not len(texts):
        return memoryview(b"")
    begin, end = np.frombuffer(ends, np.int32)[[texts.offset, texts.offset + len(texts)]].tolist()
    return memoryview(data)[begin:end]


def column_version(table: pa.Table, column: str) -> str:
    """Hash one string column in row order: the data version of a table whose rows contain their own hashes."""
    return digest_parts(*table[column].to_pylist())


def stamp(table: pa.Table, version: str) -> pa.Table:
    """Return the table with its data version in the schema metadata."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), VERSION: version.encode()})


def stamped_version(metadata: dict[bytes, bytes] | None) -> str | None:
    """Return the data version that `stamp` stored."""
    version = (metadata or {}).get(VERSION)
    return version.decode() if version else None


def read(source: Path | pa.NativeFile) -> pa.Table | None:
    """Read a table, or return None if it is missing or damaged, in which case the caller rebuilds it.

    Recently read or written tables are cached, up to 64 of them or 256 MiB: a run reads each several times, and so does
    the next run of the process.

    Raises:
        PermissionError: The file is not readable.
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
            return file.read(use_threads=file.metadata.num_rows > _MIN_ROWS_FOR_THREADS)
    except PermissionError:
        raise
    except (OSError, pa.ArrowException):
        return None


def write(path: Path, table: pa.Table) -> bool:
    """Write a stamped table unless the file already has the same version and metadata; return whether it wrote."""
    new_metadata = _content_metadata(table.schema.metadata)
    if VERSION in new_metadata and new_metadata == _content_metadata(_metadata(path)) and read(path) is not None:
        return False
    # Vectors do not compress, and trying doubles the time.
    has_vectors = any(pa.types.is_fixed_size_list(field.type) for field in table.schema)
    compression = {"compression": "none"} if has_vectors else _COMPRESSED
    with atomic_write(path) as temporary:
        pq.write_table(table, temporary, **_PLAIN, **compression)
        written = files.stamp(temporary)
    found = files.stamp(path)  # differs if another process has replaced the file since
    if written and found and written[:_KEPT_BY_RENAMING] == found[:_KEPT_BY_RENAMING]:
        _recent.put(path, found, table)
    return True


def copy(source: Path, path: Path, version: str) -> bool:
    """Copy a table's file to `path`; return False if the source file is missing or has another version.

    A copy takes a tenth of the time of writing the rows. If `path` already has this version, it stays unchanged.
    """
    if metadata_value(source, VERSION) != version:
        return False
    if metadata_value(path, VERSION) != version or _read(path) is None:
        with atomic_write(path) as temporary:
            shutil.copyfile(source, temporary)
    return True


def write_part(folder: Path, table: pa.Table) -> None:
    """Write a table to a folder under a unique name, as an Arrow file, which takes a tenth of the time of Parquet.

    Thread-safe. The file outlives the process but is not synced, so its content is undefined after a power failure.
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
    """Read a table from `write_part`; return None if it is missing or damaged."""
    try:
        table = read_arrow(path)
        table.validate(full=True)
    except (OSError, pa.ArrowException):
        return None
    return table


def row_count(path: Path) -> int:
    """Return the number of rows from a table's footer; 0 if the table is missing or damaged."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return 0


def metadata_value(path: Path, key: bytes) -> str | None:
    """Return a value from a table's schema metadata; None if the table or value does not exist."""
    value = _metadata(path).get(key)
    return value.decode() if value else None


def _metadata(path: Path) -> dict[bytes, bytes]:
    try:
        return dict(pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return {}


def _content_metadata(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Return the metadata that depends on a table's content."""
    return {key: value for key, value in (metadata or {}).items() if key.startswith(_OURS) and key != STARTED_NS}


def concat_sorted_by_path(parts: list[pa.Table]) -> pa.Table:
    """Concatenate tables and sort the rows by path, stably.

    Empties the list, and frees each column after copying it, so large tables are not in memory twice.
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
    """Return the row order that sorts the paths; None if they are sorted."""
    encoded = paths.combine_chunks().dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    row_ranks = ranks[encoded.indices.to_numpy()]
    return None if np.all(row_ranks[1:] >= row_ranks[:-1]) else pa.array(np.argsort(row_ranks, kind="stable"))


def replace_rows(table: pa.Table, paths: Sequence[str], new: pa.Table) -> pa.Table:
    """Return a table in which the rows of some files are replaced.

    Args:
        table: The table, sorted by path.
        paths: The paths of the files, sorted.
        new: The new rows of the files, sorted by path; without rows for deleted files.
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
    """Return the start and end of a path's rows, searching from row `start`."""
    begin = bisect_left(table["path"], path, start, key=pa.StringScalar.as_py)
    return begin, bisect_right(table["path"], path, begin, key=pa.StringScalar.as_py)
