"""Packs: the graphs and vectors of many small sources in two files, so that they are opened as fast as a few.

A publication writes files of its own for its source. Maintenance puts those of many small sources into a pack, which
never changes; a source that is published again has files of its own until the next one. A pack is written anew,
together with others, when half of its sources are published elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import arrow_files
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.matrix import Part

if TYPE_CHECKING:
    from docindex_dagster.stores.generation import Generation

_GRAPHS, _VECTORS = ".graphs.arrow", ".vectors.arrow"
_MOST_SOURCES = 500  # of a pack, which is put together in memory
_SMALL = 2_000  # rows: a larger source takes longer to read than to open
_FULL = _MOST_SOURCES // 2
_PART = pa.schema({"name": pa.string(), "data": pa.large_binary()})
_DAMAGE = (OSError, pa.ArrowException, KeyError)


@dataclass(frozen=True, slots=True)
class Small:
    """What is packed of a source: its key, the files of its graph by their names, and the table of its vectors."""

    key: str
    graph: Mapping[str, pa.Buffer]
    vectors: pa.Table | None


def to_pack(generation: "Generation") -> list[str]:
    """The sources that are to be packed together: small ones with files of their own, and those of half-empty packs."""
    half_empty = [key for keys in of_packs(generation).values() if len(keys) < _FULL for key in keys]
    return sorted([*loose(generation), *half_empty])


def loose(generation: "Generation") -> list[str]:
    """The small sources that have files of their own."""
    return [key for key, source in generation.sources.items() if source.pack is None and source.chunks <= _SMALL]


def of_packs(generation: "Generation") -> dict[str, list[str]]:
    """The sources of each pack that a generation names."""
    found: dict[str, list[str]] = {}
    for key, source in generation.sources.items():
        if source.pack is not None:
            found.setdefault(source.pack, []).append(key)
    return found


def batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """The keys of the sources of one pack each."""
    return (keys[start : start + _MOST_SOURCES] for start in range(0, len(keys), _MOST_SOURCES))


def write(folder: Path, pack: str, sources: Sequence[Small]) -> None:
    """Write a pack; the caller syncs it, and puts it where readers look."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: data for source in sources for name, data in source.graph.items()}
    data = pa.array([data.to_pybytes() for data in files.values()], pa.large_binary())
    _write(folder / f"{pack}{_GRAPHS}", pa.table([list(files), data], schema=_PART))
    vectors = [source.vectors for source in sources if source.vectors is not None]
    if vectors:
        # Files may lack signs: so does the pack then.
        _write(folder / f"{pack}{_VECTORS}", pa.concat_tables(vectors, promote_options="default"))


def _write(path: Path, table: pa.Table) -> None:
    arrow_files.write(path, table.combine_chunks().to_batches(), table.schema)


def graphs(layout: Layout, pack: str) -> dict[str, pa.Buffer]:
    """The files of the graphs of a pack by their names, as they lie on the disk; none if it is missing or damaged."""
    table = _read(layout.packs / f"{pack}{_GRAPHS}")
    if table is None or not table.schema.equals(_PART):
        return {}
    names, data = (table[name].combine_chunks() for name in _PART.names)
    try:
        return {name: data[number].as_buffer() for number, name in enumerate(names.to_pylist())}
    except (*_DAMAGE, ValueError):
        return {}


def vector_rows(layout: Layout, pack: str, keys: Sequence[str]) -> pa.Table | None:
    """The vectors of some sources of a pack as their files have them; None where it is missing or damaged."""
    table = _read(layout.packs / f"{pack}{_VECTORS}")
    return None if table is None else table.filter(pc.is_in(table["source"], pa.array(keys, pa.string())))


def vectors(layout: Layout, pack: str, column: str) -> Part | None:
    """The vectors of all sources of a pack; None where it is missing or damaged."""
    table = _read(layout.packs / f"{pack}{_VECTORS}")
    try:
        return None if table is None else Part.of(table, column)
    except _DAMAGE:
        return None


def _read(path: Path) -> pa.Table | None:
    try:
        return arrow_files.read(path)
    except _DAMAGE:
        return None


def move(layout: Layout, folder: Path) -> list[Path]:
    """Put what was packed in a folder where readers look; returns what is to be synced."""
    layout.packs.mkdir(parents=True, exist_ok=True)
    moved = []
    for file in folder.iterdir():
        moved.append(layout.packs / file.name)
        file.rename(moved[-1])
    return [*moved, layout.packs]


def remove_unused(layout: Layout, used: set[str]) -> None:
    """Delete the packs of generations that are gone."""
    for file in layout.entries(layout.packs):
        if file.name.removesuffix(_GRAPHS).removesuffix(_VECTORS) not in used:
            file.unlink(missing_ok=True)
