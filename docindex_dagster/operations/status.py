"""Status: the state of each source, and whether its index is up to date."""

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
from docindex_dagster.sources.history import RepositoryStatistics
from docindex_dagster.sources.model import Source
from docindex_dagster.status import catalog, source_status
from docindex_dagster.status.source_status import Outcome, Runs, RunsOf, SourceState, State
from docindex_dagster.stores.takeover import Takeover

LOOK_S = 1.0  # budget for checking files for changes, unless the user requests a full check
_MAX_LOOK_S = 10  # per source, in case git is slow or hangs; applies only with a budget


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """The current state of a source.

    `is_current` tells whether the index is known to match the current files and settings. None means unknown or not
    checked.
    """

    status: SourceState
    is_current: bool | None
    was_left: bool  # the budget was used up before it was checked
    work: Holder | None = None  # the run that is working on it


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The reported state of a source. Times are UTC in ISO 8601."""

    source: str
    state: State
    problem: str | None  # why it needs attention, and how to fix it
    files: int
    chunks: int
    commits: int
    megabytes: float
    fallbacks: int  # files chunked as plain text because they could not be parsed
    lacks_of_graph: bool
    unlinked: int | None  # files whose edges are still incomplete; None if the graph is complete
    changed_at: str  # when the searchable content last changed
    checked_at: str | None  # when the last successful run that checked all files ended
    is_current: bool | None  # whether the index matches the current files; None if not checked
    last_run: Outcome | None
    run_id: str | None
    failure: str | None  # why the last ended run failed
    repository: RepositoryStatistics | None
    goes_over_to: str | None  # the configured model, while searches still use another one
    is_done: bool | None  # whether the source has vectors of the configured model
    work: Holder | None  # the run that is working on it now


class StatusRequest(Request):
    """Report the state of each source."""

    look_s: float | None = Field(
        default=LOOK_S, ge=0, description="Maximum seconds to spend checking files for changes; null for no limit."
    )


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """All sources that are declared, indexed or have runs, by key.

    Attributes:
        sources: the sources.
        change: the progress of the change to another model; None if there is none.
    """

    sources: list[CheckedSource]
    change: Takeover | None

    def rows(self) -> list[SourceStatus]:
        """Return a row per source for programs."""
        return [_as_status(present, self.change) for present in self.sources]


def status(settings: Settings, request: StatusRequest, runs_of: RunsOf, warn: Callable[[str], None]) -> StatusAnswer:
    """Return the status of all sources. Remotes are not fetched.

    Args:
        settings: the project's settings.
        request: the request.
        runs_of: returns the outcomes of runs.
        warn: called if the outcomes cannot be read.

    Raises:
        SettingsError: Two sources have the same key.
        EmbeddingError: The configured model is unknown.
        StoreError: The published index cannot be read.
    """
    declared, runs = registry.sources(settings), _read_outcomes(settings, runs_of, warn)
    found = source_status.states_of_all(settings, catalog.entries_of(settings), runs, declared=declared)
    found.sort(key=lambda one: one.source)
    # With shared stores, the tables are elsewhere, and sensors check for changes.
    local = list(_on_disk(declared, found)) if settings.storage.url is None else []
    current = _check_sources(settings, local, request.look_s)
    unchecked = {source.key for source in local} - current.keys()
    layout = Layout(settings.home)
    sources = [
        CheckedSource(
            one, current.get(one.source), one.source in unchecked, locks.holder(layout.source_lock(one.source))
        )
        for one in found
    ]
    return StatusAnswer(sources, source_status.change_of_model(settings))


def _read_outcomes(settings: Settings, runs_of: RunsOf, warn: Callable[[str], None]) -> Mapping[str, Runs] | None:
    try:
        return runs_of(settings)
    except (DocindexError, OSError) as error:  # for example, the user may not write here
        warn(f"cannot read the outcomes of runs: {error}")
        return None


def _on_disk(declared: Mapping[str, Source], statuses: Iterable[SourceState]) -> Iterator[Source]:
    """Yield the indexed sources whose files are on this machine, except those that are not linked yet."""
    for one in statuses:
        source = declared.get(one.source)
        if one.entry and one.entry.unlinked is None and source and source.remote is None and source.path.is_dir():
            yield source


def _check_sources(settings: Settings, sources: Iterable[Source], budget_s: float | None) -> dict[str, bool | None]:
    """Return whether each source matches its index, as far as the budget allows; None if unknown."""
    from docindex_dagster.pipeline.up_to_date import is_current  # loads the modules that runs need

    started = time.monotonic()
    found: dict[str, bool | None] = {}
    for source in sources:
        if budget_s is not None and time.monotonic() - started > budget_s:
            break
        try:
            with git.within(inf if budget_s is None else _MAX_LOOK_S):
                found[source.key] = is_current(settings, source)
        except (DocindexError, OSError):
            found[source.key] = None
    return found


def _as_status(present: CheckedSource, change: Takeover | None) -> SourceStatus:
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
