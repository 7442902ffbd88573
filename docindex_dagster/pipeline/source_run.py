"""Context of a run: everything that its stages know in addition to their inputs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from docindex_dagster.chunking.summaries import Summariser, create_summariser
from docindex_dagster.core.events import Event, Notice, Waiting, emit
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.graph.extraction import GraphPlan
from docindex_dagster.sources.model import Source


@dataclass(frozen=True, slots=True)
class SourceRun:
    """A run of one source, which holds the lock of that source.

    Attributes:
        settings: The settings at the start of the run.
        source: The source to index.
        load_embedder: Returns the embedding model, which loads its weights on first use.
        is_full: Whether to reuse nothing, and compare every row of the stores.
        is_verifying: Whether to read every file regardless of timestamps, and compare every row of the stores.
        only: The paths of the files to check, in the form used in tables; empty for all.
        report: Called with each event.
        wait_for_tables: Returns once the tables of all earlier stages are on disk.
        note: Records the run's current activity in the lock.
        is_publishing: Whether the caller already holds the publication lock.
    """

    settings: Settings
    source: Source
    load_embedder: Callable[[], Embedder]
    is_full: bool = False
    is_verifying: bool = False
    only: tuple[str, ...] = ()
    report: Callable[[Event], None] = emit
    wait_for_tables: Callable[[], None] = lambda: None
    note: Note = lambda _text: None
    is_publishing: bool = False

    @property
    def key(self) -> str:
        """Key of the source."""
        return self.source.key

    @property
    def layout(self) -> Layout:
        """Layout of the home."""
        return Layout(self.settings.home)

    @property
    def graph_plan(self) -> GraphPlan:
        """Plan for the content of the graph."""
        return GraphPlan(self.settings.graph, self.settings.llm).of(self.layout, self.key)

    @property
    def wants_references(self) -> bool:
        """Whether the graph includes the references of code files."""
        return self.settings.graph.enabled and self.settings.graph.code

    @property
    def summariser(self) -> Summariser | None:
        """Writer of summaries; None if the settings disable them."""
        return create_summariser(self.settings, self.key)

    def notice(self, text: str) -> None:
        """Warn the user about a problem that does not stop the run."""
        self.report(Notice(self.key, text))

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the publication lock, and emit an event if the run has to wait for it."""
        if self.is_publishing:
            yield
            return

        def wait(owner: str) -> None:
            self.report(Waiting(self.key, f"another publication ({owner})"))

        with exclusive(self.layout.publication_lock, f"{self.key} of process {os.getpid()}", wait):
            yield
