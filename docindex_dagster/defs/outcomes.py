"""The outcomes of past runs, from Dagster's record: why one failed, and whether to request the next one.

The record holds tens of thousands of runs, so the runs of all sources are read in bulk. Only one run of a kind is
requested at a time, with a longer delay after each failure in a row. Reasons are lines that a user can act on, the same
on the command line, in the catalogue and in alerts.
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
# So many of the newest runs mostly have those of all sources; to read more of them takes longer than to ask again.
_PAGE_A_SOURCE = 1.25
_MOST_PAGES = 40
# The log of each failed run is a file of its own, which takes some milliseconds to open.
_MOST_REASONS = 100
# Dagster takes half a second to make a run that a tick asks for, and the next tick waits for it.
MOST_REQUESTS = 25
_FIRST_DELAY_S = 60
_LONGEST_DELAY_S = 6 * 60 * 60
# With the first delay doubled each time, the longest is reached before.
_LOOKED_AT = 12
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
_OURS = {name for name, value in vars(errors).items() if isinstance(value, type)}
_LONGEST = 500  # characters of a reason in one line


def of_sources(
    instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None = None
) -> dict[str, Runs]:
    """The runs of those sources that were ever run.

    Args:
        instance: where the runs are recorded.
        keys: the sources.
        ending: a run that is in its last step, and counts as one that ended well.
    """
    found = _newest(instance, keys, ending)
    failed = sorted(key for key, runs in found.items() if runs.failed_id)
    reasons = {key: reason(instance, found[key].failed_id or "") for key in failed[:_MOST_REASONS]}
    unread = dict.fromkeys(failed[_MOST_REASONS:], "see the run")
    return {**found, **{key: replace(found[key], failure=text) for key, text in (reasons | unread).items()}}


def _newest(instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None) -> dict[str, Runs]:
    """Read runs from the newest one on, until the last successful one of each source is among them.

    The first page is of all runs, which is quick and mostly enough; the others are of the sources that are left. They
    are not filtered by status: SQLite would follow the index of the statuses, which takes minutes.
    """
    found: dict[str, Runs] = {}
    is_settled: set[str] = set()
    size = max(_SMALLEST_PAGE, round(_PAGE_A_SOURCE * len(keys)))
    left, cursor = set(keys), None
    for page_number in range(_MOST_PAGES):
        wanted = dg.RunsFilter(tags={PARTITION_TAG: sorted(left)}) if page_number else dg.RunsFilter()
        page = instance.get_run_records(wanted, limit=size, cursor=cursor)
        for record in page:
            key = record.dagster_run.tags.get(PARTITION_TAG)
            if key not in left:
                continue
            is_ending = ending is not None and record.dagster_run.run_id == ending.run_id
            found[key] = _older(found.get(key, NO_RUNS), record, is_settled=key in is_settled, is_ending=is_ending)
            run = record.dagster_run
            if is_ending or (run.status in _ENDED and not is_partial_success(run)):
                is_settled.add(key)
            if found[key].checked_at is not None:
                left.discard(key)
        if len(page) < size or not left:
            break
        cursor = page[-1].dagster_run.run_id
    return found


def _older(runs: Runs, record: dg.RunRecord, *, is_settled: bool, is_ending: bool) -> Runs:
    """What is known of a source's runs with one more run, which is older than those known before.

    Args:
        runs: what is known.
        record: the run.
        is_settled: there is a newer run of the source, so that this failure is of no more interest.
        is_ending: the run counts as one that ended well.
    """
    run = record.dagster_run
    outcome = "succeeded" if is_ending else _OUTCOMES.get(run.status, "running")
    if runs.outcome is None:
        runs = replace(runs, outcome=outcome, run_id=run.run_id)
    if outcome == "failed" and not is_settled:
        runs = replace(runs, failed_id=run.run_id)
    if outcome == "succeeded" and looked_at_all(run):
        runs = replace(runs, checked_at=ended_at(record))
    return runs


def ended_at(record: dg.RunRecord) -> float:
    """When a run ended, in seconds since 1970, also where it was recorded later."""
    noted = record.dagster_run.tags.get(ENDED_AT_TAG)
    if noted is not None:
        return datetime.fromisoformat(noted).timestamp()
    return record.end_time or record.update_timestamp.timestamp()


def is_partial_success(run: dg.DagsterRun) -> bool:
    """Whether a run looked at a part of its source and ended well, which says nothing of the rest."""
    return run.status is dg.DagsterRunStatus.SUCCESS and not looked_at_all(run)


def looked_at_all(run: dg.DagsterRun) -> bool:
    """Whether a run looked at all files of its source, not at some files, and did not begin with a later stage."""
    return ONLY_TAG not in run.tags and (not run.asset_selection or _DISCOVERY in run.asset_selection)


def delay_s(failures: int) -> float:
    """How long to wait after so many failures in a row: one minute, doubled each time, six hours at most."""
    return float(min(_FIRST_DELAY_S * 2 ** (failures - 1), _LONGEST_DELAY_S)) if failures else 0.0


@dataclass(frozen=True, slots=True)
class LastRuns:
    """How the newest runs of one kind ended. Times are in seconds since 1970, 0 where there is no such run."""

    status: dg.DagsterRunStatus | None = None  # of the newest
    began: float = 0  # when the newest was asked for
    ended: float = 0  # when the newest ended
    failures: int = 0  # in a row, up to the newest
    declined: str | None = None  # the state of the source for which a user cancelled the newest
    is_lost: bool = False  # the newest failed because its process was gone
    demands: Mapping[str, str] = field(default_factory=dict)  # tags of the failed runs that the next one needs, too

    @property
    def is_unfinished(self) -> bool:
        """A run waits or works; another one at the same time would have nothing to do."""
        return self.status is not None and self.status not in FINISHED

    def may_ask(self, longest_s: float = _LONGEST_DELAY_S) -> bool:
        """Whether another run may be asked for: none waits or works, and it is time after the last failure."""
        return not self.is_unfinished and self.may_try_again(time.time(), longest_s)

    def may_try_again(self, now: float, longest_s: float = _LONGEST_DELAY_S) -> bool:
        """Whether it is time after the last failure, `longest_s` after it at the latest.

        A run that was lost once is asked for again at once.
        """
        if self.is_lost and self.failures == 1:
            return True
        return now >= self.ended + min(delay_s(self.failures), longest_s)


def last_runs(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> LastRuns:
    """Read the newest runs with some tags.

    One that looked at a part of its source, and ended well, says nothing of the rest.
    """
    found = instance.get_run_records(dg.RunsFilter(tags=dict(tags)), limit=_LOOKED_AT)
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
    """Let what an error of ours says be the first that the UI shows of a failed asset, before Dagster's frames."""
    if not isgeneratorfunction(body):
        return _raising_failure()(body)

    @wraps(body)
    def stream(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[Any]:
        with _raising_failure():
            yield from body(*args, **kwargs)

    return cast("Callable[_P, _R]", stream)


@contextmanager
def _raising_failure() -> Iterator[None]:
    """Raise Dagster's `Failure` in the place of an error of ours, which stays its cause."""
    try:
        yield
    except errors.DocindexError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """Why a recorded run failed, in one line."""
    records = instance.get_records_for_run(run_id, of_type=_KINDS).records
    events = [record.event_log_entry.dagster_event for record in records]
    text = " ".join("; ".join(_explain(event for event in events if event is not None)).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _explain(events: Iterable[dg.DagsterEvent]) -> tuple[str, ...]:
    """The failed checks or else the errors among the events of a run; at least one line.

    Of a step's error, it is the message of the outermost error of ours, else the first line of the innermost one.
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
    of_steps = tuple(f"{step}: {_message(error)}" for step, error in by_step.items() if step is not None)
    of_run = tuple(_message(error) for error in by_step.values())
    of_engine = tuple(_message(error) for event in events if (error := _engine_error(event)))
    # A run whose process is gone has no error: only words.
    words = tuple(event.message for event in events if event.is_failure and event.message)
    found = checks or of_steps or of_run or of_engine[-1:] or words[-1:]
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
    """Why Dagster could not start a run: the run's own failure only says that it is one."""
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
        if name.rpartition(".")[2] in _OURS:
            return str(message)
        innermost, error = error, error.cause
    lines = innermost.message.strip().splitlines()
    return lines[0] if lines else "failed"
