"""Giving back disk space: what nothing needs any more, and what the stores keep only until it is cleaned up."""

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core.files import folder_bytes, is_running, writer
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.residue import Erased
from docindex_dagster.sources import mirror
from docindex_dagster.sources.mirror import dispose
from docindex_dagster.stores import clean_up, doctor, erasure, takeover
from docindex_dagster.stores.generation import read_generation


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file or folder that nothing needs, why, its size in bytes, and whether a run that uses it now keeps it."""

    path: Path
    reason: str
    size: int
    is_busy: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What seems to be needed by nothing, and the locks without which it may be in use."""

    path: Path
    reason: str
    locks: tuple[Path, ...] = ()


def orphans(layout: Layout, keys: Collection[str], *, erase: bool = False) -> list[Orphan]:
    """What lies below the home and belongs to no source of `keys`, which are those that are declared or published.

    With `erase`, also what is kept for texts that may come back.
    """
    return [orphan for found in _candidates(layout, keys, erase=erase) for orphan in _examine(found, remove=False)]


def prune(layout: Layout, keys: Collection[str], *, keep_previous: bool = True, erase: bool = False) -> list[Orphan]:
    """Remove orphans and compact the stores; returns the orphans. The caller holds the publication lock.

    `keys` were read under it, too: nothing of a source that is declared later is indexed before it is free. What a run
    works with now, such as a clone that is being made, stays, and is returned as busy.

    Old rows go from the stores but for those of the published generation and, with `keep_previous`, of the one before
    it, so that a rollback stays possible. A reader that is open on an older generation has to open anew. With `erase`
    nothing stays of a text that is not published any more, neither in the stores nor in what is kept for texts that may
    come back; what is busy then has to be pruned again.

    Raises:
        StoreError: what is published cannot be read, or is damaged while the generation before it, which may not be, is
            to go; nothing was removed.
        ErasureError: with `erase`, a file still holds text that is not published any more.
    """
    generation = read_generation(layout)
    if generation is not None and not keep_previous and not erase:
        doctor.check(layout, generation)
    if erase:
        erasure.erase(layout)
    else:
        clean_up.compact(layout, keep_previous=keep_previous)
    orphans = [orphan for found in _candidates(layout, keys, erase=erase) for orphan in _examine(found, remove=True)]
    if erase and layout.erased.exists():
        busy = {orphan.path for orphan in orphans if orphan.is_busy}
        erasure.verify(layout, Erased.load(layout.erased), spared=busy)
    return orphans


def _candidates(layout: Layout, keys: Collection[str], *, erase: bool) -> list[_Candidate]:
    found = [
        *(_of_texts_that_are_gone(layout) if erase else ()),
        *_of_no_source(layout, keys),
        *_unfinished_clones(layout),
        *_of_no_generation(layout),
        *_of_stopped_maintenance(layout),
        *_of_dead_processes(layout),
    ]
    return list({candidate.path: candidate for candidate in found}.values())


def _examine(found: _Candidate, *, remove: bool) -> Iterator[Orphan]:
    """Take the locks without waiting; what was deleted meanwhile was no orphan."""
    with ExitStack() as held:
        is_free = all(held.enter_context(exclusive_if_free(lock, "docindex prune")) for lock in found.locks)
        if not os.path.lexists(found.path):
            return
        orphan = Orphan(found.path, found.reason, _size(found.path), is_busy=not is_free)
        if remove and is_free:
            dispose(found.path)
    yield orphan


def _of_no_source(layout: Layout, keys: Collection[str]) -> Iterator[_Candidate]:
    """Tables, vectors, clones and checkouts of sources that are gone."""
    needed = {
        *(layout.table(asset, key) for key in keys for asset in layout.assets()),
        *(layout.checkout(key) for key in keys),
        *(layout.repository(key) for key in keys),
        *(layout.cached_vectors(key) for key in keys),
        *(layout.summaries(key) for key in keys),
        *(layout.spilled_vectors(key) for key in keys),
    }
    for folder in layout.folders_by_source():
        for path in layout.entries(folder):
            is_clone_to_be = folder == layout.repositories and mirror.unfinished(path) is not None
            if path not in needed and writer(path) is None and not is_clone_to_be:
                locks = tuple(layout.locks_of(path))
                yield _Candidate(path, "its source is neither declared nor indexed", locks)


def _of_texts_that_are_gone(layout: Layout) -> Iterator[_Candidate]:
    """Summaries, and vectors, that save asking for them again should their texts come back."""
    for folder in layout.caches():
        for path in layout.entries(folder):
            if writer(path) is None:
                yield _Candidate(path, "it is kept for texts that may come back", tuple(layout.locks_of(path)))


def _unfinished_clones(layout: Layout) -> Iterator[_Candidate]:
    """Clones that are being made, under a lock, or that were when their run was killed."""
    for path in layout.entries(layout.repositories):
        repository = mirror.unfinished(path)
        if repository is not None:
            yield _Candidate(path, "this clone was never finished", (layout.clone_lock(repository),))


def _of_no_generation(layout: Layout) -> Iterator[_Candidate]:
    """LanceDB tables of models that no generation uses."""
    generations = [read_generation(layout), read_generation(layout, previous=True), takeover.pending(layout)]
    tables = {f"{generation.table}.lance" for generation in generations if generation}
    if tables:
        for path in layout.entries(layout.lance):
            if path.name not in tables:
                yield _Candidate(path, "no generation uses it")


def _of_stopped_maintenance(layout: Layout) -> Iterator[_Candidate]:
    """The copy of a table that was not put in its place."""
    if layout.maintenance.exists():
        yield _Candidate(layout.maintenance, "the maintenance of the stores was stopped", (layout.maintenance_lock,))


def _of_dead_processes(layout: Layout) -> Iterator[_Candidate]:
    """Temporary files of writers that were killed."""
    for folder in (layout.home, layout.stores, layout.graph, *layout.folders_by_source()):
        for path in layout.entries(folder):
            process = writer(path)
            if process is not None and not is_running(process):
                yield _Candidate(path, "its writer was killed")


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return folder_bytes(path)
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0
