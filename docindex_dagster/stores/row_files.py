"""Row files: the rows of each source with texts and vectors in separate files, so that searches need not open LanceDB.

LanceDB takes a second to load. The first file of a source has all its rows; each later file has the rows that a
publication wrote, and the ids that it deleted. An edit thus costs only what it changed, until there are many files,
which are then merged. A generation names them, oldest first. If a file is missing or unreadable, the rows come from the
LanceDB table until the next run of the source rewrites them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.files import atomic_write, stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.stores import packs
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.matrix import BYTES
from docindex_dagster.stores.parts import COLUMNS, SIGNS, VECTOR, Chosen, Held, Part, Parts, live_rows

_VERSION_DIGITS = 16
_POSITION_COLUMNS = ("chunk_index", "content_hash", "start_line", "start_byte", "end_byte")
COLUMNS_OF_FILES = ("chunk_id", *COLUMNS, *_POSITION_COLUMNS, "text")
"""The columns of chunks, in addition to the vectors and their sign bits."""
# A row without a text marks a deleted chunk, so every column but the id is nullable.
_SCHEMA = pa.schema([CHUNKS.field(name).with_nullable(name != "chunk_id") for name in COLUMNS_OF_FILES])
ROWS_A_BATCH = 32_768
_SMALL = 1_000  # rows: below this, all rows are rewritten each time, which takes a few milliseconds
_MAX_LATER = 8  # files
_MAX_CHANGED_RATIO = 4  # later files may have at most a quarter of the rows
_DAMAGE = (OSError, pa.ArrowException, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Before:
    """The state a publication continues: the names of a source's files, and how its new rows differ from theirs."""

    names: Sequence[str]
    change: Difference


def write(
    layout: Layout, source: str, version: str, rows: pa.Table, before: Before | None = None, *, rewrite: bool = False
) -> tuple[str, ...]:
    """Write the rows that a publication changes, or all rows if that is better; return the names of the files.

    Args:
        layout: of the home with the index.
        source: its key.
        version: of the rows; equal rows have equal versions.
        rows: all chunks sorted by path and chunk_index, with their vectors.
        before: the files of the previous generation; None if unknown.
        rewrite: whether to rewrite existing files regardless of their names.
    """
    if before is not None and before.names and not rewrite and rows.num_rows > _SMALL:
        later = _write_later(layout, source, version, rows, before)
        if later:
            return later
    name = _name(source, version)
    if rewrite or _read(layout.rows / name) is None:
        write_tables(layout.rows / name, [_with_signs(rows)])
    return (name,)


def _write_later(layout: Layout, source: str, version: str, rows: pa.Table, before: Before) -> tuple[str, ...]:
    """Write the changed rows to an additional file; return no names if rewriting all rows is better."""
    held = [_read(layout.rows / name) for name in before.names]
    if any(table is None for table in held):
        return ()
    first, *others = before.names
    if before.change.is_empty:
        return tuple(before.names)
    changed = _with_signs(rows.filter(before.change.is_new))
    changed = pa.concat_tables([changed, _tombstones(before.change.deletes, changed.schema)])
    later = [table for table in held[1:] if table is not None]
    if (changed.num_rows + sum(table.num_rows for table in later)) * _MAX_CHANGED_RATIO > rows.num_rows:
        return ()
    name = _name(source, version, *before.names)
    if len(others) < _MAX_LATER:
        write_tables(layout.rows / name, [changed])
        return (*before.names, name)
    write_tables(layout.rows / name, [_newest([*later, changed])])
    return first, name


def _without_signs(rows: pa.Table) -> pa.Table:
    """Return the columns of row files except sign bits; columns missing in tables of older versions are null."""
    for name in _SCHEMA.names:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, _SCHEMA.field(name).type))
    vectors = rows[VECTOR].combine_chunks()
    size = vectors.type.list_size
    values = vectors.values.slice(vectors.offset * size, len(vectors) * size)
    plain = rows.select(_SCHEMA.names).replace_schema_metadata(None).cast(_SCHEMA)
    return plain.append_column(VECTOR, pa.FixedSizeListArray.from_arrays(values, size))


