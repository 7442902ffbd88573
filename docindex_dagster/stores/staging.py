"""Staged stores: written out of readers' sight, then published by replacing a single file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import reporting_full_disk, sync_new
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.protocol import Embedder, endpoint_of
from docindex_dagster.stores import cleanup, lance_table, takeover, tantivy_index
from docindex_dagster.stores.generation import (
    Generation,
    PublishedSource,
    read_generation,
    replace_generation,
    replace_next,
    write_generation,
)
from docindex_dagster.stores.takeover import Takeover

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from tantivy import Index


@dataclass(frozen=True, slots=True)
class Model:
    """The model of the published vectors: its name, the dimension, and the endpoint of its API."""

    name: str
    dimension: int
    endpoint: str | None = None  # None: it runs on this machine

    @classmethod
    def of(cls, embedder: Embedder) -> "Model":
        """Create the description of an embedder for the stores."""
        return cls(embedder.name, embedder.dimension, endpoint_of(embedder))


@dataclass(frozen=True, slots=True)
class Staged:
    """A table and an index that start as copies of the generation `base`, or empty if it is None."""

    layout: Layout
    model: Model
    base: Generation | None
    table: "LanceTable"
    index: "Index"
    folder: Path
    files_before: Mapping[Path, tuple[int, ...] | None]

    @classmethod
    @contextmanager
    def opened(
        cls, layout: Layout, model: Model, base: Generation | None, *, rewritten: bool = False
    ) -> "Iterator[Staged]":
        """Open the stores for writing; with `rewritten`, they hold the rows of `base` but share no files with it.

        If the block does not publish the changes, their files are removed, and the next writer reverts the table.

        Raises:
            FullDiskError: the disk is too full.
        """
        try:
            with reporting_full_disk(layout.stores):
                yield cls._open(layout, model, base, rewritten=rewritten)
        finally:
            cleanup.remove_old_generations(layout)

    @classmethod
    def _open(cls, layout: Layout, model: Model, base: Generation | None, *, rewritten: bool) -> "Staged":
        files_before = lance_table.files(layout)
        pinned = base.table_version if base else None
        name = base.table if base else lance_table.table_name(model.name)
        table = lance_table.open_for_writing(layout, name, model.dimension, pinned)
        folder = layout.tantivy / f"{cleanup.next_number(layout):08d}"
        if base is not None and not rewritten:
            index = tantivy_index.clone(layout.tantivy / base.tantivy, folder)
        else:
            index = tantivy_index.create(folder)
        if base is not None and rewritten:
            table = lance_table.rewrite(layout, table, base.sources)
            tantivy_index.fill(index, lance_table.chunks(table))
        return cls(layout, model, base, table, index, folder, files_before)

    def go_live(
        self,
        entries: Mapping[str, PublishedSource | None],
        write: Callable[[Layout, Generation], None],
        *,
        changed_rows: int,
    ) -> Generation:
        """Sync the written files and let `write` publish them; an entry of None removes its source.

        `changed_rows` is the number of rows written or deleted, which the indexes of LanceDB do not cover yet.
        """
        base = self.base or Generation(0, self.model.name, self.table.name, 0, "")
        generation = replace(
            base,
            number=int(self.folder.name),
            table_version=self.table.version,
            tantivy=self.folder.name,
            changed_rows=base.changed_rows + changed_rows,
            endpoint=self.model.endpoint,
        )
        for key, entry in entries.items():
            generation = generation.with_source(key, entry)
        tantivy_index.share(self.folder)
        written = lance_table.written_since(self.layout, self.files_before) | set(self.folder.iterdir())
        sync_new(written, self.layout.home.parent)
        write(self.layout, generation)
        return generation


@dataclass(frozen=True, slots=True)
class Start:
    """The starting point of a publication: `base`, or empty stores and why. `known` is the last published state.

    `serving` is the generation that searches use during a migration; `base` is then the pending generation.
    """

    base: Generation | None
    known: Generation | None
    rebuild_because: str | None = None
    is_damaged: bool = False  # rules out a rollback to the published generation
    serving: Generation | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether `base` is ready to be published, for example after a rollback to fewer sources."""
        return bool(self.base and self.serving and takeover.holds_all_sources(self.base, self.serving))

    def from_empty(self, problem: str) -> "Start":
        """Return a copy that starts from empty stores because `base` is damaged."""
        return replace(self, base=None, rebuild_because=problem, is_damaged=self.serving is None)

    def publish(self, layout: Layout, generation: Generation) -> None:
        """Publish a new generation, or let `NEXT` name it while the migration is incomplete."""
        if self.serving is not None:
            takeover.publish_or_stage(layout, generation, self.serving)
        else:
            self._write_current(layout, generation)

    def _write_current(self, layout: Layout, generation: Generation) -> None:
        if self.is_damaged:
            replace_generation(layout, replace(generation, previous=self.known.previous if self.known else ""))
        else:
            write_generation(layout, generation)

    def replace_base(self, layout: Layout, generation: Generation) -> None:
        """Replace `base` with a modified form of itself."""
        (replace_next if self.serving is not None else replace_generation)(layout, generation)

    def remaining(self, generation: Generation) -> Takeover | None:
        """Return the remaining migration until `generation` is published; None if readers use it."""
        if self.serving is None or takeover.holds_all_sources(generation, self.serving):
            return None
        return takeover.progress_to(self.serving, generation.model, generation)

    def describe_change(self, generation: Generation) -> str:
        """Return a message if a new generation changes what searches use or is pending; otherwise empty."""
        if self.serving is None:
            return ""
        remaining = self.remaining(generation)
        if remaining is not None:
            old = remaining.old if remaining.old != remaining.new else "the old index"
            return f"{remaining}. Searches use {old} until then"
        if generation.model == self.serving.model:
            return "the index was rebuilt for this version of docindex, and searches now use it"
        return f"all sources have vectors of {generation.model}: searches now use them instead of {self.serving.model}"


def start_of(layout: Layout, model: str) -> Start:
    """Return the starting point for publishing vectors of a model; discards a pending generation that is obsolete."""
    try:
        current = read_generation(layout)
    except StoreError as error:
        return Start(None, None, str(error))
    discarded = takeover.drop_other(layout, current, model)
    warnings = (discarded,) if discarded else ()
    if current is None or current.is_of(model):
        return Start(current, current, warnings=warnings)
    candidate = takeover.pending(layout)
    return Start(candidate, candidate or current, serving=current, warnings=warnings)
