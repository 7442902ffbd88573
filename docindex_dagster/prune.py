"""Giving back disk space: what nothing needs any more, and what the stores keep only until it is cleaned up."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.files import folder_bytes
from docindex_dagster.layout import Layout
from docindex_dagster.sources.disposal import dispose
from docindex_dagster.sources.model import base_key
from docindex_dagster.stores import clean_up
from docindex_dagster.stores.generation import read_generation

_TEMPORARY = re.compile(r"\..+\.(?P<pid>\d+)\.tmp")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file or folder that nothing needs, why, and its size in bytes."""

    path: Path
    reason: str
    size: int


def orphans(layout: Layout, keys: Collection[str]) -> list[Orphan]:
    """What lies below the home and belongs to no source of `keys`, which are those that are declared or published."""
    found = (*_of_no_source(layout, keys), *_of_no_generation(layout), *_of_dead_processes(layout))
    return [Orphan(path, reason, _size(path)) for path, reason in found]


def prune(layout: Layout, keys: Collection[str], *, keep_previous: bool = True) -> list[Orphan]:
    """Remove orphans and compact the stores; returns the orphans. The caller holds the publication lock.

    Old rows go from the stores but for those of the published generation and, with `keep_previous`, of the one before
    it, so that a rollback stays possible. A reader that is open on an older generation has to open anew.

    Raises:
        StoreError: what is published cannot be read; nothing was removed.
    """
    clean_up.compact(layout, keep_previous=keep_previous)
    found = orphans(layout, keys)
    for orphan in found:
        dispose(orphan.path)
    return found


def _of_no_source(layout: Layout, keys: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Tables, vectors, clones and checkouts of sources that are gone."""
    reason = "its source is neither declared nor indexed"
    needed = {
        *(layout.table(asset, key) for key in keys for asset in layout.assets()),
        *(layout.checkout(key) for key in keys),
        *(layout.repository(key) for key in keys),
        *(layout.lost_vectors(base_key(key)) for key in keys),
    }
    for folder in layout.folders_by_source():
        for path in _children(folder):
            if path not in needed and not _TEMPORARY.fullmatch(path.name):
                yield path, reason


def _of_no_generation(layout: Layout) -> Iterator[tuple[Path, str]]:
    """LanceDB tables of models that no generation uses."""
    generations = [read_generation(layout), read_generation(layout, previous=True)]
    tables = {f"{generation.table}.lance" for generation in generations if generation}
    if tables:
        yield from ((path, "no generation uses it") for path in _children(layout.lance) if path.name not in tables)


def _of_dead_processes(layout: Layout) -> Iterator[tuple[Path, str]]:
    """Temporary files of writers that were killed."""
    for folder in (layout.home, layout.stores, layout.graph, *layout.folders_by_source()):
        for path in _children(folder):
            match = _TEMPORARY.fullmatch(path.name)
            if match and not _is_running(int(match["pid"])):
                yield path, "its writer was killed"


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _size(path: Path) -> int:
    return folder_bytes(path) if path.is_dir() and not path.is_symlink() else path.lstat().st_size
