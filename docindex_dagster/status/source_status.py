"""How each source stands: whether it is declared, there and indexed, how its runs ended, and what needs attention.

And how the index as a whole does, while it goes over from one model to another.
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
from docindex_dagster.status.catalog import CatalogEntry, is_degraded, lacks
from docindex_dagster.stores import takeover
from docindex_dagster.stores.takeover import Takeover

Outcome = Literal["succeeded", "failed", "canceled", "running", "queued"]


class State(StrEnum):
    """How a source does, as `docindex status`, the catalogue, agents and sensors say; the most urgent first."""

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
        """Whether a user should do something about it."""
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
    """How the runs of a source ended, by the record of them. Times are seconds since 1970."""

    outcome: Outcome | None = None  # of the newest run; None: there was none
    run_id: str | None = None  # of the newest run
    checked_at: float | None = None  # when the last run ended well that looked at all files
    failed_id: str | None = None  # of the newest run that ended, where that one failed
    failure: str | None = None  # and its reason, in one line


NO_RUNS = Runs()
# Gives what is known of the runs of all sources; None where there is no record of them.
RunsOf = Callable[[Settings], Mapping[str, Runs] | None]


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source, with all that is known of it."""

    source: str
    entry: CatalogEntry | None  # None: nothing of it can be found
    runs: Runs
    state: State
    problem: str | None = None  # why it needs attention, and what to do
    is_overdue: bool = False  # its last check is too long ago, whatever else there is to say

    @property
    def needs_attention(self) -> bool:
        """Whether a user should do something about it."""
        return self.state.needs_attention


def change_of_model(settings: Settings) -> Takeover | None:
    """How far the index is on its way to the model that the settings name; None where it is there.

    Raises:
        StoreError: what is published cannot be read.
    """
    return takeover.under_way(Layout(settings.home), load_embedder(settings.embedding).name)


def waiting_for_takeover(layout: Layout) -> set[str]:
    """The sources that cannot be searched before the index has gone over to another model."""
    candidate = takeover.pending(layout)
    return set(candidate.sources) if candidate else set()


def of_all(
    settings: Settings,
    entries: list[CatalogEntry],
    runs: Mapping[str, Runs] | None,
    now: float | None = None,
    *,
    declared: Mapping[str, Source] | None = None,
) -> list[SourceState]:
    """How all sources stand that are declared, indexed or were run; those that need attention first.

    Args:
        settings: what is declared, and how old the last look at a source may be.
        entries: the catalogue.
        runs: what is known of the runs of each source; none of one that is missing here. None where there is no
            record of runs, or it cannot be read: then nothing is reported of them.
        now: seconds since 1970; the time of the call by default.
        declared: the declared sources, where the caller has read them.

    Raises:
        SettingsError: two sources have one key.
    """
    oldest = (time.time() if now is None else now) - settings.schedule.max_age_hours * _HOUR_S
    declared = registry.sources(settings) if declared is None else declared
    taken_out = removed_sources.all_of(Layout(settings.home))
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
    """The most urgent state of a source, and what to do about it."""
    if source is None:
        return (
            State.NO_LONGER_DECLARED,
            f"docindex.toml declares it no more; {command('docindex', 'source', 'remove', key)} takes it out",
        )
    if source.remote is None and not source.path.is_dir():
        kept = "; what is indexed of it stays" if entry else ""
        return State.MISSING, f"there is no folder {source.path}: bring it back, or mend docindex.toml{kept}"
    if runs.failed_id is not None:
        return State.FAILED, runs.failure
    return _state_of_checks(key, entry, runs, is_overdue=is_overdue)


def _state_of_checks(key: str, entry: CatalogEntry | None, runs: Runs, *, is_overdue: bool) -> tuple[State, str | None]:
    """Whether a source that is there, and did not fail, was looked at."""
    index = command("docindex", "index", key)
    again = f"are the schedule and the sensors running? {index} looks at it now"
    if entry is None and _is_coming(runs):
        return State.WAITING_FOR_RUN, None
    if entry is None and runs.outcome is None:
        return State.NOT_INDEXED, f"no run indexed it yet: {index} does, or `docindex ui`"
    if entry is None:
        return State.NOT_INDEXED, f"no run indexed it: {again}"
    if is_overdue:
        known = "no run is known that" if runs.checked_at is None else "it is too long ago that a run"
        return State.NOT_CHECKED, f"{known} looked at all its files: {again}"
    if is_degraded(entry):
        return State.DEGRADED, f"{'; '.join(lacks(entry))}: {index} tries again, and says what and why"
    return State.OK, None


def oldest_check_hours(statuses: list[SourceState], now: float) -> float:
    """How long ago the last check of that declared source was whose last check is the oldest; 0 where none is known."""
    times = [
        status.runs.checked_at
        for status in statuses
        if status.runs.checked_at is not None and status.state not in {State.NO_LONGER_DECLARED, State.TAKEN_OUT}
    ]
    return max(0.0, now - min(times)) / _HOUR_S if times else 0.0
