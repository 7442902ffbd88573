"""Outcomes of past runs, from Dagster's records: why a run failed, and whether to request the next one.

The records hold tens of thousands of runs, so the runs of all sources are read in bulk. Only one run per subject is
requested at a time, with a growing delay after repeated failures. Failure reasons are actionable lines, identical on
the command line, in the catalog and in alerts.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from inspect import isgeneratorfunction
from itertools import takewhile
from typing import Any, ParamSpec, TypeVar, cast

import dagster as dg

from docindex_dagster.core import errors
from docindex_dagster.defs.tags import (
    DECLINED_TAG,
    ENDED_AT_TAG,
    FULL_TAG,
    LOST_TAG,
    ONLY_TAG,
    PARTITION_TAG,
    REFUSED_TAG,
    VERIFY_TAG,
)
from docindex_dagster.status.source_status import NO_RUNS, Outcome, Runs

_OUTCOMES: dict[dg.DagsterRunStatus, Outcome] = {
    dg.DagsterRunStatus.SUCCESS: "succeeded",
    dg.DagsterRunStatus.FAILURE: "failed",
    dg.DagsterRunStatus.CANCELED: "canceled",
    dg.DagsterRunStatus.QUEUED: "queued",
    dg.DagsterRunStatus.NOT_STARTED: "queued",
}
_ENDED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
_DISCOVERY = dg.AssetKey("discovered_files")
_SMALLEST_PAGE = 50
# A page of this many runs per source mostly covers all sources; larger pages take longer than a second request.
_PAGE_PER_SOURCE = 1.25
_MOST_PAGES = 40
# Each failed run has its own log file, which takes some milliseconds to open.
_MOST_REASONS = 100
# Dagster takes half a second to create a requested run, and the next tick waits for it.
MOST_REQUESTS = 25
_FIRST_DELAY_S = 60
_LONGEST_DELAY_S = 6 * 60 * 60
# The first delay, doubled this often, exceeds the longest delay.
_MAX_RUNS_READ = 12
CANCELED = {dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED}
FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_P = ParamSpec("_P")
_R = TypeVar("_R")
INTERRUPTED = "stopped before it finished"
_KINDS = {
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
    dg.DagsterEventType.ENGINE_EVENT,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
}
_INTERRUPT = "DagsterExecutionInterruptedError"
_DOCINDEX_ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type)}
_LONGEST = 500  # characters in a failure reason


def runs_of_sources(
    instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None = None
) -> dict[str, Runs]:
    """Return the runs of sources that have any.

    Args:
        instance: The instance that records the runs.
        keys: The keys of the sources.
        ending: A run in its last step, which counts as successful.
    """
    found = _newest(instance, keys, ending)
    failed = sorted(key for key, runs in found.items() if runs.failed_id)
    reasons = {key: reason(instance, found[key].failed_id or "") for key in failed[:_MOST_REASONS]}
    unread = dict.fromkeys(failed[_MOST_REASONS:], "see the run")
    return {**found, **{key: replace(found[key], failure=text) for key, text in (reasons | unread).items()}}


def _newest(instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None) -> dict[str, Runs]:
    """Read runs, newest first, until the last successful run of each source is found.

    The first page covers all runs, which is fast and usually sufficient; further pages cover the remaining sources.
    The queries do not filter by status, because SQLite would use the index on statuses, which takes minutes.
    """
    found: dict[str, Runs] = {}
    is_settled: set[str] = set()
    size = max(_SMALLEST_PAGE, round(_PAGE_PER_SOURCE * len(keys)))
    remaining, cursor = set(keys), None
    for page_number in range(_MOST_PAGES):
        wanted = dg.RunsFilter(tags={PARTITION_TAG: sorted(remaining)}) if page_number else dg.RunsFilter()
        page = instance.get_run_records(wanted, limit=size, cursor=cursor)
        for record in page:
            key = record.dagster_run.tags.get(PARTITION_TAG)
            if key not in remaining:
                continue
            is_ending = ending is not None and record.dagster_run.run_id == ending.run_id
            found[key] = _add_older_run(
                found.get(key, NO_RUNS), record, is_settled=key in is_settled, is_ending=is_ending
            )
            run = record.dagster_run
            if is_ending or (run.status in _ENDED and not is_partial_success(run)):
                is_settled.add(key)
            if found[key].checked_at is not None:
                remaining.discard(key)
        if len(page) < size or not remaining:
            break
        cursor = page[-1].dagster_run.run_id
    return found


def _add_older_run(runs: Runs, record: dg.RunRecord, *, is_settled: bool, is_ending: bool) -> Runs:
    """Combine what is known about a source's runs with the next older run.

    Args:
        runs: What is known so far.
        record: The older run.
        is_settled: Whether a newer run has finished, so that an older failure no longer matters.
        is_ending: Whether the run counts as successful.
    """
    run = record.dagster_run
    outcome = "succeeded" if is_ending else _OUTCOMES.get(run.status, "running")
    if runs.outcome is None:
        runs = replace(runs, outcome=outcome, run_id=run.run_id)
    if outcome == "failed" and not is_settled:
        runs = replace(runs, failed_id=run.run_id)
    if outcome == "succeeded" and checked_all(run):
        runs = replace(runs, checked_at=ended_at(record))
    return runs


def ended_at(record: dg.RunRecord) -> float:
    """Return when a run ended, in seconds since the epoch; correct even if it was recorded later."""
    noted = record.dagster_run.tags.get(ENDED_AT_TAG)
    if noted is not None:
        return datetime.fromisoformat(noted).timestamp()
    return record.end_time or record.update_timestamp.timestamp()


def is_partial_success(run: dg.DagsterRun) -> bool:
    """Return whether a run checked only a part of its source and succeeded, which says nothing about the rest."""
    return run.status is dg.DagsterRunStatus.SUCCESS and not checked_all(run)


def checked_all(run: dg.DagsterRun) -> bool:
    """Return whether a run checked all files of its source, rather than some files or only later stages."""
    return ONLY_TAG not in run.tags and (not run.asset_selection or _DISCOVERY in run.asset_selection)


def delay_s(failures: int) -> float:
    """Return the delay after some failures in a row: one minute, doubled for each failure, at most six hours."""
    return float(min(_FIRST_DELAY_S * 2 ** (failures - 1), _LONGEST_DELAY_S)) if failures else 0.0


@dataclass(frozen=True, slots=True)
class LastRuns:
    """How the newest runs of one subject ended. Times are in seconds since the epoch, 0 if there is no such run."""

    status: dg.DagsterRunStatus | None = None  # of the newest run
    began: float = 0  # when the newest run was requested
    ended: float = 0  # when the newest run ended
    failures: int = 0  # in a row, including the newest run
    declined: str | None = None  # the state of the source for which a user canceled the newest run
    is_lost: bool = False  # whether the newest run failed because its process died
    demands: Mapping[str, str] = field(default_factory=dict)  # tags of the failed runs that a retry must keep

    @property
    def is_unfinished(self) -> bool:
        """Whether a run is queued or in progress, so that another one would be redundant."""
        return self.status is not None and self.status not in FINISHED

    def may_request(self, longest_s: float = _LONGEST_DELAY_S) -> bool:
        """Return whether to request another run: none is unfinished, and the delay after the last failure is over."""
        return not self.is_unfinished and self.may_try_again(time.time(), longest_s)

    def may_try_again(self, now: float, longest_s: float = _LONGEST_DELAY_S) -> bool:
        """Return whether the delay after the last failure, at most `longest_s`, is over.

        There is no delay after a run was lost for the first time.
        """
        if self.is_lost and self.failures == 1:
            return True
        return now >= self.ended + min(delay_s(self.failures), longest_s)


def last_runs(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> LastRuns:
    """Read the newest runs with some tags.

    Successful runs that checked only a part of the source are ignored, because they say nothing about the rest.
    """
    found = instance.get_run_records(dg.RunsFilter(tags=dict(tags)), limit=_MAX_RUNS_READ)
    records = [record for record in found if not is_partial_success(record.dagster_run)]
    if not records:
        return LastRuns()
    newest = records[0]
    failed = list(takewhile(_has_failed, records))
    return LastRuns(
        status=newest.dagster_run.status,
        began=newest.create_timestamp.timestamp(),
        ended=newest.end_time or newest.update_timestamp.timestamp(),
        failures=len(failed),
        declined=newest.dagster_run.tags.get(DECLINED_TAG) if newest.dagster_run.status in CANCELED else None,
        is_lost=LOST_TAG in newest.dagster_run.tags,
        demands={tag: "true" for tag in (FULL_TAG, VERIFY_TAG) if any(tag in run.dagster_run.tags for run in failed)},
    )


def _has_failed(record: dg.RunRecord) -> bool:
    run = record.dagster_run
    return run.status is dg.DagsterRunStatus.FAILURE and REFUSED_TAG not in run.tags


def as_dagster_failure(body: Callable[_P, _R]) -> Callable[_P, _R]:
    """Convert docindex errors to Dagster failures, so that the UI shows their message before Dagster's frames."""
    if not isgeneratorfunction(body):
        return _raising_failure()(body)

    @wraps(body)
    def stream(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[Any]:
        with _raising_failure():
            yield from body(*args, **kwargs)

    return cast("Callable[_P, _R]", stream)


@contextmanager
def _raising_failure() -> Iterator[None]:
    """Raise Dagster's `Failure` instead of a docindex error, with the error as its cause."""
    try:
        yield
    except errors.DocindexError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return why a recorded run failed, in one line."""
    records = instance.get_records_for_run(run_id, of_type=_KINDS).records
    events = [record.event_log_entry.dagster_event for record in records]
    text = " ".join("; ".join(_explain(event for event in events if event is not None)).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _explain(events: Iterable[dg.DagsterEvent]) -> tuple[str, ...]:
    """Return the failed checks or, failing that, the errors in the events of a run; at least one line.

    For the error of a step, use the outermost docindex error, or else the first line of the innermost error.
    """
    events = list(events)
    by_step: dict[str | None, Any] = {
        event.step_key: error
        for event in events
        if event.is_failure and (error := getattr(event.event_specific_data, "error", None))
    }
    if any(_is_interrupt(error) for error in by_step.values()):
        return (INTERRUPTED,)
    checks = tuple(dict.fromkeys(_failed_checks(events)))
    step_errors = tuple(f"{step}: {_message(error)}" for step, error in by_step.items() if step is not None)
    run_errors = tuple(_message(error) for error in by_step.values())
    engine_errors = tuple(_message(error) for event in events if (error := _engine_error(event)))
    # A run whose process died has no error, only a message.
    messages = tuple(event.message for event in events if event.is_failure and event.message)
    found = checks or step_errors or run_errors or engine_errors[-1:] or messages[-1:]
    return found or ("the run failed; see its log in the Dagster UI",)


def _failed_checks(events: Iterable[dg.DagsterEvent]) -> Iterator[str]:
    for event in events:
        if event.event_type_value != dg.DagsterEventType.ASSET_CHECK_EVALUATION.value:
            continue
        check = event.asset_check_evaluation_data
        if check.blocking and not check.passed:
            why = check.metadata.get("reason")
            yield f"{check.asset_key.to_user_string()}: {check.check_name} failed: {why.value if why else 'see the UI'}"


def _engine_error(event: dg.DagsterEvent) -> Any:
    """Return why Dagster could not start a run; the failure of the run itself does not say."""
    is_engine = event.event_type_value == dg.DagsterEventType.ENGINE_EVENT.value
    return event.engine_event_data.error if is_engine else None


def _is_interrupt(error: Any) -> bool:
    while error is not None:
        if error.cls_name == _INTERRUPT:
            return True
        error = error.cause
    return False


def _message(error: Any) -> str:
    innermost = error
    while error is not None:
        name, _, message = error.message.strip().partition(": ")
        if name.rpartition(".")[2] in _DOCINDEX_ERRORS:
            return str(message)
        innermost, error = error, error.cause
    lines = innermost.message.strip().splitlines()
    return lines[0] if lines else "failed"
