"""Maintenance: what keeps searches fast and the disk free, and takes too long for a publication.

A copy of the published table, made of links, is compacted and indexed in a folder aside, which may take minutes, while
publications go on; the files of small sources are packed there. Then, under their lock and for a moment, the rows that
they published meanwhile are brought over, and the same generation names what was made. Killed anywhere before that, it
leaves rubbish that the next one removes.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from docindex_dagster.stores import cleanup, lance_table, packs, row_files, takeover
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.generation import (
    SCHEMA_VERSION,
    Generation,
    PublishedSource,
    read_generation,
    replace_generation,
    replace_next,
)
from docindex_dagster.stores.parts import Parts
from docindex_dagster.stores.reader import open_generation

if TYPE_CHECKING:
    from lancedb.table import LanceTable

# A search looks into each part of the table that no index covers, and a manifest lists all parts. Publications of one
# file leave such a part each; to take up 20 or 300 of them costs the same 0.2 s.
_MOST_VERSIONS = 20
# Deleted rows are skipped one by one. Below these limits the cost is negligible; larger tables tolerate more.
_FEWEST_ROWS, _MOST_CHANGED = 10_000, 0.1
# So many rows are brought over under the lock, in less than a second; more are before it is taken.
_FEW_ROWS = 5_000
_ROWS_A_BATCH = 20_000
# To open the files of so many sources takes some 20 ms; and a pack of fewer would soon be written anew.
_MOST_LOOSE = 50
_ROUNDS = 5
_MARK = "wanted"  # a file in the folder aside: what is done there is of use as long as it is there
_PACKS = "packs"  # a folder there


def why_compaction(generation: Generation) -> str | None:
    """Why the table of a generation should be compacted; None where it need not be."""
    versions = generation.table_version - generation.optimized_version
    if versions >= _MOST_VERSIONS:
        return f"{versions} versions of the table since the last"
    rows = sum(source.chunks for source in generation.sources.values())
    if generation.changed_rows >= max(_FEWEST_ROWS, rows * _MOST_CHANGED):
        return f"{generation.changed_rows:,} rows of {rows:,} changed since the last"
    return None


@dataclass(frozen=True, slots=True)
class Copy:
    """A compacted copy of the table of a generation, in the folder of the maintenance, which nobody else looks at.

    Attributes:
        holds: the generation whose rows it has.
        optimized: its version when it was compacted.
        changed: how many rows were written or deleted since.
    """

    layout: Layout
    table: "LanceTable"
    holds: Generation
    optimized: int
    changed: int = 0

    @classmethod
    def made(cls, layout: Layout, base: Generation) -> "Copy":
        """Link the files of a generation's table, and compact them, which may take minutes."""
        name = f"{lance_table.table_name(base.model)}-{uuid4().hex[:8]}"
        table = lance_table.linked(layout, base.table, base.table_version, layout.maintenance, name)
        lance_table.drop_other_versions(table)
        return cls(layout, table, base, table.version)

    def is_far_behind(self, current: Generation) -> bool:
        """Whether it takes long to bring over what it lacks of a generation."""
        return _rows(differing(self.holds, current), current) > _FEW_ROWS

    def brought_to(self, current: Generation) -> "Copy":
        """The copy with the rows of another generation.

        Raises:
            DamagedStoreError: it does not hold them.
        """
        return replace(self, holds=current, changed=self.changed + self._bring_over(current))

    def put_in_place(self, current: Generation) -> Generation:
        """Let it be the table of the generation that it holds; who calls it names what is returned.

        The caller holds the publication lock, and has synced the copy.
        """
        lance_table.put_in_place(self.layout, self.table, self.layout.maintenance, current.table)
        return replace(
            current,
            table=self.table.name,
            table_version=self.table.version,
            optimized_version=self.optimized,
            changed_rows=self.changed,
        )

    def verify(self) -> None:
        """Compare how many rows it holds of each source with what is published.

        Raises:
            DamagedStoreError: they differ.
        """
        held = lance_table.numbers(self.table)
        expected = {key: source.chunks for key, source in self.holds.sources.items() if source.chunks}
        if held != expected:
            key = min(key for key in held.keys() | expected.keys() if held.get(key, 0) != expected.get(key, 0))
            numbers = f"{held.get(key, 0)} rows of {key}, {expected.get(key, 0)} published"
            raise damaged(f"maintenance: LanceDB holds {numbers}")

    def _bring_over(self, current: Generation) -> int:
        """Write and delete the rows in which a generation differs; returns how many there are."""
        others = differing(self.holds, current)
        if not others:
            return 0
        published = lance_table.open_for_reading(self.layout, current.table, current.table_version)
        changed = 0
        for key in sorted(others - current.sources.keys()):
            lance_table.remove(self.table, key)
            changed += self.holds.sources[key].chunks
        for keys in _batches({key: current.sources[key] for key in sorted(others & current.sources.keys())}):
            chunks, vectors = lance_table.rows_of(published, keys)
            expected = lance_table.expected(chunks, vectors)
            changed += lance_table.reconcile(self.table, keys, chunks, vectors, expected).written
            if text := disagreement(lance_table.held(self.table, keys), expected):
                raise damaged(f"maintenance of {keys[0]}: {text}")
        return changed


