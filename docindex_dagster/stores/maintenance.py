"""Maintenance: work that keeps searches fast and reclaims disk space, but takes too long for a publication.

A copy of the published table, made of hard links, is compacted and indexed in a separate folder. This may take minutes,
while publications continue; the files of small sources are packed there as well. Then, briefly under the publication
lock, rows published in the meantime are copied over, and the same generation is pointed to the result. If maintenance
is killed before that, the next one removes its leftovers.
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

# A search scans each fragment of the table that no index covers, and the manifest lists all fragments. Each publication
# of a file adds one. Compacting 20 or 300 of them costs the same 0.2 s.
_MAX_VERSIONS = 20
# Deleted rows are skipped one by one. Below these limits the cost is negligible; larger tables tolerate more.
_MIN_CHANGED_ROWS, _MAX_CHANGED_SHARE = 10_000, 0.1
# Up to this many rows are copied under the lock, in less than a second; more are copied before taking it.
_FEW_ROWS = 5_000
_ROWS_PER_BATCH = 20_000
# Opening the files of this many sources takes about 20 ms, and a smaller pack would soon be rewritten.
_MAX_LOOSE = 50
_ROUNDS = 5
_MARKER = "wanted"  # marker file in the maintenance folder: its removal cancels the maintenance
_PACKS = "packs"  # subfolder of it


def why_compaction(generation: Generation) -> str | None:
    """Return why the table of a generation should be compacted; None if it need not be."""
    versions = generation.table_version - generation.optimized_version
    if versions >= _MAX_VERSIONS:
        return f"{versions} versions of the table since the last compaction"
    rows = sum(source.chunks for source in generation.sources.values())
    if generation.changed_rows >= max(_MIN_CHANGED_ROWS, rows * _MAX_CHANGED_SHARE):
        return f"{generation.changed_rows:,} of {rows:,} rows changed since the last compaction"
    return None


@dataclass(frozen=True, slots=True)
class Copy:
    """A compacted copy of a generation's table in the maintenance folder, which nothing else uses.

    Attributes:
        holds: the generation whose rows it has.
        optimized: its version after compaction.
        changed: number of rows written or deleted since.
    """

    layout: Layout
    table: "LanceTable"
    holds: Generation
    optimized: int
    changed: int = 0

    @classmethod
    def create(cls, layout: Layout, base: Generation) -> "Copy":
        """Link the files of a generation's table and compact them, which may take minutes."""
        name = f"{lance_table.table_name(base.model)}-{uuid4().hex[:8]}"
        table = lance_table.link_version(layout, base.table, base.table_version, layout.maintenance, name)
        lance_table.drop_other_versions(table)
        return cls(layout, table, base, table.version)

    def is_far_behind(self, current: Generation) -> bool:
        """Return whether copying the differences to a generation takes long."""
        return _rows(changed_sources(self.holds, current), current) > _FEW_ROWS

    def updated_to(self, current: Generation) -> "Copy":
        """Return the copy updated to the rows of another generation.

        Raises:
            DamagedStoreError: its rows differ after the update.
        """
        return replace(self, holds=current, changed=self.changed + self._apply_changes(current))

    def install(self, current: Generation) -> Generation:
        """Make it the table of the generation it holds; the caller publishes the returned generation.

        The caller must hold the publication lock and have synced the copy.
        """
        lance_table.move_into_place(self.layout, self.table, self.layout.maintenance, current.table)
        return replace(
            current,
            table=self.table.name,
            table_version=self.table.version,
            optimized_version=self.optimized,
            changed_rows=self.changed,
        )

    def verify(self) -> None:
        """Compare its number of rows per source with the published numbers.

        Raises:
            DamagedStoreError: they differ.
        """
        held = lance_table.numbers(self.table)
        expected = {key: source.chunks for key, source in self.holds.sources.items() if source.chunks}
        if held != expected:
            key = min(key for key in held.keys() | expected.keys() if held.get(key, 0) != expected.get(key, 0))
            numbers = f"expected {expected.get(key, 0)} rows of {key}, got {held.get(key, 0)}"
            raise damaged(f"maintenance of the LanceDB table: {numbers}")

    def _apply_changes(self, current: Generation) -> int:
        """Apply the row changes from the held generation to another; return the number of rows."""
        changed_keys = changed_sources(self.holds, current)
        if not changed_keys:
            return 0
        published = lance_table.open_for_reading(self.layout, current.table, current.table_version)
        changed = 0
        for key in sorted(changed_keys - current.sources.keys()):
            lance_table.remove(self.table, key)
            changed += self.holds.sources[key].chunks
        for keys in _batches({key: current.sources[key] for key in sorted(changed_keys & current.sources.keys())}):
            chunks, vectors = lance_table.rows_of(published, keys)
            expected = lance_table.expected(chunks, vectors)
            changed += lance_table.reconcile(self.table, keys, chunks, vectors, expected).written
            if text := disagreement(lance_table.held(self.table, keys), expected):
                raise damaged(f"maintenance of {keys[0]}: {text}")
        return changed


