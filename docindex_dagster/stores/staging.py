"""Stores that are being written and that no reader sees yet, until they go live by one file replacement."""

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
    """The model whose vectors are published: its name, the number of values of a vector, and the API that has it."""

    name: str
    dimension: int
    endpoint: str | None = None  # None: it runs on this machine

    @classmethod
    def of(cls, embedder: Embedder) -> "Model":
        """What the stores need to know of an embedder."""
        return cls(embedder.name, embedder.dimension, endpoint_of(embedder))


@dataclass(frozen=True, slots=True)
class Staged:
    """A table and an index that start as the generation `base`, or empty where it is None."""

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
        """The stores, open for writing; with `rewritten`, they hold the rows of `base`, and share no file with it.

        What did not go live in the block is removed; the table is reverted by the next writer.

        Raises:
            FullDiskError: there is no space for them.
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
        """Put what was written on the disk and let `write` name it; an entry of None takes its source out.

        `changed_rows` is the number of rows that were written or deleted, which no index of LanceDB has yet.
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
    """What a publication starts from: `base`, or empty stores, and why. `known` is what was published, if known.

    `serving` is what searches use while it is of another model: the publication is of the one that is to take over.
    """

    base: Generation | None
    known: Generation | None
    rebuild_because: str | None = None
    is_damaged: bool = False  # so there is no rolling back to what was published
    serving: Generation | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether `base` could have taken over, as after a rollback to fewer sources."""
        return bool(self.base and self.serving and takeover.holds_all(self.base, self.serving))

    def anew(self, problem: str) -> "Start":
        """The start from empty stores, since `base` is damaged."""
        return replace(self, base=None, rebuild_because=problem, is_damaged=self.serving is None)

    def name(self, layout: Layout, generation: Generation) -> None:
        """Let readers use a new generation, or `NEXT` name it while it must wait."""
        if self.serving is not None:
            takeover.hand_in(layout, generation, self.serving)
        else:
            self._publish(layout, generation)

    def _publish(self, layout: Layout, generation: Generation) -> None:
        if self.is_damaged:
            replace_generation(layout, replace(generation, previous=self.known.previous if self.known else ""))
        else:
            write_generation(layout, generation)

    def name_in_place(self, layout: Layout, generation: Generation) -> None:
        """Name `base` in another form."""
        (replace_next if self.serving is not None else replace_generation)(layout, generation)

    def left(self, generation: Generation) -> Takeover | None:
        """What is left to do until `generation` takes over; None where readers use it."""
        if self.serving is None or takeover.holds_all(generation, self.serving):
            return None
        return takeover.toward(self.serving, generation.model, generation)

    def news(self, generation: Generation) -> str:
        """What a new generation means for searches, where that is not what it always means."""
        if self.serving is None:
            return ""
        left = self.left(generation)
        if left is not None:
            return f"{left}; searches use {left.old if left.old != left.new else 'the old one'} until all are"
        if generation.model == self.serving.model:
            return "the index was built anew for this version of docindex, and searches use it now"
        return (
            f"all sources have vectors of {generation.model}: searches use them now, not those of {self.serving.model}"
        )


def start_of(layout: Layout, model: str) -> Start:
    """What a publication of a model starts from; a generation that was to take over and cannot any more is given up."""
    try:
        current = read_generation(layout)
    except StoreError as error:
        return Start(None, None, str(error))
    given_up = takeover.drop_other(layout, current, model)
    warnings = (given_up,) if given_up else ()
    if current is None or current.is_of(model):
        return Start(current, current, warnings=warnings)
    candidate = takeover.pending(layout)
    return Start(candidate, candidate or current, serving=current, warnings=warnings)