def _with_signs(rows: pa.Table) -> pa.Table:
    """Return the columns of row files, from chunks with their vectors."""
    found = _without_signs(rows).combine_chunks()
    sign_bits = np.concatenate(
        [np.empty((0, BYTES // 8), np.uint64), *(Part(part).signs for part in found.to_batches())]
    )
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(BYTES), found.num_rows, [None, pa.py_buffer(sign_bits)])
    return found.append_column(SIGNS, column)


def _tombstones(chunk_ids: pa.Array, schema: pa.Schema) -> pa.Table:
    nulls = {field.name: pa.nulls(len(chunk_ids), field.type) for field in schema}
    return pa.table(nulls | {"chunk_id": chunk_ids}, schema=schema)


def _newest(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the last row of each chunk, including deletions, sorted by path and chunk_index."""
    found: list[pa.Table] = []
    newer = pa.array([], pa.string())
    for table in reversed(parts):
        found.append(table.filter(pc.invert(pc.is_in(table["chunk_id"], newer))))
        newer = pa.concat_arrays([newer, *table["chunk_id"].chunks])
    return pa.concat_tables(found).sort_by([("path", "ascending"), ("chunk_index", "ascending")])


def open_parts(
    layout: Layout,
    generation: Generation,
    known: Mapping[str, tuple[Part, ...]],
    from_table: Callable[[str], Iterable[pa.Table]],
) -> Parts:
    """Map the rows of a generation without reading them; they remain available if the files are removed.

    Args:
        layout: of the home with the index.
        generation: the generation.
        known: parts of files that were mapped before.
        from_table: returns the rows of a source with incomplete files.
    """
    by_file: dict[str, tuple[Part, ...]] = {}

    def parts_of(path: Path) -> tuple[Part, ...]:
        name = f"{path.name} {stamp(path)}"  # a repair rewrites a file under the same name
        if name not in by_file:
            by_file[name] = known.get(name) or _parts(path) or ()
        return by_file[name]

    held: list[Held] = []
    remaining = dict(generation.sources)
    for pack, keys in packs.sources_by_pack(generation).items():
        parts = parts_of(packs.rows_file(layout.packs, pack))
        counts = Counter(key for part in parts for key in part.batch["source"].to_pylist())
        complete = [key for key in keys if counts[key] == remaining[key].chunks]
        masks = (np.asarray(pc.is_in(part.batch["source"], pa.array(complete, pa.string()))) for part in parts)
        held += [(part, None if mask.all() else mask) for part, mask in zip(parts, masks, strict=True)]
        remaining = {key: source for key, source in remaining.items() if key not in complete}
    for key, source in remaining.items():
        found = _newest_rows([parts_of(layout.rows / name) for name in source.rows], source.chunks)
        if found is None:
            name = f"{key}/{source.version}"
            by_file[name] = known.get(name) or tuple(
                Part(batch) for rows in from_table(key) for batch in _without_signs(rows).combine_chunks().to_batches()
            )
            found = [(part, None) for part in by_file[name]]
        held += found
    return Parts(held, by_file)


def _newest_rows(files: Sequence[tuple[Part, ...]], chunks: int) -> list[Held] | None:
    """Return the parts of files, newest first, with masks of current rows; None if their number is not `chunks`."""
    found: list[Held] = []
    newer = pa.array([], pa.string())
    for parts in reversed(files):
        found += [(part, np.asarray(pc.invert(pc.is_in(part.ids, newer))) if len(newer) else None) for part in parts]
        newer = pa.concat_arrays([newer, *(part.ids for part in parts)]) if len(files) > 1 else newer
    return found if sum(len(live_rows(part.rows, live)) for part, live in found) == chunks else None


def disagreement(rows: Chosen, batches: Iterable[pa.RecordBatch]) -> str:
    """Return an empty string if both have the same texts by id, or else a message with the first chunk that differs."""
    ids, texts = (
        pa.concat_arrays([pa.array([], kind), *(part.batch[name].take(pa.array(at)).cast(kind) for part, at in rows)])
        for name, kind in (("chunk_id", pa.string()), ("text", pa.large_string()))
    )
    for batch in batches:
        held = texts.take(pc.index_in(batch["chunk_id"], ids))
        is_same = pc.fill_null(pc.equal(held, batch["text"].cast(pa.large_string())), fill_value=False)
        if not pc.all(is_same).as_py():
            return f"the text of chunk {batch['chunk_id'].filter(pc.invert(is_same))[0]} differs"
    return ""


def is_complete(layout: Layout, key: str, source: PublishedSource) -> bool:
    """Return whether the files of a source, or its pack, have all its rows."""
    if source.pack is None:
        return _newest_rows([_parts(layout.rows / name) or () for name in source.rows], source.chunks) is not None
    parts = _parts(packs.rows_file(layout.packs, source.pack)) or ()
    return sum(pc.sum(pc.equal(part.batch["source"], key)).as_py() or 0 for part in parts) == source.chunks


def merge_row_files(layout: Layout, key: str, source: PublishedSource) -> tuple[str, ...]:
    """Merge the rows of a source into a single file; return the names of its files, empty if some are missing."""
    if len(source.rows) <= 1:
        return source.rows
    found = _newest_rows([_parts(layout.rows / name) or () for name in source.rows], source.chunks)
    if found is None:
        return ()
    name = _name(key, source.version)
    write_tables(layout.rows / name, tables_of([(part, live_rows(part.rows, live)) for part, live in found]))
    return (name,)


def tables_of(rows: Chosen) -> Iterator[pa.Table]:
    """Yield rows in the format of row files, each table sorted by path and chunk_index."""
    for part, positions in rows:
        table = pa.Table.from_batches([part.batch])
        selected = table if len(positions) == table.num_rows else table.take(pa.array(positions))
        yield selected if SIGNS in selected.column_names else _with_signs(selected)


def batches_on_disk(layout: Layout, names: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, or of the named files, including deleted chunks."""
    for file in (*layout.entries(layout.rows), *layout.entries(layout.packs)):
        table = _read(file) if names is None or file.name in names else None
        if table is not None:
            yield from table.to_batches()


def names(generation: Generation) -> set[str]:
    """Return the names of the row files of a generation outside packs."""
    return {name for source in generation.sources.values() for name in source.rows}


def write_tables(path: Path, parts: Iterable[pa.Table]) -> None:
    """Write sorted tables so that no batch contains rows of two tables."""
    stored = iter(parts)
    first = next(stored)
    with atomic_write(path) as temporary:
        batches = (
            batch
            for table in chain([first], stored)
            for batch in table.combine_chunks().to_batches(max_chunksize=ROWS_A_BATCH)
        )
        tables.write_arrow(temporary, batches, first.schema)


def _parts(path: Path) -> tuple[Part, ...] | None:
    table = _read(path)
    return None if table is None else tuple(map(Part, table.to_batches()))


def _read(path: Path) -> pa.Table | None:
    try:
        table = tables.read_arrow(path)
        table.validate()
        has_rows = table.select(_SCHEMA.names).schema.equals(_SCHEMA)
        has_vectors = pa.types.is_float16(table.schema.field(VECTOR).type.value_type)
        return table if has_rows and has_vectors and table.schema.field(SIGNS).type == pa.binary(BYTES) else None
    except (*_DAMAGE, AttributeError):
        return None


def _name(source: str, version: str, *before: str) -> str:
    """Return a file name from the version of the rows and, for partial files, from the files it continues."""
    return f"{file_name(source)}.{digest_parts(version, *before)[:_VERSION_DIGITS]}.arrow"