def changed_sources(left: Generation, right: Generation) -> set[str]:
    """Return the sources whose rows differ between two generations."""
    return {
        key
        for key in left.sources.keys() | right.sources.keys()
        if _version(left.sources.get(key)) != _version(right.sources.get(key))
    }


def _version(source: PublishedSource | None) -> str | None:
    return source.version if source else None


def _rows(keys: Iterable[str], generation: Generation) -> int:
    """Return the number of rows of sources in a generation."""
    return sum(generation.sources[key].chunks for key in keys if key in generation.sources)


def _batches(sources: Mapping[str, PublishedSource]) -> Iterator[list[str]]:
    """Group keys of sources into batches of about 20,000 rows."""
    batch: list[str] = []
    rows = 0
    for key, source in sources.items():
        batch.append(key)
        rows += source.chunks
        if rows >= _ROWS_PER_BATCH:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def why_packing(generation: Generation) -> str | None:
    """Return why small sources should be packed; None if few have their own files."""
    loose = len(packs.unpacked_sources(generation))
    return f"{loose} small sources have files of their own" if loose >= _MAX_LOOSE else None


def pack(layout: Layout, generation: Generation, keys: Sequence[str], folder: Path) -> dict[str, str]:
    """Write packs of sources into a folder; return the pack of each source whose graph is readable."""
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
    """Yield the rows of sources in batches for a row file; each source is sorted by path and chunk_index."""
    tables_by_source = ([*row_files.tables_of(parts.of_source(key))] for key in keys)
    rows = pa.concat_tables(
        pa.concat_tables(tables).sort_by([("path", "ascending"), ("chunk_index", "ascending")])
        if len(tables) > 1
        else tables[0]
        for tables in tables_by_source
        if tables
    )
    for start in range(0, rows.num_rows, row_files.ROWS_A_BATCH):
        yield rows.slice(start, row_files.ROWS_A_BATCH)


def with_packs(current: Generation, base: Generation, packed: Mapping[str, str]) -> Generation:
    """Return the current generation with the packs of all sources that have not changed since `base`."""
    same = {key: name for key, name in packed.items() if current.sources.get(key) == base.sources[key]}
    named = {key: replace(current.sources[key], pack=name, rows=()) for key, name in same.items()}
    return replace(current, sources={**current.sources, **named})


