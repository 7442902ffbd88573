"""The sensor `alert_on_failure`, which logs failed runs, updates the catalog, and posts alerts to a webhook, if any.

It is not a `run_failure_sensor`, because that kind skips alerts that could not be sent, handles five runs per tick, is
cut off after a minute of a slow webhook and then repeats messages, and does not see runs of the command line. Instead,
a tag on each run records the stage of its alert. So a failing tick loses nothing. It repeats at most the one message
that was posted but not yet marked as posted when the process died.

The URL of the webhook is a secret, because it allows anyone to post, so no log or error shows it.
"""

import io
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Literal

import dagster as dg
from pydantic import SecretStr

from docindex_dagster.core.errors import AlertError, ObjectStoreError, StoreError
from docindex_dagster.core.retry import Retry
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.urls import scrub
from docindex_dagster.defs import catalog_asset, outcomes, shared
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import PARTITION_TAG, SOURCE_TAG
from docindex_dagster.memory import domains

# The stage of a failed run's alert: due, then posted ("told"), and over once the subject works again. Other failed
# runs are only counted.
ALERT_TAG = "docindex/alert"
_Stage = Literal["due", "told", "over", "counted"]
# The run that ALERT_TAG belongs to: Dagster copies tags to a run that repeats another, where they do not apply.
# The UI hides tags with this prefix, and does not copy them in some cases.
_RUN = ".dagster/docindex/alerted_run"

_INTERVAL_S = 30
_DAY_S = 24 * 60 * 60
# A tick may take 60 s, and a failing post takes 33 s; remaining messages are posted in the next tick.
_BUDGET_S = 20
_PAGE = 200
_MOST_ALERTS = 500
# Runs read per subject; after more failures in a row, one alert per day is sent.
_MAX_RUNS_READ = 64
_ENDED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
_RETRY = Retry(2, first_wait_s=1.0)
_TIMEOUT_S = (3, 7)  # to connect, and to receive the response
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_REDIRECT = 300
# These loggers log the path of each request at debug level.
_LOGGERS_WITH_URLS = ("urllib3.connectionpool", "urllib3.util.retry")
# Words that notify everybody in some chat apps.
_MENTION = re.compile(r"@(?=(?:all|channel|everyone|here)\b)")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What fails or recovers: a source, the removal of one, a domain, or a job that concerns none of these."""

    name: str
    tag: tuple[str, str] | None
    job: str

    def runs(self, instance: dg.DagsterInstance) -> list[dg.RunRecord]:
        """Return its newest finished runs, newest first, without successful runs over a part of it."""
        wanted = dg.RunsFilter(tags=dict([self.tag])) if self.tag else dg.RunsFilter(job_name=self.job)
        records = instance.get_run_records(wanted, limit=_MAX_RUNS_READ)
        return [
            record
            for record in records
            if record.dagster_run.status in _ENDED
            and _subject(record.dagster_run).name == self.name
            and not outcomes.is_partial_success(record.dagster_run)
        ]


@dg.sensor(
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports failed runs in its log, on the page of index_catalog, and through the webhook in "
    "DOCINDEX_ALERTS__WEBHOOK: the first failure in a row, the 2nd, 4th, 8th and so on, at least once a day, and the "
    "recovery. See docs/how-to/run-for-a-team.md.",
)
def alert_on_failure(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Mark the runs that failed since the last tick, then send the alerts that are due."""
    settings = project.read_settings()
    after = context.cursor or ""
    if not after.isdecimal():
        newest = context.instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
        start = dg.SkipReason("alerts start with the next failure")
        return dg.SensorResult(skip_reason=start, cursor=str(newest[0].storage_id if newest else 0))
    failed, newest_id = _failed_since(context, int(after))
    new = [run for run in failed if _stage(run) is None]
    if new:
        _mark_failed(context, new)
        try:
            catalog_asset.report(context.instance, shared.with_shared_state(context.instance, settings))
        except (StoreError, ObjectStoreError) as error:
            context.log.warning(f"cannot update the catalog: {error}")
    sent = _send_due(context, settings)
    summary = f"failed runs: {len(new)}, messages: {sent}" if new or sent else "no failed runs"
    return dg.SensorResult(skip_reason=dg.SkipReason(summary), cursor=str(newest_id))


def _failed_since(context: dg.SensorEvaluationContext, after: int) -> tuple[list[dg.DagsterRun], int]:
    """Return this code location's runs that failed after an event, newest first, and the id of the newest event.

    The runs are read oldest first, page by page to the end, so the cursor never skips an unread failure.
    """
    failed: dict[str, dg.DagsterRun] = {}
    while page := _page(context.instance, after):
        after = page[-1].storage_id
        ids = [change.event_log_entry.run_id for change in page]
        known = {run.run_id: run for run in context.instance.get_runs(dg.RunsFilter(run_ids=ids))}
        failed.update(
            {
                run_id: known[run_id]
                for run_id in ids
                if run_id in known and _is_of_this_location(context, known[run_id])
            }
        )
    return list(reversed(failed.values())), after


