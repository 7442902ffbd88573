"""The rows of each source, with their texts and vectors, in files of its own, so that no search has to open LanceDB.

That library takes a second to load. The first file of a source has all of its rows; each later one has what a
publication wrote, and the ids of what it took out. So an edit costs what it changed, until there are many: then the
files are merged. A generation names them, the oldest first. If one is missing or unreadable, the rows come from the
LanceDB table, until the next run of the source writes them anew.
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
from docindex_dagster.core.files import replacing, stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.stores import packs
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.matrix import BYTES
from docindex_dagster.stores.parts import COLUMNS, SIGNS, VECTOR, Chosen, Held, Part, Parts, living

_VERSION_DIGITS = 16
_PLACES = ("chunk_index", "content_hash", "start_line", "start_byte", "end_byte")
COLUMNS_OF_FILES = ("chunk_id", *COLUMNS, *_PLACES, "text")
"""Those of chunks, besides the vectors and their signs."""
# A row without a text marks a deleted chunk, so every column but the id is nullable.
_SCHEMA = pa.schema([CHUNKS.field(name).with_nullable(name != "chunk_id") for name in COLUMNS_OF_FILES])
ROWS_A_BATCH = 32_768
_SMALL = 1_000  # rows that are written anew each time, which takes some milliseconds
_MOST_LATER = 8  # files
_MOST_CHANGED = 4  # of so many rows one may be in later files
_DAMAGE = (OSError, pa.ArrowException, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Before:
    """What a publication goes on from: the names of the files of a source, and how its rows differ from theirs."""

    names: Sequence[str]
    change: Difference


def write(
    layout: Layout, source: str, version: str, rows: pa.Table, before: Before | None = None, *, anew: bool = False
) -> tuple[str, ...]:
    """Write what a publication changes, or all rows where that is better; returns the names of the files.

    Args:
        layout: where the index lives.
        source: its key.
        version: of the rows; equal ones have an equal one.
        rows: all chunks by path and chunk_index, with their vectors.
        before: what the generation has that this one goes on from; None where that is not known.
        anew: whether no file is taken to be what its name says.
    """
    if before is not None and before.names and not anew and rows.num_rows > _SMALL:
        later = _later(layout, source, version, rows, before)
        if later:
            return later
    name = _name(source, version)
    if anew or _read(layout.rows / name) is None:
        write_tables(layout.rows / name, [_stored(rows)])
    return (name,)


def _later(layout: Layout, source: str, version: str, rows: pa.Table, before: Before) -> tuple[str, ...]:
    """The files with what changed put in one more; none where all are better put together."""
    held = [_read(layout.rows / name) for name in before.names]
    if any(table is None for table in held):
        return ()
    first, *others = before.names
    if before.change.is_empty:
        return tuple(before.names)
    changed = _stored(rows.filter(before.change.is_new))
    changed = pa.concat_tables([changed, _tombstones(before.change.deletes, changed.schema)])
    later = [table for table in held[1:] if table is not None]
    if (changed.num_rows + sum(table.num_rows for table in later)) * _MOST_CHANGED > rows.num_rows:
        return ()
    name = _name(source, version, *before.names)
    if len(others) < _MOST_LATER:
        write_tables(layout.rows / name, [changed])
        return (*before.names, name)
    write_tables(layout.rows / name, [_newest([*later, changed])])
    return first, name


def _plain(rows: pa.Table) -> pa.Table:
    """The columns of the files but for signs, of chunks with their vectors; null where a table of before lacks one."""
    for name in _SCHEMA.names:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, _SCHEMA.field(name).type))
    vectors = rows[VECTOR].combine_chunks()
    size = vectors.type.list_size
    values = vectors.values.slice(vectors.offset * size, len(vectors) * size)
    found = rows.select(_SCHEMA.names).replace_schema_metadata(None).cast(_SCHEMA)
    return found.append_column(VECTOR, pa.FixedSizeListArray.from_arrays(values, size))


def _stored(rows: pa.Table) -> pa.Table:
    """The columns of the files, of chunks with their vectors."""
    found = _plain(rows).combine_chunks()
    made = np.concatenate([np.empty((0, BYTES // 8), np.uint64), *(Part(one).signs for one in found.to_batches())])
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(BYTES), found.num_rows, [None, pa.py_buffer(made)])
    return found.append_column(SIGNS, column)


def _tombstones(chunk_ids: pa.Array, schema: pa.Schema) -> pa.Table:
    nulls = {field.name: pa.nulls(len(chunk_ids), field.type) for field in schema}
    return pa.table(nulls | {"chunk_id": chunk_ids}, schema=schema)


def _newest(parts: Sequence[pa.Table]) -> pa.Table:
    """The last row of each chunk, also where it says that the chunk was taken out, by path and chunk_index."""
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
    """The rows of a generation, mapped, not read; they stay where the files are removed.

    Args:
        layout: where the index lives.
        generation: whose rows.
        known: the parts of files that were read before.
        from_table: gives the rows of a source whose files do not have them all.
    """
    by_file: dict[str, tuple[Part, ...]] = {}

    def parts_of(path: Path) -> tuple[Part, ...]:
        name = f"{path.name} {stamp(path)}"  # a repair writes a file anew under its name
        if name not in by_file:
            by_file[name] = known.get(name) or _parts(path) or ()
        return by_file[name]

    held: list[Held] = []
    left = dict(generation.sources)
    for pack, keys in packs.of_packs(generation).items():
        parts = parts_of(packs.rows_file(layout.packs, pack))
        counts = Counter(key for part in parts for key in part.batch["source"].to_pylist())
        whole = [key for key in keys if counts[key] == left[key].chunks]
        masks = (np.asarray(pc.is_in(part.batch["source"], pa.array(whole, pa.string()))) for part in parts)
        held += [(part, None if mask.all() else mask) for part, mask in zip(parts, masks, strict=True)]
        left = {key: source for key, source in left.items() if key not in whole}
    for key, source in left.items():
        found = _newest_rows([parts_of(layout.rows / name) for name in source.rows], source.chunks)
        if found is None:
            name = f"{key}/{source.version}"
            by_file[name] = known.get(name) or tuple(
                Part(batch) for rows in from_table(key) for batch in _plain(rows).combine_chunks().to_batches()
            )
            found = [(part, None) for part in by_file[name]]
        held += found
    return Parts(held, by_file)


def _newest_rows(files: Sequence[tuple[Part, ...]], chunks: int) -> list[Held] | None:
    """The parts of files, the oldest first, with the rows that no later file has; None unless there are so many."""
    found: list[Held] = []
    newer = pa.array([], pa.string())
    for parts in reversed(files):
        found += [(part, np.asarray(pc.invert(pc.is_in(part.ids, newer))) if len(newer) else None) for part in parts]
        newer = pa.concat_arrays([newer, *(part.ids for part in parts)]) if len(files) > 1 else newer
    return found if sum(len(living(part.rows, live)) for part, live in found) == chunks else None


def disagreement(rows: Chosen, batches: Iterable[pa.RecordBatch]) -> str:
    """An empty string when both have the same texts by their ids, else the first chunk of which they have others."""
    ids, texts = (
        pa.concat_arrays([pa.array([], kind), *(part.batch[name].take(pa.array(at)).cast(kind) for part, at in rows)])
        for name, kind in (("chunk_id", pa.string()), ("text", pa.large_string()))
    )
    for batch in batches:
        held = texts.take(pc.index_in(batch["chunk_id"], ids))
        is_same = pc.fill_null(pc.equal(held, batch["text"].cast(pa.large_string())), fill_value=False)
        if not pc.all(is_same).as_py():
            return f"they have another text of chunk {batch['chunk_id'].filter(pc.invert(is_same))[0]}"
    return ""


def is_whole(layout: Layout, key: str, source: PublishedSource) -> bool:
    """Whether the files of a source, or its pack, have all of its rows."""
    if source.pack is None:
        return _newest_rows([_parts(layout.rows / name) or () for name in source.rows], source.chunks) is not None
    parts = _parts(packs.rows_file(layout.packs, source.pack)) or ()
    return sum(pc.sum(pc.equal(part.batch["source"], key)).as_py() or 0 for part in parts) == source.chunks


def alone(layout: Layout, key: str, source: PublishedSource) -> tuple[str, ...]:
    """Put the rows of a source into one file that has nothing else; the names of its files then, none if they lack."""
    if len(source.rows) <= 1:
        return source.rows
    found = _newest_rows([_parts(layout.rows / name) or () for name in source.rows], source.chunks)
    if found is None:
        return ()
    name = _name(key, source.version)
    write_tables(layout.rows / name, tables_of([(part, living(part.rows, live)) for part, live in found]))
    return (name,)


def tables_of(rows: Chosen) -> Iterator[pa.Table]:
    """Rows as files have them, each table by path and chunk_index."""
    for part, positions in rows:
        table = pa.Table.from_batches([part.batch])
        taken = table if len(positions) == table.num_rows else table.take(pa.array(positions))
        yield taken if SIGNS in taken.column_names else _stored(taken)


def batches_on_disk(layout: Layout, names: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, or of some, also of chunks that were taken out."""
    for file in (*layout.entries(layout.rows), *layout.entries(layout.packs)):
        table = _read(file) if names is None or file.name in names else None
        if table is not None:
            yield from table.to_batches()


def names(generation: Generation) -> set[str]:
    """The names of the files of a generation that are in no pack."""
    return {name for source in generation.sources.values() for name in source.rows}


def write_tables(path: Path, parts: Iterable[pa.Table]) -> None:
    """Write tables, each by path and chunk_index, so that no batch has rows of two of them."""
    stored = iter(parts)
    first = next(stored)
    with replacing(path) as temporary:
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
    """By what the rows are, and for what is not all of them, by the files that it goes on from."""
    return f"{file_name(source)}.{digest_parts(version, *before)[:_VERSION_DIGITS]}.arrow"
