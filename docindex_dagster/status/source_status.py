"""State of each source: whether it is declared, present and indexed, how its runs ended, and what needs attention.

Also the progress of the index while it changes to another model.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.sources import registry, removed_sources
from docindex_dagster.sources.model import Source
from docindex_dagster.status.catalog import CatalogEntry, index_limitations, is_degraded
from docindex_dagster.stores import takeover
from docindex_dagster.stores.takeover import Takeover

Outcome = Literal["succeeded", "failed", "canceled", "running", "queued"]


class State(StrEnum):
    """The state of a source, as `docindex status`, the catalog, agents and sensors report it; the most urgent first."""

    FAILED = "failed"
    MISSING = "missing"
    NOT_CHECKED = "not checked lately"
    NO_LONGER_DECLARED = "no longer declared"
    NOT_INDEXED = "not indexed"
    DEGRADED = "degraded"
    WAITING_FOR_RUN = "waiting for its first run"
    WAITING_FOR_TAKEOVER = "waiting for the takeover"
    TAKEN_OUT = "taken out"
    OK = "ok"

    @property
    def needs_attention(self) -> bool:
        """Whether a user should act."""
        return self in _URGENT


_URGENT = (
    State.FAILED,
    State.MISSING,
    State.NOT_CHECKED,
    State.NO_LONGER_DECLARED,
    State.NOT_INDEXED,
    State.DEGRADED,
)
_HOUR_S = 60 * 60


@dataclass(frozen=True, slots=True)
class Runs:
    """The recorded outcomes of a source's runs. Times are seconds since 1970."""

    outcome: Outcome | None = None  # of the newest run; None if there was none
    run_id: str | None = None  # of the newest run
    checked_at: float | None = None  # when the last successful run that checked all files ended
    failed_id: str | None = None  # of the newest ended run, if it failed
    failure: str | None = None  # its reason, in one line


NO_RUNS = Runs()
# Returns the recorded runs of all sources; None if there is no record.
RunsOf = Callable[[Settings], Mapping[str, Runs] | None]


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source with its state."""

    source: str
    entry: CatalogEntry | None  # None if it is not searchable
    runs: Runs
    state: State
    problem: str | None = None  # why it needs attention, and how to fix it
    is_overdue: bool = False  # its last check is too long ago, whatever its state

    @property
    def needs_attention(self) -> bool:
        """Whether a user should act."""
        return self.state.needs_attention


def change_of_model(settings: Settings) -> Takeover | None:
    """Return the progress of the index's change to the configured model; None if it is complete.

    Raises:
        StoreError: The published index cannot be read.
    """
    return takeover.migration_progress(Layout(settings.home), load_embedder(settings.embedding).name)


def waiting_for_takeover(layout: Layout) -> set[str]:
    """Return the sources that cannot be searched until the index has changed to another model."""
    candidate = takeover.pending(layout)
    return set(candidate.sources) if candidate else set()


def states_of_all(
    settings: Settings,
    entries: list[CatalogEntry],
    runs: Mapping[str, Runs] | None,
    now: float | None = None,
    *,
    declared: Mapping[str, Source] | None = None,
) -> list[SourceState]:
    """Return the states of all sources that are declared, indexed or have runs; those that need attention first.

    Args:
        settings: the declared sources, and the maximum age of a check.
        entries: the catalog.
        runs: the recorded runs by source; a missing source has none. None if there is no record, or it cannot be
            read; then no state depends on runs.
        now: seconds since 1970. Default: the current time.
        declared: the declared sources, if the caller has read them.

    Raises:
        SettingsError: Two sources have the same key.
    """
    oldest = (time.time() if now is None else now) - settings.schedule.max_age_hours * _HOUR_S
    declared = registry.sources(settings) if declared is None else declared
    taken_out = removed_sources.removed_keys(Layout(settings.home))
    waiting = waiting_for_takeover(Layout(settings.home))
    indexed = {entry.source: entry for entry in entries}
    found = []
    known = runs or {}
    for key in {*declared, *indexed, *known}:
        entry, its_runs = indexed.get(key), known.get(key, NO_RUNS)
        if key in taken_out and entry is None and key in declared:
            found.append(SourceState(key, None, its_runs, State.TAKEN_OUT))
            continue
        is_overdue = runs is not None and key in declared and _is_overdue(entry, its_runs, oldest)
        state, problem = _state(key, declared.get(key), entry, its_runs, is_overdue=is_overdue)
        if state is State.NOT_INDEXED and key in waiting:
            state, problem = State.WAITING_FOR_TAKEOVER, None
        found.append(SourceState(key, entry, its_runs, state, problem, is_overdue))
    return sorted(found, key=lambda status: (_urgency(status.state), status.source))


def _is_overdue(entry: CatalogEntry | None, runs: Runs, oldest: float) -> bool:
    if runs.checked_at is not None:
        return runs.checked_at < oldest
    return entry is not None and runs.failed_id is None and not _is_coming(runs)


def _is_coming(runs: Runs) -> bool:
    return runs.outcome in {"running", "queued"}


def _urgency(state: State) -> int:
    return _URGENT.index(state) if state.needs_attention else len(_URGENT)


def _state(
    key: str, source: Source | None, entry: CatalogEntry | None, runs: Runs, *, is_overdue: bool
) -> tuple[State, str | None]:
    """Return the most urgent state of a source, and how to fix it."""
    if source is None:
        return (
            State.NO_LONGER_DECLARED,
            f"no longer in docindex.toml; {command('docindex', 'source', 'remove', key)} removes it from the index",
        )
    if source.remote is None and not source.path.is_dir():
        kept = "; its index is kept" if entry else ""
        return State.MISSING, f"folder {source.path} not found: restore it, or fix docindex.toml{kept}"
    if runs.failed_id is not None:
        return State.FAILED, runs.failure
    return _state_of_checks(key, entry, runs, is_overdue=is_overdue)


def _state_of_checks(key: str, entry: CatalogEntry | None, runs: Runs, *, is_overdue: bool) -> tuple[State, str | None]:
    """Return the state of a source that is present and has not failed: whether it is indexed and was checked."""
    index = command("docindex", "index", key)
    again = f"check that the schedule and the sensors are running, or run {index}"
    if entry is None and _is_coming(runs):
        return State.WAITING_FOR_RUN, None
    if entry is None and runs.outcome is None:
        return State.NOT_INDEXED, f"it is not indexed yet: run {index}, or start `docindex ui`"
    if entry is None:
        return State.NOT_INDEXED, f"no run has indexed it: {again}"
    if is_overdue:
        known = "no recorded run has" if runs.checked_at is None else "no recent run has"
        return State.NOT_CHECKED, f"{known} checked all its files: {again}"
    if is_degraded(entry):
        return State.DEGRADED, f"{'; '.join(index_limitations(entry))}: {index} tries again and reports the details"
    return State.OK, None


def oldest_check_hours(statuses: list[SourceState], now: float) -> float:
    """Return the age in hours of the oldest last check among the declared sources; 0 if none is known."""
    times = [
        status.runs.checked_at
        for status in statuses
        if status.runs.checked_at is not None and status.state not in {State.NO_LONGER_DECLARED, State.TAKEN_OUT}
    ]
    return max(0.0, now - min(times)) / _HOUR_S if times else 0.0
