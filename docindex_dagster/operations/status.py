"""Status: the state of each source, and whether its index is that of the present files."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

from pydantic import Field

from docindex_dagster.core import locks
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Holder
from docindex_dagster.core.settings import Settings
from docindex_dagster.operations.fields import Request
from docindex_dagster.sources import git, registry
from docindex_dagster.sources.history import RepositoryFigures
from docindex_dagster.sources.model import Source
from docindex_dagster.status import catalog, source_status
from docindex_dagster.status.source_status import Outcome, Runs, RunsOf, SourceState, State
from docindex_dagster.stores.takeover import Takeover

LOOK_S = 1.0  # for looking whether files have changed, unless a user asks for all of it
_LONGEST_LOOK_S = 10  # at one source that git is slow with, or for ever, where there is a budget


@dataclass(frozen=True, slots=True)
class Present:
    """One source.

    `is_current` says whether the index is known to be that of the present files and settings; None where that is
    unknown, or was not checked.
    """

    status: SourceState
    is_current: bool | None
    was_left: bool  # the time was over before it was checked
    work: Holder | None = None  # of a run that is at work on it


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source, with all that is reported of it. Times are UTC in ISO 8601."""

    source: str
    state: State
    problem: str | None  # why it needs attention, and what to do
    files: int
    chunks: int
    commits: int
    megabytes: float
    fallbacks: int  # files that are cut as text, since they could not be parsed
    lacks_of_graph: bool
    unlinked: int | None  # files whose edges its graph lacks in part as yet; None: it is complete
    changed_at: str  # when the content did that can be found
    checked_at: str | None  # when the last run ended well that looked at all files
    is_current: bool | None  # whether the index is that of the present files; None: not looked at
    last_run: Outcome | None
    run_id: str | None
    failure: str | None  # why the last run that ended failed
    repository: RepositoryFigures | None
    goes_over_to: str | None  # the model of the settings, as long as searches use another one
    is_done: bool | None  # whether the source has vectors of that one
    work: Holder | None  # of a run that is at work on it now


class StatusRequest(Request):
    """Report on each source."""

    look_s: float | None = Field(
        default=LOOK_S, ge=0, description="Seconds to look for changed files; null: as long as it takes."
    )


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """All sources that are declared, indexed or were run, by key.

    Attributes:
        sources: the sources.
        change: how far the index is on its way to another model; None if it is on none.
    """

    sources: list[Present]
    change: Takeover | None

    def rows(self) -> list[SourceStatus]:
        """Return a row for each source, for programs."""
        return [_as_status(present, self.change) for present in self.sources]


def status(settings: Settings, request: StatusRequest, runs_of: RunsOf, warn: Callable[[str], None]) -> StatusAnswer:
    """Return the status of all sources; remotes are not fetched.

    Args:
        settings: of the project.
        request: the request.
        runs_of: returns how runs ended.
        warn: called if that cannot be read.

    Raises:
        SettingsError: two sources have one key.
        EmbeddingError: the model of the settings is unknown.
        StoreError: what is published cannot be read.
    """
    declared, runs = registry.sources(settings), _known(settings, runs_of, warn)
    found = source_status.of_all(settings, catalog.entries_of(settings), runs, declared=declared)
    found.sort(key=lambda one: one.source)
    # Tables that machines share say it, and are not here: the sensors look.
    local = list(_on_disk(declared, found)) if settings.storage.url is None else []
    current = _look(settings, local, request.look_s)
    left = {source.key for source in local} - current.keys()
    layout = Layout(settings.home)
    sources = [
        Present(one, current.get(one.source), one.source in left, locks.holder(layout.source_lock(one.source)))
        for one in found
    ]
    return StatusAnswer(sources, source_status.change_of_model(settings))


def _known(settings: Settings, runs_of: RunsOf, warn: Callable[[str], None]) -> Mapping[str, Runs] | None:
    try:
        return runs_of(settings)
    except (DocindexError, OSError) as error:  # such as one for who may not write here
        warn(f"how runs ended is not known: {error}")
        return None


def _on_disk(declared: Mapping[str, Source], statuses: Iterable[SourceState]) -> Iterator[Source]:
    """The indexed sources whose files lie on this machine, and are there; none that a run has yet to link."""
    for one in statuses:
        source = declared.get(one.source)
        if one.entry and one.entry.unlinked is None and source and source.remote is None and source.path.is_dir():
            yield source


def _look(settings: Settings, sources: Iterable[Source], budget_s: float | None) -> dict[str, bool | None]:
    """Whether the files of sources are those of the index, for as many as the budget allows; None: unknown."""
    from docindex_dagster.pipeline.up_to_date import is_current  # it loads what runs need

    started = time.monotonic()
    found: dict[str, bool | None] = {}
    for source in sources:
        if budget_s is not None and time.monotonic() - started > budget_s:
            break
        try:
            with git.within(inf if budget_s is None else _LONGEST_LOOK_S):
                found[source.key] = is_current(settings, source)
        except (DocindexError, OSError):
            found[source.key] = None
    return found


def _as_status(present: Present, change: Takeover | None) -> SourceStatus:
    one = present.status
    entry, runs = one.entry, one.runs
    is_indexed = entry is not None or one.state == "waiting for the takeover"
    return SourceStatus(
        source=one.source,
        state=one.state,
        problem=one.problem,
        files=entry.files if entry else 0,
        chunks=entry.chunks if entry else 0,
        commits=entry.commits if entry else 0,
        megabytes=round(entry.text_bytes / 1e6, 2) if entry else 0.0,
        fallbacks=entry.fallbacks if entry else 0,
        lacks_of_graph=bool(entry and entry.lacks_of_graph),
        unlinked=entry.unlinked if entry else None,
        changed_at=entry.changed_at if entry else "",
        checked_at=None if runs.checked_at is None else datetime.fromtimestamp(runs.checked_at, UTC).isoformat(),
        is_current=present.is_current,
        last_run=runs.outcome,
        run_id=runs.run_id,
        failure=runs.failure,
        repository=entry.repository if entry else None,
        goes_over_to=change.new if change else None,
        is_done=one.source not in change.missing and is_indexed if change else None,
        work=present.work,
    )
