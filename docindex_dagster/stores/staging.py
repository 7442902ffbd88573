"""Stores that are being written and that no reader sees yet, until they go live by one file replacement."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.files import reporting_full_disk, sync_new
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.protocol import Embedder, endpoint_of
from docindex_dagster.stores import clean_up, lance_table, tantivy_index
from docindex_dagster.stores.generation import Generation, PublishedSource

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
            clean_up.remove_old_generations(layout)

    @classmethod
    def _open(cls, layout: Layout, model: Model, base: Generation | None, *, rewritten: bool) -> "Staged":
        files_before = lance_table.files(layout)
        pinned = base.table_version if base else None
        name = base.table if base else lance_table.table_name(model.name)
        table = lance_table.open_for_writing(layout, name, model.dimension, pinned)
        folder = layout.tantivy / f"{clean_up.next_number(layout):08d}"
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
