"""Packs: the graphs and rows of many small sources in two files, so that they are opened as fast as a few.

A publication writes files of its own for its source. Maintenance puts those of many small sources into a pack, which
never changes; a source that is published again has files of its own until the next one. A pack is written anew,
together with others, when half of its sources are published elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout

if TYPE_CHECKING:
    from docindex_dagster.stores.generation import Generation

_GRAPHS, _ROWS = ".graphs.arrow", ".rows.arrow"
_MOST_SOURCES = 500  # of a pack, which is put together in memory
_SMALL = 2_000  # rows: a larger source takes longer to read than to open
_FULL = _MOST_SOURCES // 2
_PART = pa.schema({"name": pa.string(), "data": pa.large_binary()})
_DAMAGE = (OSError, pa.ArrowException, KeyError, ValueError)


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


def rows_file(folder: Path, pack: str) -> Path:
    """The file in a folder that has the rows of a pack, as `row_files` reads it: by source, path and chunk_index."""
    return folder / f"{pack}{_ROWS}"


def write_graphs(folder: Path, pack: str, files: Mapping[str, pa.Buffer]) -> None:
    """Write the graph files of a pack by their names; the caller syncs it, and puts it where readers look."""
    data = pa.array([data.to_pybytes() for data in files.values()], pa.large_binary())
    batches = pa.table([list(files), data], schema=_PART).combine_chunks().to_batches()
    tables.write_arrow(folder / f"{pack}{_GRAPHS}", batches, _PART)


def graphs(layout: Layout, pack: str) -> dict[str, pa.Buffer]:
    """The files of the graphs of a pack by their names, as they lie on the disk; none if it is missing or damaged."""
    try:
        table = tables.read_arrow(layout.packs / f"{pack}{_GRAPHS}")
        if not table.schema.equals(_PART):
            return {}
        names, data = (table[name].combine_chunks() for name in _PART.names)
        return {name: data[number].as_buffer() for number, name in enumerate(names.to_pylist())}
    except _DAMAGE:
        return {}


def move(layout: Layout, folder: Path) -> list[Path]:
    """Put what was packed in a folder where readers look; returns what is to be synced."""
    layout.packs.mkdir(parents=True, exist_ok=True)
    moved = []
    for file in folder.iterdir():
        moved.append(layout.packs / file.name)
        file.rename(moved[-1])
    return [*moved, layout.packs]


def names(generation: "Generation") -> set[str]:
    """The names of the files of the packs of a generation."""
    return {f"{pack}{kind}" for pack in of_packs(generation) for kind in (_GRAPHS, _ROWS)}
