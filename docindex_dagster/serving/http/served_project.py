"""What a server serves: one project, and what others gave it to start and list runs."""

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
class Served:
    """A project as its server knows it, and the memory of the domain that it is bound to, if it is to one."""

    live: Live
    access: Access
    runs_of: "RunsOf"
    jobs: Jobs
    memory: Memory | None = None

    @property
    def settings(self) -> Settings:
        """As docindex.toml has them now.

        Raises:
            SettingsError: they are wrong.
        """
        return self.live.settings

    def reading(self, ask: Callable[[Reader], _Answer]) -> _Answer:
        """An answer of one generation, the one that is published now.

        Raises:
            StoreError: nothing is published, or it cannot be read.
        """
        return self.live.reading(ask)

    def viewing(self, ask: Callable[[View], _Answer], warn: Callable[[str], None] = ignore_warning) -> _Answer:
        """The same of an operation; paths are those of sources, never on the disk of the server.

        Raises:
            StoreError: as `reading`.
        """
        return self.reading(lambda reader: ask(self.view(reader, warn)))

    def view(self, reader: Reader, warn: Callable[[str], None] = ignore_warning) -> View:
        """A generation as clients see it."""
        return View(self.settings, reader, warn, is_local=False)

    def source(self, key: str) -> Source:
        """A declared source.

        Raises:
            ProblemError: there is none.
        """
        found = registry.sources(self.settings).get(key)
        if found is None:
            raise ProblemError("unknown-source", f"there is no source {key}")
        return found


def _served(request: Request) -> Served:
    served: Served = request.app.state.served
    return served


Project = Annotated[Served, Depends(_served)]
