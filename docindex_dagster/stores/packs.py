"""Packs: the graphs and rows of many small sources in two files, so that they open quickly.

A publication writes separate files for its source. Maintenance moves those of many small sources into a pack, which
never changes. A source that is published again has its own files until the next maintenance. A pack is rewritten,
together with others, once half of its sources have left it.
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
_MAX_SOURCES = 500  # per pack, which is assembled in memory
_SMALL = 2_000  # rows: larger sources take longer to read than to open
_HALF_FULL = _MAX_SOURCES // 2
_PART = pa.schema({"name": pa.string(), "data": pa.large_binary()})
_DAMAGE = (OSError, pa.ArrowException, KeyError, ValueError)


def to_pack(generation: "Generation") -> list[str]:
    """Return the sources to pack: small ones with their own files, and those of half-empty packs."""
    half_empty = [key for keys in sources_by_pack(generation).values() if len(keys) < _HALF_FULL for key in keys]
    return sorted([*unpacked_sources(generation), *half_empty])


def unpacked_sources(generation: "Generation") -> list[str]:
    """Return the small sources with their own files."""
    return [key for key, source in generation.sources.items() if source.pack is None and source.chunks <= _SMALL]


def sources_by_pack(generation: "Generation") -> dict[str, list[str]]:
    """Return the sources of each pack in a generation."""
    found: dict[str, list[str]] = {}
    for key, source in generation.sources.items():
        if source.pack is not None:
            found.setdefault(source.pack, []).append(key)
    return found


def batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Group keys of sources into packs."""
    return (keys[start : start + _MAX_SOURCES] for start in range(0, len(keys), _MAX_SOURCES))


def rows_file(folder: Path, pack: str) -> Path:
    """Return the row file of a pack, in the format of `row_files`: sorted by source, path and chunk_index."""
    return folder / f"{pack}{_ROWS}"


def write_graphs(folder: Path, pack: str, files: Mapping[str, pa.Buffer]) -> None:
    """Write the graph files of a pack by name; the caller syncs the pack and moves it to its final location."""
    data = pa.array([data.to_pybytes() for data in files.values()], pa.large_binary())
    batches = pa.table([list(files), data], schema=_PART).combine_chunks().to_batches()
    tables.write_arrow(folder / f"{pack}{_GRAPHS}", batches, _PART)


def graphs(layout: Layout, pack: str) -> dict[str, pa.Buffer]:
    """Return the memory-mapped graph files of a pack by name; empty if the pack is missing or damaged."""
    try:
        table = tables.read_arrow(layout.packs / f"{pack}{_GRAPHS}")
        if not table.schema.equals(_PART):
            return {}
        names, data = (table[name].combine_chunks() for name in _PART.names)
        return {name: data[number].as_buffer() for number, name in enumerate(names.to_pylist())}
    except _DAMAGE:
        return {}


def move(layout: Layout, folder: Path) -> list[Path]:
    """Move packs from a folder to where readers look; return the paths to sync."""
    layout.packs.mkdir(parents=True, exist_ok=True)
    moved = []
    for file in folder.iterdir():
        moved.append(layout.packs / file.name)
        file.rename(moved[-1])
    return [*moved, layout.packs]


def names(generation: "Generation") -> set[str]:
    """Return the names of the files of all packs in a generation."""
    return {f"{pack}{kind}" for pack in sources_by_pack(generation) for kind in (_GRAPHS, _ROWS)}
