"""Maintenance: compacting the LanceDB table and training its indexes, beside the publications and in none of them.

A copy of the published table, made of links, is compacted and indexed in a folder aside, which may take minutes, while
publications go on. Then, under their lock and for a moment, the rows that they published meanwhile are brought over,
and the same generation names the copy. Killed anywhere before that, it leaves rubbish that the next one removes.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from docindex_dagster.core.errors import DocindexError, StoreError
from docindex_dagster.core.files import remove_tree, reporting_full_disk, stamp, sync
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive, exclusive_if_free
from docindex_dagster.stores import clean_up, lance_table, takeover
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.generation import (
    Generation,
    PublishedSource,
    read_generation,
    replace_generation,
    replace_next,
)
from docindex_dagster.stores.schema_version import SCHEMA_VERSION

if TYPE_CHECKING:
    from lancedb.table import LanceTable

# A search looks into each part of the table that no index covers, and a manifest lists all parts. Publications of one
# file leave such a part each; to take up 20 or 300 of them costs the same 0.2 s.
_MOST_VERSIONS = 20
# Rows outside of the vector index are compared one by one, and deleted ones are skipped one by one. Fewer than these
# are not felt, and the larger the table, the more there may be for the same share of the time.
_FEWEST_ROWS, _MOST_CHANGED = 10_000, 0.1
# So many rows are brought over under the lock, in less than a second; more are before it is taken.
_FEW_ROWS = 5_000
_ROUNDS = 5
_ROWS_A_BATCH = 20_000
_MARK = "wanted"  # a file in the folder aside: the copy is of use as long as it is there
_waited: Callable[[str], None] = lambda _: None  # noqa: E731


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to the table of a generation."""

    generation: int
    rows: int
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
            reason = _why(generation) if generation else None
            if generation and reason:
                yield pointer, generation, reason


def _why(generation: Generation) -> str | None:
    if generation.schema_version != SCHEMA_VERSION:  # it is on its way out
        return None
    versions = generation.table_version - generation.optimized_version
    if versions >= _MOST_VERSIONS:
        return f"{versions} versions of the table since the last"
    rows = sum(source.chunks for source in generation.sources.values())
    if generation.changed_rows >= max(_FEWEST_ROWS, rows * _MOST_CHANGED):
        return f"{generation.changed_rows:,} rows of {rows:,} changed since the last"
    return None


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
    on_wait: Callable[[str], None] = _waited,
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
        done = _Copy(layout, pointer, base).maintain(held)
        return [done] if done else []


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy of the table of a generation, while it is made and maintained."""

    layout: Layout
    pointer: _Pointer
    base: Generation

    def maintain(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        """Make it, and put it in place; None where it is of no use any more."""
        folder = self.layout.maintenance
        remove_tree(folder)  # what a process that was killed left
        try:
            folder.mkdir(parents=True)
            (folder / _MARK).touch()
            with reading_stores(), reporting_full_disk(folder):
                return self._maintain(publishing)
        finally:
            remove_tree(folder)

    def _maintain(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        began = time.monotonic()
        name = f"{lance_table.table_name(self.base.model)}-{uuid4().hex[:8]}"
        table = lance_table.linked(self.layout, self.base.table, self.base.table_version, self.layout.maintenance, name)
        trained = lance_table.maintain(table, self.base.trained_rows)
        optimized = table.version
        holds, changed = self._follow(table)
        synced = self._made()
        sync(synced)
        with publishing:
            locked = time.monotonic()
            current = self._current()
            if current is None:
                return None
            changed += self._bring_over(table, holds, current)
            _verify(table, current)
            sync([path for path, now in self._made().items() if synced.get(path) != now])
            lance_table.put_in_place(self.layout, table, self.layout.maintenance, current.table)
            maintained = replace(
                current,
                table=name,
                table_version=table.version,
                optimized_version=optimized,
                changed_rows=changed,
                trained_rows=trained,
            )
            self.pointer.replace(self.layout, maintained)
            clean_up.remove_old_generations(self.layout)
            locked_s = time.monotonic() - locked
        since_base = len(_differing(self.base, current))
        rows = sum(source.chunks for source in current.sources.values())
        return Maintained(current.number, rows, since_base, time.monotonic() - began, locked_s)

    def _current(self) -> Generation | None:
        """What is published now; None where it is of another model than the copy, or nobody wants that any more."""
        current = self.pointer.read(self.layout)
        is_wanted = (self.layout.maintenance / _MARK).exists()
        return current if is_wanted and current is not None and current.is_like(self.base) else None

    def _follow(self, table: "LanceTable") -> tuple[Generation, int]:
        """Bring over what is published until it is not much any more.

        Returns the generation whose rows the copy holds, and how many rows were written or deleted.
        """
        holds, changed = self.base, 0
        for _ in range(_ROUNDS):
            current = self._current()
            if current is None or _rows(_differing(holds, current), current) <= _FEW_ROWS:
                break
            changed += self._bring_over(table, holds, current)
            holds = current
        return holds, changed

    def _bring_over(self, table: "LanceTable", holds: Generation, current: Generation) -> int:
        """Let the copy, which holds the rows of one generation, hold those of another.

        Returns how many rows were written or deleted.

        Raises:
            DamagedStoreError: it does not hold them.
        """
        differing = _differing(holds, current)
        if not differing:
            return 0
        published = lance_table.open_for_reading(self.layout, current.table, current.table_version)
        changed = 0
        for key in sorted(differing - current.sources.keys()):
            lance_table.remove(table, key)
            changed += holds.sources[key].chunks
        for keys in _batches({key: current.sources[key] for key in sorted(differing & current.sources.keys())}):
            chunks, vectors = lance_table.rows_of(published, keys)
            expected = lance_table.expected(chunks, vectors)
            changed += lance_table.reconcile(table, keys, chunks, vectors, expected).written
            if text := disagreement(lance_table.held(table, keys), expected):
                raise damaged(f"maintenance of {keys[0]}: {text}")
        return changed

    def _made(self) -> dict[Path, tuple[int, ...] | None]:
        """The files and folders of the copy, with what changes when they do."""
        return {path: stamp(path) for path in self.layout.maintenance.rglob("*")}


def _differing(left: Generation, right: Generation) -> set[str]:
    """The sources of which two generations hold other rows."""
    return {
        key
        for key in left.sources.keys() | right.sources.keys()
        if _version(left.sources.get(key)) != _version(right.sources.get(key))
    }


def _version(source: PublishedSource | None) -> str | None:
    return source.version if source else None


def _rows(keys: Iterable[str], generation: Generation) -> int:
    """How many rows a generation holds of some sources."""
    return sum(generation.sources[key].chunks for key in keys if key in generation.sources)


def _batches(sources: Mapping[str, PublishedSource]) -> Iterator[list[str]]:
    """Keys of sources by some thousand rows."""
    batch: list[str] = []
    rows = 0
    for key, source in sources.items():
        batch.append(key)
        rows += source.chunks
        if rows >= _ROWS_A_BATCH:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _verify(table: "LanceTable", generation: Generation) -> None:
    """Compare how many rows a table holds of each source with what is published.

    Raises:
        DamagedStoreError: they differ.
    """
    held = lance_table.numbers(table)
    expected = {key: source.chunks for key, source in generation.sources.items() if source.chunks}
    if held != expected:
        key = min(key for key in held.keys() | expected.keys() if held.get(key, 0) != expected.get(key, 0))
        raise damaged(f"maintenance: LanceDB holds {held.get(key, 0)} rows of {key}, {expected.get(key, 0)} published")