def _page(instance: dg.DagsterInstance, after: int) -> Sequence[dg.EventLogRecord]:
    """Return the next failures after an event, oldest first."""
    wanted = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=after)
    return instance.fetch_run_status_changes(wanted, limit=_PAGE, ascending=True).records


def _is_of_this_location(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Return whether a run belongs to this code location, not to another one of the same instance."""
    if run.remote_job_origin is None:  # a run of the command line
        return context.repository_def is None or context.repository_def.has_job(run.job_name)
    theirs, ours = run.remote_job_origin.repository_origin.code_location_origin, context.code_location_origin
    return ours is None or theirs.location_name == ours.location_name


def _mark_failed(context: dg.SensorEvaluationContext, failed: list[dg.DagsterRun]) -> None:
    """Log and mark failed runs, newest first; per subject, only the newest run may be due for an alert."""
    for subject, runs in _by_subject(failed).items():
        reasons = [outcomes.reason(context.instance, run.run_id) for run in runs]
        for run, reason in zip(runs, reasons, strict=True):
            context.log.warning(f"{subject.name} failed: {reason} (run {run.run_id}); {_advice(subject)}")
        is_due = reasons[0] != outcomes.INTERRUPTED and _is_due(subject.runs(context.instance), len(runs))
        for run in runs[1:]:
            _mark(context.instance, run, "counted")
        _mark(context.instance, runs[0], "due" if is_due else "counted")


def _is_due(runs: list[dg.RunRecord], new: int) -> bool:
    """Return whether to report failures: at powers of two in a row, and if none was reported for a day.

    Args:
        runs: The runs of the subject, newest first.
        new: The number of runs that failed since the last tick.
    """
    streak = _streak(runs)
    reported_at = [_ended_at(record) for record in streak if _stage(record.dagster_run) in {"due", "told"}]
    if not reported_at or time.time() - max(reported_at) >= _DAY_S:
        return True
    counts = range(len(streak) - new + 1, len(streak) + 1)
    return len(streak) < _MAX_RUNS_READ and any(count & (count - 1) == 0 for count in counts)


def _send_due(context: dg.SensorEvaluationContext, settings: Settings) -> int:
    """Send the failures that are due and the recoveries, and return the number of messages.

    If the webhook rejects a message, the others are still sent, and the message is retried in the next tick.

    Raises:
        AlertError: The webhook rejected a message; this is the first such error, raised after all messages were tried.
    """
    started, sent = time.monotonic(), 0
    rejections: list[AlertError] = []
    for message in _messages(context.instance):
        if message.payload:
            if (sent or rejections) and time.monotonic() - started > _BUDGET_S:
                context.log.info("the webhook is slow: the remaining alerts follow in the next tick")
                break
            try:
                _send(context, settings, message.payload)
            except AlertError as error:
                context.log.warning(f"the webhook rejected this message: {error}")
                rejections.append(error)
                continue
            sent += 1
        for run in message.settles:
            _mark(context.instance, run, message.stage)
    if rejections:
        raise rejections[0]
    return sent


def _send(context: dg.SensorEvaluationContext, settings: Settings, payload: Mapping[str, object]) -> None:
    """Log a message, and post it if there is a webhook."""
    context.log.info(str(payload["text"]))
    if settings.alerts.webhook is not None and not post(settings.alerts.webhook, payload):
        context.log.warning("the webhook did not answer in time; the complete message was sent and counts as accepted")


@dataclass(frozen=True, slots=True)
class _Message:
    """Alert to send, and the stage of some runs' alerts afterwards."""

    settles: list[dg.DagsterRun]
    stage: _Stage
    payload: dict[str, object]  # empty: nothing to send


def _messages(instance: dg.DagsterInstance) -> Iterator[_Message]:
    for subject, runs in _by_subject(_marked(instance, "due")).items():
        ended = subject.runs(instance)
        is_over = bool(ended) and ended[0].dagster_run.status is dg.DagsterRunStatus.SUCCESS
        payload = {} if is_over else _failure(instance, subject, runs[0], len(_streak(ended)))
        yield _Message(runs, "over" if is_over else "told", payload)
    for subject, runs in _by_subject(_marked(instance, "told")).items():
        ended = subject.runs(instance)
        if ended and ended[0].dagster_run.status is dg.DagsterRunStatus.SUCCESS:
            yield _Message(runs, "over", _recovery(subject, ended[0]))


def _failure(instance: dg.DagsterInstance, subject: _Subject, run: dg.DagsterRun, count: int) -> dict[str, object]:
    reason = scrub(outcomes.reason(instance, run.run_id))
    repeats = f" ({count} times in a row)" if count > 1 else ""
    record = instance.get_run_record_by_id(run.run_id)
    facts = _facts(subject, run, _ended_at(record) if record else time.time(), "failed", f"failed{repeats}: {reason}")
    return {**facts, "reason": reason, "failures": count}


def _recovery(subject: _Subject, record: dg.RunRecord) -> dict[str, object]:
    facts = _facts(subject, record.dagster_run, _ended_at(record), "recovered", "works again")
    return {**facts, "reason": None, "failures": 0}


def _facts(subject: _Subject, run: dg.DagsterRun, ended_at: float, status: str, outcome: str) -> dict[str, object]:
    return {
        "text": as_text(f"docindex: {subject.name} {outcome}"),
        "status": status,
        "source": subject.tag[1] if subject.tag else None,
        "job": run.job_name,
        "run_id": run.run_id,
        "time": datetime.fromtimestamp(ended_at, UTC).isoformat(timespec="seconds"),
    }


def _subject(run: dg.DagsterRun) -> _Subject:
    if key := run.tags.get(PARTITION_TAG):
        return _Subject(key, (PARTITION_TAG, key), run.job_name)
    if key := run.tags.get(SOURCE_TAG):
        return _Subject(f"{run.job_name} of {key}", (SOURCE_TAG, key), run.job_name)
    return _Subject(f"the job {run.job_name}", None, run.job_name)


def _by_subject(runs: Iterable[dg.DagsterRun]) -> dict[_Subject, list[dg.DagsterRun]]:
    """Group runs by subject, preserving their order."""
    found: dict[str, tuple[_Subject, list[dg.DagsterRun]]] = {}
    for run in runs:
        subject = _subject(run)
        found.setdefault(subject.name, (subject, []))[1].append(run)
    return dict(found.values())


def _streak(ended: Iterable[dg.RunRecord]) -> list[dg.RunRecord]:
    """Return the consecutive failures up to the newest run."""
    return list(takewhile(lambda record: record.dagster_run.status is dg.DagsterRunStatus.FAILURE, ended))


def _ended_at(record: dg.RunRecord) -> float:
    return record.end_time or record.update_timestamp.timestamp()


def _advice(subject: _Subject) -> str:
    tag, key = subject.tag or ("", "")
    is_source = tag == PARTITION_TAG and not domains.is_key(key)
    if not is_source:
        return "see its log in the Dagster UI"
    return f"run {command('docindex', 'index', subject.name)} to retry immediately"


def _marked(instance: dg.DagsterInstance, stage: _Stage) -> list[dg.DagsterRun]:
    runs = instance.get_runs(dg.RunsFilter(tags={ALERT_TAG: stage}), limit=_MOST_ALERTS)
    return [run for run in runs if _stage(run) == stage]


def _stage(run: dg.DagsterRun) -> str | None:
    """Return the stage of a run's alert; None if there is none, or the tag was copied from another run."""
    return run.tags.get(ALERT_TAG) if run.tags.get(_RUN) == run.run_id else None


def _mark(instance: dg.DagsterInstance, run: dg.DagsterRun, stage: _Stage) -> None:
    instance.add_run_tags(run.run_id, {ALERT_TAG: stage, _RUN: run.run_id})


def as_text(text: str) -> str:
    """Return text as one line that chat apps show literally, without links or mentions."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub("@\u200b", plain)


def post(url: SecretStr, payload: Mapping[str, object], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Post JSON, and retry if the server is unreachable or temporarily unavailable.

    If the server has received the message but answers slowly, do not retry, because it would receive duplicates.

    Args:
        url: The webhook. Redirects are not followed.
        payload: The message.
        sleep: Waits for some seconds between attempts.

    Returns:
        Whether the server confirmed the message; if not, it was sent completely, but the response timed out.

    Raises:
        AlertError: The server did not accept the message; the reason does not include the URL.
    """
    try:
        return _RETRY.call(lambda: _try(url, payload), _is_transient, lambda _: None, sleep)
    except _PostError as error:
        raise AlertError(f"the webhook {error}; check DOCINDEX_ALERTS__WEBHOOK") from None


class _PostError(Exception):
    """Rejection of a message, with the reason."""

    def __init__(self, problem: str, *, is_transient: bool) -> None:
        self.is_transient = is_transient
        super().__init__(problem)


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, _PostError) and error.is_transient


