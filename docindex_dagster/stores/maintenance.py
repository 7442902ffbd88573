"""Maintenance: what keeps searches fast and the disk free, and takes too long for a publication.

A copy of the published table, made of links, is compacted and indexed in a folder aside, which may take minutes, while
publications go on; the files of small sources are packed there. Then, under their lock and for a moment, the rows that
they published meanwhile are brought over, and the same generation names what was made. Killed anywhere before that, it
leaves rubbish that the next one removes.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from docindex_dagster.core.errors import DocindexError, StoreError
from docindex_dagster.core.files import remove_tree, reporting_full_disk, stamp, sync
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive, exclusive_if_free
from docindex_dagster.stores import clean_up, compaction, packing, packs, takeover
from docindex_dagster.stores.compaction import Copy
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation, read_generation, replace_generation, replace_next
from docindex_dagster.stores.schema_version import SCHEMA_VERSION

_ROUNDS = 5
_MARK = "wanted"  # a file in the folder aside: what is done there is of use as long as it is there
_PACKS = "packs"  # a folder there


def _say_nothing(_owner: str) -> None:
    """Nobody wants to know who is waited for."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to the stores of a generation."""

    generation: int
    rows: int  # of the table that was compacted; 0 where none was
    packed: int  # sources
    brought_over: int  # sources that were published or withdrawn meanwhile
    seconds: float
    locked_s: float  # for which no publication could go on


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A file that names a generation, and how it comes to name the same one in another form."""

    read: Callable[[Layout], Generation | None]
    replace: Callable[[Layout, Generation], None]


_POINTERS = (_Pointer(read_generation, replace_generation), _Pointer(takeover.pending, replace_next))


def is_due(layout: Layout) -> bool:
    """Whether publications have left so much behind that searches, or the disk, gain by maintenance."""
    return why_due(layout) is not None


def why_due(layout: Layout) -> str | None:
    """Why maintenance is due; None where it is not, or what is published cannot be read. No library is loaded."""
    return next((reason for _, _, reason in _due(layout)), None)


def _due(layout: Layout) -> Iterator[tuple[_Pointer, Generation, str]]:
    """The generations whose tables need maintenance, and why."""
    for pointer in _POINTERS:
        with suppress(StoreError):
            generation = pointer.read(layout)
            reason = (compaction.why_due(generation) or packing.why_due(generation)) if generation else None
            if generation and reason and generation.schema_version == SCHEMA_VERSION:  # others are on their way out
                yield pointer, generation, reason


def bring_up_to_date(layout: Layout) -> bool:
    """Maintain the stores if it is due, for those who do it in passing; whether it was done.

    What fails here fails nothing else: publications and searches do without.
    """
    try:
        return bool(maintain(layout))
    except (DocindexError, OSError, pa.ArrowException):
        return False


def maintain(
    layout: Layout,
    *,
    on_wait: Callable[[str], None] = _say_nothing,
    publishing: AbstractContextManager[object] | None = None,
) -> list[Maintained]:
    """Compact and index the tables for which it is due, and publish them; nothing where another process is at it.

    The caller does not hold the publication lock. What was published meanwhile stays published, and a copy that cannot
    be brought up to it is given up.

    Args:
        layout: where the index lives.
        on_wait: is called with who holds the publication lock, if this has to wait for it.
        publishing: what is held while a generation is named, in place of the publication lock alone.

    Raises:
        DamagedStoreError: a table cannot be read.
        FullDiskError: there is no space for the copy; what was searchable still is.
    """
    owner = f"maintenance of the stores, process {os.getpid()}"
    held = publishing or exclusive(layout.publication_lock, owner, on_wait)
    with exclusive_if_free(layout.maintenance_lock, owner) as is_free:
        due = next(_due(layout), None) if is_free else None
        if due is None:
            return []
        pointer, base, _ = due
        done = _Work(layout, pointer, base).done(held)
        return [done] if done else []


@dataclass(frozen=True, slots=True)
class _Work:
    """What is done for a generation, in a folder aside, until it can be named."""

    layout: Layout
    pointer: _Pointer
    base: Generation

    def done(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        """Do it, and put it in place; None where it is of no use any more."""
        folder = self.layout.maintenance
        remove_tree(folder)  # what a process that was killed left
        try:
            folder.mkdir(parents=True)
            (folder / _MARK).touch()
            with reading_stores(), reporting_full_disk(folder):
                return self._done(publishing)
        finally:
            remove_tree(folder)

    def _done(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        began = time.monotonic()
        copy = self._follow(Copy.made(self.layout, self.base)) if compaction.why_due(self.base) else None
        packed = self._packed()
        synced = self._made()
        sync(synced)
        with publishing:
            locked = time.monotonic()
            current = self._current()
            if current is None:
                return None
            maintained = packing.naming(current, self.base, packed)
            if copy is not None:
                copy = copy.brought_to(current)
                copy.verify()
                sync([path for path, now in self._made().items() if synced.get(path) != now])
                maintained = copy.put_in_place(maintained)
            if packed:
                sync(packs.move(self.layout, self.layout.maintenance / _PACKS))
            self.pointer.replace(self.layout, maintained)
            clean_up.remove_old_generations(self.layout)
            locked_s = time.monotonic() - locked
        return Maintained(
            current.number,
            sum(source.chunks for source in current.sources.values()) if copy else 0,
            len(packed),
            len(compaction.differing(self.base, current)),
            time.monotonic() - began,
            locked_s,
        )

    def _packed(self) -> dict[str, str]:
        """Pack what is due; returns the pack of each source."""
        if packing.why_due(self.base) is None:
            return {}
        return packing.pack(self.layout, self.base, packs.to_pack(self.base), self.layout.maintenance / _PACKS)

    def _current(self) -> Generation | None:
        """What is published now; None where it is of another model than the base, or nobody wants that any more."""
        current = self.pointer.read(self.layout)
        is_wanted = (self.layout.maintenance / _MARK).exists()
        return current if is_wanted and current is not None and current.is_like(self.base) else None

    def _follow(self, copy: Copy) -> Copy:
        """Bring over what is published until it is not much any more."""
        for _ in range(_ROUNDS):
            current = self._current()
            if current is None or not copy.is_far_behind(current):
                break
            copy = copy.brought_to(current)
        return copy

    def _made(self) -> dict[Path, tuple[int, ...] | None]:
        """The files and folders aside, with what changes when they do."""
        return {path: stamp(path) for path in self.layout.maintenance.rglob("*")}
