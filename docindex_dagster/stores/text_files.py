"""The texts of each source in files of its own, so that what no index finds is looked for without opening LanceDB.

The first file of a source has all of its rows; each later one has what a publication wrote, and the ids of what it took
out. So an edit costs what it changed, until there are many: then the files are put together. A generation names them,
the oldest first; where it names none, or one is missing or cannot be read, the table is asked instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import arrow_files
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.matrix import COLUMNS
from docindex_dagster.stores.texts import Part

_FORMAT = "1"  # of the files
_VERSION_DIGITS = 16
_PLACES = ("chunk_index", "content_hash", "start_line", "start_byte", "end_byte")
_SCHEMA = pa.schema([CHUNKS.field(name) for name in ("chunk_id", *COLUMNS, *_PLACES, "text")])
# A row without a text says that a chunk was taken out, so that all but the id may be null.
_STORED = pa.schema([field.with_nullable(field.name != "chunk_id") for field in _SCHEMA])
_ROWS_A_BATCH = 32_768
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
    layout: Layout, source: str, version: str, chunks: pa.Table, before: Before | None = None, *, anew: bool = False
) -> tuple[str, ...]:
    """Write what a publication changes, or all rows where that is better; returns the names of the files.

    Args:
        layout: where the index lives.
        source: its key.
        version: of the rows; equal ones have an equal one.
        chunks: all rows, by path and chunk_index.
        before: what the generation has that this one goes on from; None where that is not known.
        anew: whether no file is taken to be what its name says.
    """
    if before is not None and before.names and not anew and chunks.num_rows > _SMALL:
        later = _later(layout, source, version, chunks, before)
        if later:
            return later
    name = _name(source, version)
    if anew or _read(layout, name) is None:
        _write(layout, name, [chunks.select(_SCHEMA.names)])
    return (name,)


def _later(layout: Layout, source: str, version: str, chunks: pa.Table, before: Before) -> tuple[str, ...]:
    """The files with what changed put in one more; none where all are better put together."""
    held = [_read(layout, name) for name in before.names]
    if any(table is None for table in held):
        return ()
    first, *others = before.names
    if before.change.is_empty:
        return tuple(before.names)
    changed = chunks.filter(before.change.is_new).select(_SCHEMA.names).cast(_STORED)
    changed = pa.concat_tables([changed, _taken_out(before.change.deletes)])
    tables = [table for table in held[1:] if table is not None]
    rows = changed.num_rows + sum(table.num_rows for table in tables)
    if rows * _MOST_CHANGED > chunks.num_rows:
        return ()
    name = _name(source, version, *before.names)
    if len(others) < _MOST_LATER:
        _write(layout, name, [changed])
        return (*before.names, name)
    _write(layout, name, [_newest([*tables, changed])])
    return first, name


def _taken_out(chunk_ids: pa.Array) -> pa.Table:
    nulls = {field.name: pa.nulls(len(chunk_ids), field.type) for field in _STORED}
    return pa.table(nulls | {"chunk_id": chunk_ids}, schema=_STORED)


def _newest(tables: Sequence[pa.Table]) -> pa.Table:
    """The last row of each chunk, also where it says that the chunk was taken out, by path and chunk_index."""
    found: list[pa.Table] = []
    newer = pa.array([], pa.string())
    for table in reversed(tables):
        found.append(table.filter(pc.invert(pc.is_in(table["chunk_id"], newer))))
        newer = pa.concat_arrays([newer, *table["chunk_id"].chunks])
    return pa.concat_tables(found).sort_by([("path", "ascending"), ("chunk_index", "ascending")])


def read(layout: Layout, source: PublishedSource) -> list[Part] | None:
    """The rows that a generation has of a source, as its files have them; None where these do not have all.

    They are mapped, not read, and stay so where the files are removed.
    """
    tables = [_read(layout, name) for name in source.texts]
    parts: list[Part] = []
    newer = pa.array([], pa.string())
    for table in reversed(tables):
        if table is None:
            return None
        for batch in table.to_batches():
            is_there = pc.is_valid(batch["text"])
            if len(newer):
                is_there = pc.and_not(is_there, pc.is_in(batch["chunk_id"], newer))
            parts.append(Part(batch, np.flatnonzero(is_there).astype(np.int32)))
        if len(tables) > 1:
            newer = pa.concat_arrays([newer, *table["chunk_id"].chunks])
    return parts if sum(len(part.rows) for part in parts) == source.chunks else None


def disagreement(parts: Sequence[Part], batches: Iterable[pa.RecordBatch]) -> str:
    """An empty string when both have the same texts by their ids, else the first chunk of which they have others."""
    ids, texts = (
        pa.concat_arrays(
            [pa.array([], kind), *(part.batch[name].take(pa.array(part.rows)).cast(kind) for part in parts)]
        )
        for name, kind in (("chunk_id", pa.string()), ("text", pa.large_string()))
    )
    for batch in batches:
        held = texts.take(pc.index_in(batch["chunk_id"], ids))
        is_same = pc.fill_null(pc.equal(held, batch["text"].cast(pa.large_string())), fill_value=False)
        if not pc.all(is_same).as_py():
            return f"they have another text of chunk {batch['chunk_id'].filter(pc.invert(is_same))[0]}"
    return ""


def alone(layout: Layout, key: str, source: PublishedSource) -> tuple[str, ...]:
    """Put the rows of a source into one file that has nothing else; the names of its files then, none if they lack."""
    if len(source.texts) == 1:
        return source.texts
    parts = read(layout, source)
    if not source.texts or parts is None:
        return ()
    name = _name(key, source.version)
    _write(layout, name, (pa.Table.from_batches([part.batch]).take(pa.array(part.rows)) for part in parts))
    return (name,)


def all_rows(layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, also of chunks that were taken out, and of other generations."""
    for file in layout.texts.glob("*"):
        table = _read(layout, file.name)
        if table is not None:
            yield from table.to_batches()


def names(generation: Generation) -> set[str]:
    """The names of the files of a generation."""
    return {name for source in generation.sources.values() for name in source.texts}


def remove_unused(layout: Layout, used: Iterable[str]) -> None:
    """Delete the files of generations that are gone, and what writers that were killed left half written."""
    for file in layout.entries(layout.texts):
        if file.name not in used:
            file.unlink(missing_ok=True)


def _write(layout: Layout, name: str, tables: Iterable[pa.Table]) -> None:
    """Write tables, each by path and chunk_index, so that no batch has rows of two of them."""
    stored = (rows.replace_schema_metadata(None).cast(_STORED).combine_chunks() for rows in tables)
    with replacing(layout.texts / name) as temporary:
        batches = (batch for rows in stored for batch in rows.to_batches(max_chunksize=_ROWS_A_BATCH))
        arrow_files.write(temporary, batches, _STORED)


def _read(layout: Layout, name: str) -> pa.Table | None:
    try:
        table = arrow_files.read(layout.texts / name)
        table.validate()
    except _DAMAGE:
        return None
    return table if table.schema.equals(_STORED) else None


def _name(source: str, version: str, *before: str) -> str:
    """By what the rows are, and for what is not all of them, by the files that it goes on from."""
    return f"{file_name(source)}.{digest_parts(_FORMAT, version, *before)[:_VERSION_DIGITS]}.arrow"
