"""One run over one source: what its stages may know of the world around their rows."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from docindex_dagster.chunking.summaries import Summariser, summariser_of
from docindex_dagster.core.events import Event, Notice, Waiting, emit
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.graph.extraction import GraphPlan
from docindex_dagster.sources.model import Source


@dataclass(frozen=True, slots=True)
class SourceRun:
    """A run, which holds the lock of its source.

    Attributes:
        settings: as they were when it began.
        source: what is indexed.
        load_embedder: gives the model of the vectors; its weights are loaded when it first embeds.
        is_full: nothing may be reused, and every row of the stores is compared.
        is_verifying: no time stamp and no store is trusted: every file is read, and every row compared.
        only: names of the files to look at, as tables have them; none for all.
        report: called with each event.
        wait_for_tables: returns when all that earlier stages made is on the disk.
        note: writes into the lock what the run is doing.
        is_publishing: the caller holds the lock under which generations are written.
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
        """Of its source."""
        return self.source.key

    @property
    def layout(self) -> Layout:
        """Where the index lives."""
        return Layout(self.settings.home)

    @property
    def graph_plan(self) -> GraphPlan:
        """What goes into the graph."""
        return GraphPlan(self.settings.graph, self.settings.llm).of(self.layout, self.key)

    @property
    def wants_references(self) -> bool:
        """Whether what code says about names goes into the graph."""
        return self.settings.graph.enabled and self.settings.graph.code

    @property
    def summariser(self) -> Summariser | None:
        """Who writes summaries, if the settings want any."""
        return summariser_of(self.settings, self.key)

    def notice(self, text: str) -> None:
        """Warn the user of something that stops nothing."""
        self.report(Notice(self.key, text))

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock under which generations are written, and say for whom the run waits."""
        if self.is_publishing:
            yield
            return

        def wait(owner: str) -> None:
            self.report(Waiting(self.key, f"another publication ({owner})"))

        with exclusive(self.layout.publication_lock, f"{self.key} of process {os.getpid()}", wait):
            yield
