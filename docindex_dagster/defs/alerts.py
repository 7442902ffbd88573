"""`alert_on_failure`: a failed run is logged, shown by the catalogue at once, and posted to a webhook if there is one.

It is no `run_failure_sensor`. Such a one moves on from an alert that could not be sent, takes five runs a tick, is cut
off after a minute of a slow webhook and then repeats what it sent, and does not see the runs of the command line. How
far an alert got is a tag of its run instead, so that a tick that fails loses nothing, and repeats at most the message
that was posted and not yet marked as posted when its process ended.

The URL of the webhook is a secret: who knows it can post, so no log and no error shows it.
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

# How far the alert of a failed run got: it is due, then posted, and over when the source works again. Other
# failed runs are only counted.
ALERT_TAG = "docindex/alert"
_Stage = Literal["due", "told", "over", "counted"]
# Which run the tag above is about: Dagster copies tags to a run that repeats another, and there they say nothing yet.
# The UI does not show tags that begin like this, and leaves them behind in some of its copies.
_RUN = ".dagster/docindex/alerted_run"

_INTERVAL_S = 30
_DAY_S = 24 * 60 * 60
# A tick may take 60 s, and a post that fails takes 33 s; what does not fit is posted in the next tick.
_BUDGET_S = 20
_PAGE = 200
_MOST_ALERTS = 500
# Runs of one subject: with more failures in a row, one a day is reported.
_LOOKED_AT = 64
_ENDED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
_RETRY = Retry(2, first_wait_s=1.0)
_TIMEOUT_S = (3, 7)  # to connect, and for the answer
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_REDIRECT = 300
# They log the path of each request at the level of debugging.
_TALKATIVE = ("urllib3.connectionpool", "urllib3.util.retry")
# Words by which some chat programs call everybody.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here)\b)")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What keeps failing or works again: a source, its removal, a domain, or a job that is not about one of them."""

    name: str
    tag: tuple[str, str] | None
    job: str

    def runs(self, instance: dg.DagsterInstance) -> list[dg.RunRecord]:
        """Its newest runs that ended, the newest one first; not those over a part of it that ended well."""
        wanted = dg.RunsFilter(tags=dict([self.tag])) if self.tag else dg.RunsFilter(job_name=self.job)
        records = instance.get_run_records(wanted, limit=_LOOKED_AT)
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
    description="Tells of failed runs: in its log, on the page of index_catalog, and by the webhook that "
    "DOCINDEX_ALERTS__WEBHOOK names: of the first failure in a row, of the 2nd, 4th, 8th…, once a day at least, and "
    "once when it works again. See docs/operations.md, “Alerts”.",
)
def alert_on_failure(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Note the runs that failed since the last tick, then tell of what is due."""
    settings = project.read_settings()
    after = context.cursor or ""
    if not after.isdecimal():
        newest = context.instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
        start = dg.SkipReason("alerts begin with the next failure")
        return dg.SensorResult(skip_reason=start, cursor=str(newest[0].storage_id if newest else 0))
    failed, newest_id = _failed_since(context, int(after))
    new = [run for run in failed if _stage(run) is None]
    if new:
        _note(context, new)
        try:
            catalog_asset.report(context.instance, shared.known(context.instance, settings))
        except (StoreError, ObjectStoreError) as error:
            context.log.warning(f"the catalogue cannot be shown: {error}")
    sent = _report(context, settings)
    summary = f"failed runs: {len(new)}, messages: {sent}" if new or sent else "no run failed"
    return dg.SensorResult(skip_reason=dg.SkipReason(summary), cursor=str(newest_id))


def _failed_since(context: dg.SensorEvaluationContext, after: int) -> tuple[list[dg.DagsterRun], int]:
    """The runs of this code location that failed after an event, the newest one first, and the newest event.

    They are read from the oldest one on, page by page to the end: the cursor passes no failure that was not read.
    """
    failed: dict[str, dg.DagsterRun] = {}
    while page := _page(context.instance, after):
        after = page[-1].storage_id
        ids = [change.event_log_entry.run_id for change in page]
        known = {run.run_id: run for run in context.instance.get_runs(dg.RunsFilter(run_ids=ids))}
        failed.update({run_id: known[run_id] for run_id in ids if run_id in known and _is_ours(context, known[run_id])})
    return list(reversed(failed.values())), after


def _page(instance: dg.DagsterInstance, after: int) -> Sequence[dg.EventLogRecord]:
    """The next failures after an event, the oldest one first."""
    wanted = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=after)
    return instance.fetch_run_status_changes(wanted, limit=_PAGE, ascending=True).records


def _is_ours(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Whether a run is one of this code location, and not of another one that shares the instance."""
    if run.remote_job_origin is None:  # the command line's
        return context.repository_def is None or context.repository_def.has_job(run.job_name)
    theirs, ours = run.remote_job_origin.repository_origin.code_location_origin, context.code_location_origin
    return ours is None or theirs.location_name == ours.location_name


def _note(context: dg.SensorEvaluationContext, failed: list[dg.DagsterRun]) -> None:
    """Log runs that failed, the newest one first, and mark them: of each subject, an alert of the newest may be due."""
    for subject, runs in _by_subject(failed).items():
        reasons = [outcomes.reason(context.instance, run.run_id) for run in runs]
        for run, reason in zip(runs, reasons, strict=True):
            context.log.warning(f"{subject.name} failed: {reason} (run {run.run_id}); {_advice(subject)}")
        is_due = reasons[0] != outcomes.INTERRUPTED and _is_due(subject.runs(context.instance), len(runs))
        for run in runs[1:]:
            _mark(context.instance, run, "counted")
        _mark(context.instance, runs[0], "due" if is_due else "counted")


def _is_due(runs: list[dg.RunRecord], new: int) -> bool:
    """Whether to report failures: at a power of two in a row, and where none was reported for a day.

    Args:
        runs: of the subject, the newest one first.
        new: how many of them failed since the last tick.
    """
    streak = _streak(runs)
    reported_at = [_ended_at(record) for record in streak if _stage(record.dagster_run) in {"due", "told"}]
    if not reported_at or time.time() - max(reported_at) >= _DAY_S:
        return True
    counts = range(len(streak) - new + 1, len(streak) + 1)
    return len(streak) < _LOOKED_AT and any(count & (count - 1) == 0 for count in counts)


def _report(context: dg.SensorEvaluationContext, settings: Settings) -> int:
    """Report the failures that are due and what works again; how many messages that were.

    A message that the webhook does not take holds back no other one: it is posted in the next tick.

    Raises:
        AlertError: the webhook did not take a message; the first of such errors, when the others were tried.
    """
    started, sent = time.monotonic(), 0
    refused: list[AlertError] = []
    for message in _messages(context.instance):
        if message.payload:
            if (sent or refused) and time.monotonic() - started > _BUDGET_S:
                context.log.info("the webhook is slow: the other alerts follow in the next tick")
                break
            try:
                _send(context, settings, message.payload)
            except AlertError as error:
                context.log.warning(f"this message was not taken: {error}")
                refused.append(error)
                continue
            sent += 1
        for run in message.settles:
            _mark(context.instance, run, message.stage)
    if refused:
        raise refused[0]
    return sent


def _send(context: dg.SensorEvaluationContext, settings: Settings, payload: Mapping[str, object]) -> None:
    """Log a message, and post it if there is a webhook."""
    context.log.info(str(payload["text"]))
    if settings.alerts.webhook is not None and not post(settings.alerts.webhook, payload):
        context.log.warning("the webhook did not answer in time; the message was sent whole and counts as taken")


@dataclass(frozen=True, slots=True)
class _Message:
    """What is to be reported, and how far the alerts of some runs are then."""

    settles: list[dg.DagsterRun]
    stage: _Stage
    payload: dict[str, object]  # empty: there is nothing to report


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
    again = f" ({count} times in a row)" if count > 1 else ""
    record = instance.get_run_record_by_id(run.run_id)
    facts = _facts(subject, run, _ended_at(record) if record else time.time(), "failed", f"failed{again}: {reason}")
    return {**facts, "reason": reason, "failures": count}


def _recovery(subject: _Subject, record: dg.RunRecord) -> dict[str, object]:
    facts = _facts(subject, record.dagster_run, _ended_at(record), "recovered", "works again")
    return {**facts, "reason": None, "failures": 0}


def _facts(subject: _Subject, run: dg.DagsterRun, ended_at: float, status: str, what: str) -> dict[str, object]:
    return {
        "text": as_text(f"docindex: {subject.name} {what}"),
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
    """Runs by what they are about, in their order."""
    found: dict[str, tuple[_Subject, list[dg.DagsterRun]]] = {}
    for run in runs:
        subject = _subject(run)
        found.setdefault(subject.name, (subject, []))[1].append(run)
    return dict(found.values())


def _streak(ended: Iterable[dg.RunRecord]) -> list[dg.RunRecord]:
    """The failures in a row up to the newest run."""
    return list(takewhile(lambda record: record.dagster_run.status is dg.DagsterRunStatus.FAILURE, ended))


def _ended_at(record: dg.RunRecord) -> float:
    return record.end_time or record.update_timestamp.timestamp()


def _advice(subject: _Subject) -> str:
    tag, key = subject.tag or ("", "")
    is_source = tag == PARTITION_TAG and not domains.is_key(key)
    if not is_source:
        return "see its log in the Dagster UI"
    return f"{command('docindex', 'index', subject.name)} tries it again at once"


def _marked(instance: dg.DagsterInstance, stage: _Stage) -> list[dg.DagsterRun]:
    runs = instance.get_runs(dg.RunsFilter(tags={ALERT_TAG: stage}), limit=_MOST_ALERTS)
    return [run for run in runs if _stage(run) == stage]


def _stage(run: dg.DagsterRun) -> str | None:
    """How far the alert of a run got; None, too, where the tag is that of a run which it repeats."""
    return run.tags.get(ALERT_TAG) if run.tags.get(_RUN) == run.run_id else None


def _mark(instance: dg.DagsterInstance, run: dg.DagsterRun, stage: _Stage) -> None:
    instance.add_run_tags(run.run_id, {ALERT_TAG: stage, _RUN: run.run_id})


def as_text(text: str) -> str:
    """A text in one line that chat programs show as it is: it makes no link, and mentions no user."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL.sub("@\u200b", plain)


def post(url: SecretStr, payload: Mapping[str, object], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Post JSON, and try again where the server cannot be reached or says that it is not able to answer now.

    A server that has the message and is slow to answer is not asked again: it would get the message again each time.

    Args:
        url: the webhook. It is not left for another place that it leads to.
        payload: what is sent.
        sleep: waits for so many seconds between two tries.

    Returns:
        Whether it answered that it took the message; if not, the message was sent whole, and no answer came in time.

    Raises:
        AlertError: it did not take the message; why, without the URL.
    """
    try:
        return _RETRY.call(lambda: _try(url, payload), _is_passing, lambda _: None, sleep)
    except _PostError as error:
        raise AlertError(f"the webhook {error}; see whether DOCINDEX_ALERTS__WEBHOOK is right") from None


class _PostError(Exception):
    """The message was not taken, and why."""

    def __init__(self, problem: str, *, is_passing: bool) -> None:
        self.is_passing = is_passing
        super().__init__(problem)


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, _PostError) and error.is_passing


def _try(url: SecretStr, payload: Mapping[str, object]) -> bool:
    """Post once; says whether an answer came in time.

    Raises:
        _PostError: the message was not taken.
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
                stream=True,  # the body of the response is not read
            ) as answer,
        ):
            status = answer.status_code
    except (requests.ConnectionError, requests.Timeout) as error:
        # A TLS handshake that takes too long is a `ReadTimeout` as well, but then nothing of the body was read yet.
        if isinstance(error, requests.ReadTimeout) and body.tell():
            return False
        raise _PostError(f"cannot be reached ({type(error).__name__})", is_passing=True) from None
    except (requests.RequestException, ValueError) as error:  # the message of either names the URL
        raise _PostError(f"cannot be used ({type(error).__name__})", is_passing=False) from None
    if status >= _REDIRECT:
        is_passing = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
        raise _PostError(f"answered with status {status}", is_passing=is_passing)
    return True


@contextmanager
def _silenced() -> Iterator[None]:
    loggers = {logger: logger.disabled for logger in map(logging.getLogger, _TALKATIVE)}
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, before in loggers.items():
            logger.disabled = before
