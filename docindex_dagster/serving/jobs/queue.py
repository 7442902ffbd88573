"""The jobs of a project: asked for, shown, followed and cancelled. One works at a time, the others wait in their order.

Each step is in the job's record before it is done, so that a server that is started again goes on where one that was
killed was. What of a job's process it does not know from the record, it sees from the job's lock and events.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import Condition, Thread
from types import TracebackType
from typing import Self
from uuid import uuid4

from docindex_dagster.core import access
from docindex_dagster.core.errors import (
    AccessError,
    EndedJobError,
    FullQueueError,
    JobsOffError,
    UnknownJobError,
    UsedKeyError,
)
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free, holder
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.serving.jobs import child, journal, progress, requests
from docindex_dagster.serving.jobs.ending import Ending, end_of
from docindex_dagster.serving.jobs.journal import Tail
from docindex_dagster.serving.jobs.model import Job, JobEvent, JobRequest, State
from docindex_dagster.serving.jobs.recorded import RecordedRuns
from docindex_dagster.serving.jobs.records import Record, Records, now

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1  # between two looks at a process that works
_RUNS_SHOWN = 100
_RUNS_AGE_S = 1.0  # how old what is shown of other runs may be
_MOST_TAILS = 32
_LONGEST_END_S = 10.0
_AFTER_A_FAILURE_S = 5.0
_USUAL_S = 30.0  # of a job, while none is known


class Jobs:
    """The jobs of one project. Threads may share it; between `open` and `close` it works on them.

    Runs that others started on the same Dagster instance are shown among them, by the ids of these runs.
    """

    def __init__(
        self, settings: Settings, recorded: RecordedRuns, command: Sequence[str], *, is_on: bool = True
    ) -> None:
        """Prepare.

        Args:
            settings: the project.
            recorded: Dagster's record of its runs.
            command: the program that does a job.
            is_on: whether it takes jobs; without, it only shows the runs of others.
        """
        self._settings = settings
        self._layout = Layout(settings.home)
        self._recorded = recorded
        self._command = command
        self._is_on = is_on
        self._opened = ExitStack()
        self._changed = Condition()
        self._is_closing = False
        self._records = Records(self._layout)
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._runs: tuple[float, list[Job]] = (-_RUNS_AGE_S, [])
        self._worker = Thread(target=self._work, name="jobs", daemon=True)

    def open(self) -> Self:
        """Take up the work where an earlier server left it.

        Raises:
            AccessError: another server works on the jobs of this project.
        """
        if not self._is_on:
            return self
        with access.writing(self._settings):
            self._layout.jobs.mkdir(exist_ok=True)
        lock = self._layout.jobs_lock
        if not self._opened.enter_context(exclusive_if_free(lock, "docindex serve")):
            other = holder(lock)
            self._opened.close()
            who = f"process {other.pid}" if other else "another process"
            raise AccessError(f"{who} serves this project already: stop it first, or give --no-jobs")
        self._records.read().prune()
        self._worker.start()
        return self

    def close(self) -> None:
        """Stop; a job that works goes on, and the next server follows it."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._worker.is_alive():
            self._worker.join(_LONGEST_END_S)
        self._opened.close()

    def __enter__(self) -> Self:
        """Open it."""
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def submit(self, request: JobRequest, idempotency_key: str | None = None) -> Job:
        """Ask for a job; with a key that was given within a day, it is the one that was asked for then.

        Raises:
            JobsOffError: it takes no jobs.
            UsedKeyError: the key was given with another request.
            FullQueueError: too many wait.
            SourceError: the source or a path is not there.
            JobError: the request asks for what excludes each other.
        """
        self._check_on()
        if (first := self._first(request, idempotency_key)) is not None:
            return first
        requests.check(load_settings(self._settings.root), request)
        with self._changed:
            if (first := self._first(request, idempotency_key)) is not None:  # another thread was quicker
                return first
            self._check_room()
            number = self._records.next_number()
            record = Record(str(uuid4()), number, request, State.QUEUED, idempotency_key, created_at=now())
            self._records.write(record)
            self._changed.notify_all()
            return self._job(record)

    def _first(self, request: JobRequest, key: str | None) -> Job | None:
        with self._changed:
            record = self._records.with_key(key) if key is not None else None
            if record is not None and record.request != request:
                raise UsedKeyError(f"the key {key!r} belongs to another request, job {record.id}: choose a new one")
            return self._job(record) if record is not None else None

    def _check_room(self) -> None:
        waiting = sum(record.state is State.QUEUED for record in self._records.all())
        most = self._settings.serve.queue
        if waiting >= most:
            seconds = max(1, round(self._usual_s()))
            raise FullQueueError(f"{waiting} jobs wait already (serve.queue = {most}): try again later", seconds)

    def _usual_s(self) -> float:
        """How long a job takes, by the last ones."""
        took = [seconds for record in self._records.all() if (seconds := record.seconds) is not None][-10:]
        return sum(took) / len(took) if took else _USUAL_S

    def get(self, id: str) -> Job:  # noqa: A002 the word of the interface
        """A job, or the run of others with this id.

        Raises:
            UnknownJobError: there is none.
        """
        with self._changed:
            record = self._records.get(id)
            if record is not None:
                return self._job(record)
        run = self._recorded.get(id)
        if run is None:
            raise UnknownJobError(f"there is no job {id!r}; jobs are kept for 7 days, and the newest 1,000")
        return run

    def all(self) -> list[Job]:
        """All jobs and the newest runs of others, the newest first."""
        runs = self._newest_runs()
        with self._changed:
            ours = {record.id: self._job(record) for record in self._records.all()}
        theirs = [run for run in runs if run.id not in ours]
        return sorted([*reversed(ours.values()), *theirs], key=lambda job: job.created_at, reverse=True)

    def _newest_runs(self) -> list[Job]:
        with self._changed:
            read_at, runs = self._runs
        if time.monotonic() - read_at < _RUNS_AGE_S:
            return runs
        found = self._recorded.newest(_RUNS_SHOWN)
        with self._changed:
            self._runs = (time.monotonic(), found)
        return found

    def cancel(self, id: str) -> Job:  # noqa: A002 the word of the interface
        """Cancel a job, or a run of others: one that waits has ended at once, one that works ends soon.

        Raises:
            UnknownJobError: there is none with this id.
            EndedJobError: it has ended.
            JobsOffError: it takes no jobs.
            JobError: the run of others cannot be reached.
        """
        self._check_on()
        with self._changed:
            record = self._records.get(id)
            if record is not None:
                return self._job(self._cancelled(record))
        self.get(id)
        self._recorded.cancel(id)
        with self._changed:
            self._runs = (-_RUNS_AGE_S, [])
        return self.get(id)

    def _cancelled(self, record: Record) -> Record:
        if record.state.has_ended:
            raise EndedJobError(f"job {record.id} has ended already: {record.state}")
        if record.state is State.QUEUED:
            record = self._records.write(record.ended(State.CANCELED))
        elif record.state is State.RUNNING:
            record = self._records.write(replace(record, state=State.CANCELLING))
        self._changed.notify_all()
        return record

    def events(self, id: str, after: int = 0, wait_s: float = 0.0) -> list[JobEvent]:  # noqa: A002 as above
        """The events of a job after the one with a number; waits so long for the first of them.

        Raises:
            UnknownJobError: there is no such job.
        """
        until = time.monotonic() + wait_s
        with self._changed:
            while (record := self._records.get(id)) is not None:
                found = [event for event in self._reported(record) if event.number > after]
                left = until - time.monotonic()
                if found or left <= 0 or record.state.has_ended or self._is_closing:
                    return found
                self._changed.wait(left)
        return self._events_of_run(id, after, until)

    def _events_of_run(self, run_id: str, after: int, until: float) -> list[JobEvent]:
        """Only that it has ended is known of a run of others."""
        while not (job := self.get(run_id)).state.has_ended:
            left = until - time.monotonic()
            if left <= 0 or self._is_closing:
                return []
            time.sleep(min(left, _RUNS_AGE_S))
        return [JobEvent(1, journal.ENDED, _end(job))] if after < 1 else []

    def has_ended(self, id: str) -> bool:  # noqa: A002 as above
        """Whether nothing more becomes of a job.

        Raises:
            UnknownJobError: there is no such job.
        """
        return self.get(id).state.has_ended

    def _check_on(self) -> None:
        if not self._is_on:
            raise JobsOffError("this server takes no jobs (--no-jobs): run `docindex index` where the project is")
        if self._is_closing or not self._worker.is_alive():
            raise JobsOffError("this server takes no jobs now: it is starting or ending; try again")

    def _reported(self, record: Record) -> list[JobEvent]:
        """The events that others see: the last one is the server's."""
        events = [event for event in self._tail(record.id).read() if event.name != journal.FINISHED]
        if record.state.has_ended:
            events.append(JobEvent(len(events) + 1, journal.ENDED, _end(self._job(record))))
        return events

    def _tail(self, job: str) -> Tail:
        """What follows the events of a job; those that nobody looked at for long are forgotten."""
        if job not in self._tails:
            self._tails[job] = Tail(self._layout.job(job, "events"))
            if len(self._tails) > _MOST_TAILS:
                self._tails.popitem(last=False)
        self._tails.move_to_end(job)
        return self._tails[job]

    def _job(self, record: Record) -> Job:
        if record.state is State.QUEUED:
            has_run, position = False, progress.NOT_BEGUN
        elif record.state.has_ended:
            has_run, position = record.has_run, record.position
        else:
            events = self._tail(record.id).read()
            has_run, position = bool(events), progress.of_events(events)
        return Job(
            id=record.id,
            request=record.request,
            state=record.state,
            phase=position.phase,
            done=position.done,
            total=position.total,
            percent=position.percent,
            created_at=record.created_at,
            started_at=record.started_at,
            ended_at=record.ended_at,
            run_id=record.id if has_run else None,
            summary=record.summary,
            failures=record.failures,
            launched_by="serve",
        )

    def _work(self) -> None:
        """Do one job after the other, until it is closed."""
        while not self._is_closing:
            try:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing or self._next() is not None)
                    record = None if self._is_closing else self._next()
                if record is not None:
                    self._do(record)
            except Exception:  # noqa: BLE001 it is logged, and a thread that ends would say nothing
                # The jobs that wait are worth another attempt, whatever is wrong: a full disk will be freed.
                _LOG.exception("the work on the jobs goes on in %s s", _AFTER_A_FAILURE_S)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, _AFTER_A_FAILURE_S)

    def _next(self) -> Record | None:
        """The job that works or worked when the last server ended, else the one that waits longest."""
        unfinished = [record for record in self._records.all() if not record.state.has_ended]
        begun = [record for record in unfinished if record.state is not State.QUEUED]
        return next(iter(begun or unfinished), None)

    def _do(self, record: Record) -> None:
        """Bring a job to its end, unless it is closed before."""
        if record.state is State.QUEUED:
            self._start(record)
        if self._follow(record.id):
            self._end(record.id)

    def _start(self, record: Record) -> None:
        """Start the process of a job, unless it has been cancelled meanwhile."""
        with self._changed:
            record = self._records.get(record.id) or record
            if record.state is not State.QUEUED:
                return
            started = replace(record, state=State.RUNNING, started_at=now(), attempts=record.attempts + 1)
            self._records.write(started)
            self._layout.job(record.id, "events").unlink(missing_ok=True)  # a line that an attempt before did not end
            child.start(self._settings, self._command, record.id, record.request)

    def _follow(self, job: str) -> bool:
        """Watch the process of a job, and end it where it is cancelled; whether it has ended."""
        ending: Ending | None = None
        seen = 0
        while child.is_alive(self._layout, job):
            with self._changed:
                seen, before = len(self._tail(job).read()), seen
                if seen > before:
                    self._changed.notify_all()
                record = self._records.get(job)
            if record is not None and record.state is State.CANCELLING:
                ending = ending or self._ending(job)
                if ending is not None:
                    ending.press()
            with self._changed:
                if self._is_closing:
                    return False
                self._changed.wait(_POLL_S)
        return True

    def _ending(self, job: str) -> Ending | None:
        """What ends the process of a job; None where that is not known yet."""
        pid = child.process_of(self._layout, job)
        if pid is None:
            return None
        self._recorded.mark_cancelling(job)  # before the signal, by which the run would be a failed one
        return Ending(pid)

    def _settled(self, ended: Record) -> Record:
        """The record of a job whose run may have ended well at the last moment."""
        run = self._recorded.get(ended.id)
        has_succeeded = run is not None and run.state is State.SUCCEEDED
        return replace(ended, state=State.SUCCEEDED, failures=(), position=progress.DONE) if has_succeeded else ended

    def _end(self, job: str) -> None:
        """Write down how a job ended whose process is gone, or that it waits again."""
        with self._changed:
            record = self._records.get(job)
            if record is None or record.state.has_ended:
                return
            ended = end_of(record, self._tail(job).read(), child.last_words(self._layout.job(job, "log")))
        if ended.state in {State.CANCELED, State.LOST} and ended.has_run:
            ended = self._settled(ended)
        with self._changed:
            record = self._records.get(job) or record
            if record.state is State.CANCELLING and ended.state is State.QUEUED:  # cancelled this very moment
                ended = record.ended(State.CANCELED)
            self._records.write(ended)
            for old in self._records.prune():
                self._tails.pop(old, None)
            self._changed.notify_all()


def _end(job: Job) -> dict[str, object]:
    """What the last event of a job says."""
    return {"state": str(job.state), "run_id": job.run_id, "summary": job.summary, "failures": list(job.failures)}