def differing(left: Generation, right: Generation) -> set[str]:
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


def why_packing(generation: Generation) -> str | None:
    """Why small sources should be packed; None where few have files of their own."""
    loose = len(packs.loose(generation))
    return f"{loose} small sources have files of their own" if loose >= _MOST_LOOSE else None


def pack(layout: Layout, generation: Generation, keys: Sequence[str], folder: Path) -> dict[str, str]:
    """Write packs of some sources into a folder; returns the pack of each whose graph could be read."""
    reader = open_generation(layout, generation)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for batch in packs.batches(keys):
        files = {key: _graph_files(generation.sources[key]) for key in batch}
        packed = [key for key in batch if files[key] <= reader.graphs.keys()]
        name = uuid4().hex[:16]
        if packed:
            graphs = {file: reader.graphs[file] for key in packed for file in sorted(files[key])}
            packs.write_graphs(folder, name, graphs)
            if any(generation.sources[key].chunks for key in packed):
                row_files.write_tables(packs.rows_file(folder, name), _rows_of_sources(reader.parts, packed))
            found |= dict.fromkeys(packed, name)
    return found


def _graph_files(source: PublishedSource) -> set[str]:
    return {source.graph.nodes, source.graph.triples} if source.graph else set()


def _rows_of_sources(parts: Parts, keys: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of some sources, those of each by path and chunk_index, as many in a table as in a batch of a file."""
    of_sources = ([*row_files.tables_of(parts.of_source(key))] for key in keys)
    rows = pa.concat_tables(
        pa.concat_tables(tables).sort_by([("path", "ascending"), ("chunk_index", "ascending")])
        if len(tables) > 1
        else tables[0]
        for tables in of_sources
        if tables
    )
    for start in range(0, rows.num_rows, row_files.ROWS_A_BATCH):
        yield rows.slice(start, row_files.ROWS_A_BATCH)


def with_packs(current: Generation, base: Generation, packed: Mapping[str, str]) -> Generation:
    """The current generation with the packs of those sources that have not changed since `base`."""
    same = {key: name for key, name in packed.items() if current.sources.get(key) == base.sources[key]}
    named = {key: replace(current.sources[key], pack=name, rows=()) for key, name in same.items()}
    return replace(current, sources={**current.sources, **named})


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


def why_due(layout: Layout) -> str | None:
    """Why maintenance is due; None where it is not, or what is published cannot be read. No library is loaded."""
    return next((reason for _, _, reason in _due(layout)), None)


def _due(layout: Layout) -> Iterator[tuple[_Pointer, Generation, str]]:
    """The generations whose tables need maintenance, and why."""
    for pointer in _POINTERS:
        with suppress(StoreError):
            generation = pointer.read(layout)
            reason = (why_compaction(generation) or why_packing(generation)) if generation else None
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
    on_wait: Callable[[str], None] = lambda _owner: None,
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
        copy = self._follow(Copy.made(self.layout, self.base)) if why_compaction(self.base) else None
        packed = self._packed()
        synced = self._made()
        sync(synced)
        with publishing:
            locked = time.monotonic()
            current = self._current()
            if current is None:
                return None
            maintained = with_packs(current, self.base, packed)
            if copy is not None:
                copy = copy.brought_to(current)
                copy.verify()
                sync([path for path, now in self._made().items() if synced.get(path) != now])
                maintained = copy.put_in_place(maintained)
            if packed:
                sync(packs.move(self.layout, self.layout.maintenance / _PACKS))
            self.pointer.replace(self.layout, maintained)
            cleanup.remove_old_generations(self.layout)
            locked_s = time.monotonic() - locked
        return Maintained(
            current.number,
            sum(source.chunks for source in current.sources.values()) if copy else 0,
            len(packed),
            len(differing(self.base, current)),
            time.monotonic() - began,
            locked_s,
        )

    def _packed(self) -> dict[str, str]:
        """Pack what is due; returns the pack of each source."""
        if why_packing(self.base) is None:
            return {}
        return pack(self.layout, self.base, packs.to_pack(self.base), self.layout.maintenance / _PACKS)

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
