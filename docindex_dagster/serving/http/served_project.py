"""The project that a server serves, with its access rules, jobs and memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends, Request

from docindex_dagster.core.settings import Settings
from docindex_dagster.memory.memory import Memory
from docindex_dagster.operations.view import View
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.reranking.protocol import ignore_warning
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.security import Access
from docindex_dagster.serving.jobs.queue import Jobs
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.status.source_status import RunsOf

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class ServedProject:
    """A project as its server sees it, with the memory of the domain that the server is bound to, if any."""

    live: Live
    access: Access
    runs_of: "RunsOf"
    jobs: Jobs
    memory: Memory | None = None

    @property
    def settings(self) -> Settings:
        """The current settings from docindex.toml.

        Raises:
            SettingsError: they are invalid.
        """
        return self.live.settings

    def reading(self, ask: Callable[[Reader], _Answer]) -> _Answer:
        """Return an answer from one generation, the one currently published.

        Raises:
            StoreError: nothing is published, or the index cannot be read.
        """
        return self.live.reading(ask)

    def viewing(self, ask: Callable[[View], _Answer], warn: Callable[[str], None] = ignore_warning) -> _Answer:
        """Return the answer of an operation. Paths are relative to sources, never on the server's disk.

        Raises:
            StoreError: see `reading`.
        """
        return self.reading(lambda reader: ask(self.view(reader, warn)))

    def view(self, reader: Reader, warn: Callable[[str], None] = ignore_warning) -> View:
        """Return a generation as clients see it."""
        return View(self.settings, reader, warn, is_local=False)

    def source(self, key: str) -> Source:
        """Return a declared source.

        Raises:
            ProblemError: it does not exist.
        """
        found = registry.sources(self.settings).get(key)
        if found is None:
            raise ProblemError("unknown-source", f"source {key} not found")
        return found


def _served(request: Request) -> ServedProject:
    served: ServedProject = request.app.state.served
    return served


Project = Annotated[ServedProject, Depends(_served)]