@dataclass(frozen=True, slots=True)
class Maintained:
    """The result of maintaining a generation."""

    generation: int
    rows: int  # in the compacted table; 0 if none was compacted
    packed: int  # number of sources
    brought_over: int  # sources published or withdrawn in the meantime
    seconds: float
    locked_s: float  # how long publications were blocked


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A file that names a generation, with functions to read it and to replace it by a modified form."""

    read: Callable[[Layout], Generation | None]
    replace: Callable[[Layout, Generation], None]


_POINTERS = (_Pointer(read_generation, replace_generation), _Pointer(takeover.pending, replace_next))


def why_due(layout: Layout) -> str | None:
    """Return why maintenance is due; None if it is not, or the generations are unreadable. Loads no library."""
    return next((reason for _, _, reason in _due(layout)), None)


def _due(layout: Layout) -> Iterator[tuple[_Pointer, Generation, str]]:
    """Yield the generations whose stores need maintenance, and why."""
    for pointer in _POINTERS:
        with suppress(StoreError):
            generation = pointer.read(layout)
            reason = (why_compaction(generation) or why_packing(generation)) if generation else None
            if generation and reason and generation.schema_version == SCHEMA_VERSION:  # others will be replaced
                yield pointer, generation, reason


def bring_up_to_date(layout: Layout) -> bool:
    """Maintain the stores if it is due, ignoring errors; return whether it was done.

    Publications and searches also work without maintenance.
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
    """Compact and index one table for which it is due, and publish it; do nothing if another process is maintaining.

    The caller must not hold the publication lock. Publications in the meantime are kept. If the copy cannot be updated
    to them, it is discarded.

    Args:
        layout: of the home with the index.
        on_wait: called with the owner of the publication lock if this call must wait.
        publishing: held while publishing the result, instead of the publication lock.

    Raises:
        DamagedStoreError: a table cannot be read.
        FullDiskError: the disk is too full for the copy; the published index is unchanged.
    """
    owner = f"maintenance of the stores, process {os.getpid()}"
    held = publishing or exclusive(layout.publication_lock, owner, on_wait)
    with exclusive_if_free(layout.maintenance_lock, owner) as is_free:
        due = next(_due(layout), None) if is_free else None
        if due is None:
            return []
        pointer, base, _ = due
        done = _Work(layout, pointer, base).run(held)
        return [done] if done else []


@dataclass(frozen=True, slots=True)
class _Work:
    """Maintenance of one generation, in a separate folder until it is published."""

    layout: Layout
    pointer: _Pointer
    base: Generation

    def run(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        """Do the work and publish it; return None if it became obsolete."""
        folder = self.layout.maintenance
        remove_tree(folder)  # leftovers of a killed process
        try:
            folder.mkdir(parents=True)
            (folder / _MARKER).touch()
            with reading_stores(), reporting_full_disk(folder):
                return self._run(publishing)
        finally:
            remove_tree(folder)

    def _run(self, publishing: AbstractContextManager[object]) -> Maintained | None:
        started = time.monotonic()
        copy = self._follow(Copy.create(self.layout, self.base)) if why_compaction(self.base) else None
        packed = self._pack_sources()
        synced = self._stamps()
        sync(synced)
        with publishing:
            locked = time.monotonic()
            current = self._current()
            if current is None:
                return None
            maintained = with_packs(current, self.base, packed)
            if copy is not None:
                copy = copy.updated_to(current)
                copy.verify()
                sync([path for path, now in self._stamps().items() if synced.get(path) != now])
                maintained = copy.install(maintained)
            if packed:
                sync(packs.move(self.layout, self.layout.maintenance / _PACKS))
            self.pointer.replace(self.layout, maintained)
            cleanup.remove_old_generations(self.layout)
            locked_s = time.monotonic() - locked
        return Maintained(
            current.number,
            sum(source.chunks for source in current.sources.values()) if copy else 0,
            len(packed),
            len(changed_sources(self.base, current)),
            time.monotonic() - started,
            locked_s,
        )

    def _pack_sources(self) -> dict[str, str]:
        """Write packs if due; return the pack of each packed source."""
        if why_packing(self.base) is None:
            return {}
        return pack(self.layout, self.base, packs.to_pack(self.base), self.layout.maintenance / _PACKS)

    def _current(self) -> Generation | None:
        """Return the current generation; None if the maintenance was cancelled, or the model or schema changed."""
        current = self.pointer.read(self.layout)
        is_wanted = (self.layout.maintenance / _MARKER).exists()
        return current if is_wanted and current is not None and current.is_like(self.base) else None

    def _follow(self, copy: Copy) -> Copy:
        """Copy over newly published rows until few are left."""
        for _ in range(_ROUNDS):
            current = self._current()
            if current is None or not copy.is_far_behind(current):
                break
            copy = copy.updated_to(current)
        return copy

    def _stamps(self) -> dict[Path, tuple[int, ...] | None]:
        """Return the files and folders in the maintenance folder with their stamps, to detect changes."""
        return {path: stamp(path) for path in self.layout.maintenance.rglob("*")}