def _try(url: SecretStr, payload: Mapping[str, object]) -> bool:
    """Post once, and return whether the server answered in time.

    Raises:
        _PostError: The server did not accept the message.
    """
    import requests

    body = io.BytesIO(json.dumps(payload).encode())
    try:
        with (
            _silenced(),
            requests.post(
                url.get_secret_value(),
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=_TIMEOUT_S,
                allow_redirects=False,
                stream=True,  # do not read the response body
            ) as answer,
        ):
            status = answer.status_code
    except (requests.ConnectionError, requests.Timeout) as error:
        # A slow TLS handshake is a `ReadTimeout`, too, but then none of the body has been read.
        if isinstance(error, requests.ReadTimeout) and body.tell():
            return False
        raise _PostError(f"cannot be reached ({type(error).__name__})", is_transient=True) from None
    except (requests.RequestException, ValueError) as error:  # their messages contain the URL
        raise _PostError(f"cannot be used ({type(error).__name__})", is_transient=False) from None
    if status >= _REDIRECT:
        is_transient = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
        raise _PostError(f"answered with status {status}", is_transient=is_transient)
    return True


@contextmanager
def _silenced() -> Iterator[None]:
    loggers = {logger: logger.disabled for logger in map(logging.getLogger, _LOGGERS_WITH_URLS)}
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, before in loggers.items():
            logger.disabled = before
