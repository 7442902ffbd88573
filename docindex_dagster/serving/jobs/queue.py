"""The jobs of a project: asked for, shown, followed and cancelled. One works at a time, the others wait in their order.

Jobs are runs in the journal, which `docindex serve` was asked for. Only their lines and locks say how they do, so a
server that is started again goes on where one that was killed was.
"""

import logging
import os
import signal
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Condition, Thread
from typing import Protocol, Self
from uuid import uuid4

from docindex_dagster.core import access
from docindex_dagster.core.errors import (
    AccessError,
    EndedJobError,
    FullQueueError,
    JobError,
    JobsOffError,
    UnknownJobError,
    UsedKeyError,
)
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free, holder
from docindex_dagster.core.settings import Settings, check_home, load_settings
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Entry, Run, State
from docindex_dagster.serving.jobs import job_process, model
from docindex_dagster.serving.jobs.model import (
    DONE,
    ENDED,
    NOT_BEGUN,
    Job,
    JobEvent,
    JobRequest,
    Position,
    Tail,
    iso_time,
    position_of,
)

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1  # between two looks at a process that works
_RUNS_SHOWN = 100
_RUNS_AGE_S = 1.0  # how old what is shown of other runs may be
_MOST_TAILS = 32
_LONGEST_END_S = 10.0
_AFTER_A_FAILURE_S = 5.0
_USUAL_S = 30.0  # of a job, while none is known


class RecordedRuns(Protocol):
    """The runs of a project that Dagster has recorded."""

    def newest(self, limit: int) -> list[Job]:
        """The newest runs that index or remove a source, as jobs."""

    def get(self, run_id: str) -> Job | None:
        """One run as a job; None where there is none."""

    def cancel(self, run_id: str) -> None:
        """Stop a run.

        Raises:
            EndedJobError: it has ended.
            JobError: it is not known how to reach it.
        """


@dataclass(frozen=True, slots=True)
class _Known:
    """A run in the journal, with its file and as a job."""

    path: Path
    entry: Entry
    job: Job

    @property
    def is_ours(self) -> bool:
        return self.entry.run.launched_by == "serve"


class Jobs:
    """The jobs of one project. Threads may share it; as a context it works on them.

    Runs that others started are shown among them, by their ids: those in the journal, and those that Dagster recorded.
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
        self._known: dict[Path, _Known] = {}
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._runs: tuple[float, list[Job]] = (-_RUNS_AGE_S, [])
        self._worker = Thread(target=self._work, name="jobs", daemon=True)

    def __enter__(self) -> Self:
        """Take up the work where an earlier server left it.

        Raises:
            AccessError: another server works on the jobs of this project.
        """
        if not self._is_on:
            return self
        with access.writing(self._settings):
            self._layout.journal.mkdir(exist_ok=True)
        lock = self._layout.jobs_lock
        if not self._opened.enter_context(exclusive_if_free(lock, "docindex serve")):
            other = holder(lock)
            self._opened.close()
            who = f"process {other.pid}" if other else "another process"
            raise AccessError(f"{who} serves this project already: stop it first, or give --no-jobs")
        journal.prune(self._layout)
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

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def submit(self, request: JobRequest, key: str | None = None) -> Job:
        """Ask for a job; with a key that was given within a day, it is the one that was asked for then.

        Raises:
            JobsOffError: it takes no jobs.
            LinkError: a pull has made a folder around the home a link.
            UsedKeyError: the key was given with another request.
            FullQueueError: too many wait.
            SourceError: the source or a path is not there.
            JobError: the request asks for what excludes each other.
        """
        self._check_on()
        if (first := self._first(request, key)) is not None:
            return first
        model.check(load_settings(self._settings.root), request)
        with self._changed:
            if (first := self._first(request, key)) is not None:  # another thread was quicker
                return first
            self._check_room()
            run = Run(
                str(uuid4()), request.source, "serve", time.time(), request.mode, request.paths, request.kind, key
            )
            journal.ask(self._layout, run)
            self._changed.notify_all()
            return self.get(run.run_id)

    def _first(self, request: JobRequest, key: str | None) -> Job | None:
        found = (known for known in self._ours() if key is not None and known.entry.run.key == key)
        first = next((known for known in found if journal.holds_key(known.entry.run)), None)
        if first is not None and first.job.request != request:
            raise UsedKeyError(f"the key {key!r} belongs to another request, job {first.job.id}: choose a new one")
        return None if first is None else first.job

    def _check_room(self) -> None:
        waiting = sum(known.job.state is State.QUEUED for known in self._ours())
        most = self._settings.serve.queue
        if waiting >= most:
            seconds = max(1, round(self._usual_s()))
            raise FullQueueError(f"{waiting} jobs wait already (serve.queue = {most}): try again later", seconds)

    def _usual_s(self) -> float:
        """How long a job takes, by the last ones."""
        took = [known.job.seconds for known in self._ours() if known.job.seconds is not None][-10:]
        return sum(took) / len(took) if took else _USUAL_S

    def get(self, id: str) -> Job:  # noqa: A002 the word of the interface
        """A job, or the run of others with this id.

        Raises:
            UnknownJobError: there is none.
        """
        known = self._find(id)
        job = self._recorded.get(id) if known is None else known.job
        if job is None:
            raise UnknownJobError(f"there is no job {id!r}; jobs are kept for 7 days, and the newest 1,000")
        return job

    def all(self) -> list[Job]:
        """All jobs and the newest runs of others, the newest first."""
        jobs = {known.job.id: known.job for known in self._journaled()}
        recorded = [run for run in self._newest_runs() if run.id not in jobs]
        return sorted([*reversed(jobs.values()), *recorded], key=lambda job: job.created_at, reverse=True)

    def _journaled(self, id: str | None = None) -> list[_Known]:  # noqa: A002 as above
        """The runs in the journal, oldest first; with an id, that one alone."""
        with self._changed:
            paths = journal.files(self._layout)
            if gone := self._known.keys() - set(paths):
                self._known = {path: known for path, known in self._known.items() if path not in gone}
                self._runs = (-_RUNS_AGE_S, [])  # they may be recorded by now
            wanted = paths if id is None else [path for path in paths if path.stem.partition("-")[2] == id]
            return [known for path in wanted if (known := self._look(path)) is not None]

    def _look(self, path: Path) -> _Known | None:
        known = self._known.get(path)
        if known is None or not known.job.state.has_ended:
            entry = journal.read(path)
            if entry is None:
                return None
            known = self._known[path] = _Known(path, entry, self._job(path, entry))
        return known

    def _ours(self) -> list[_Known]:
        return [known for known in self._journaled() if known.is_ours]

    def _find(self, id: str) -> _Known | None:  # noqa: A002 as above
        return next(iter(self._journaled(id)), None)

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
            LinkError: as `submit`.
            JobError: the run of others cannot be reached.
        """
        self._check_on()
        with self._changed:
            known = self._find(id)
            if known is not None:
                self._cancel(known)
                self._changed.notify_all()
                return self.get(id)
        self.get(id)
        self._recorded.cancel(id)
        with self._changed:
            self._runs = (-_RUNS_AGE_S, [])
        return self.get(id)

    def _cancel(self, known: _Known) -> None:
        entry = known.entry
        if entry.state.has_ended:
            raise EndedJobError(f"job {entry.run.run_id} has ended already: {entry.state}")
        if entry.run.launched_by == "watch":
            raise JobError(
                f"run {entry.run.run_id} belongs to process {entry.pid}, which watches the sources: stop that one"
            )
        journal.cancel(known.path)
        if not known.is_ours:  # the thread that follows a job ends its process
            with suppress(ProcessLookupError):
                os.kill(entry.pid, signal.SIGINT)

    def events(self, id: str, after: int = 0) -> list[JobEvent]:  # noqa: A002 as above
        """The events of a job after the one with a number; of a run of others, only that it has ended.

        Raises:
            UnknownJobError: there is no such job.
        """
        known = self._find(id)
        job = self.get(id) if known is None else known.job
        events = list(self._tail(known.path).events) if known is not None and known.is_ours else []
        if job.state.has_ended:
            events.append(JobEvent(len(events) + 1, ENDED, _end(job)))
        return events[after:]

    def _check_on(self) -> None:
        if not self._is_on:
            raise JobsOffError("this server takes no jobs (--no-jobs): run `docindex index` where the project is")
        if self._is_closing or not self._worker.is_alive():
            raise JobsOffError("this server takes no jobs now: it is starting or ending; try again")
        check_home(self._settings)

    def _tail(self, path: Path) -> Tail:
        """The events in the file of a job; those that nobody looked at for long are read anew."""
        with self._changed:
            tail = self._tails.setdefault(path.stem, Tail())
            self._tails.move_to_end(path.stem)
            if len(self._tails) > _MOST_TAILS:
                self._tails.popitem(last=False)
            return tail.read(path)

    def _job(self, path: Path, entry: Entry) -> Job:
        run, end, state = entry.run, entry.end, entry.state
        return Job(
            id=run.run_id,
            request=JobRequest(run.kind, run.source, run.mode, run.only),
            state=state,
            **asdict(self._position(path, entry)),
            created_at=iso_time(run.asked_at),
            started_at=None if entry.started_at is None or state is State.QUEUED else iso_time(entry.started_at),
            ended_at=iso_time(end.ended_at) if end is not None else None,
            run_id=run.run_id if entry.has_begun else None,
            summary=entry.summary,
            failures=end.failures if end is not None and state is not State.CANCELED else (),
            launched_by=run.launched_by,
        )

    def _position(self, path: Path, entry: Entry) -> Position:
        run, state = entry.run, entry.state
        if state is State.SUCCEEDED:
            return DONE
        if run.launched_by == "serve":
            return self._tail(path).position if entry.has_begun else NOT_BEGUN
        return NOT_BEGUN if state.has_ended else position_of(self._layout, run.source, run.run_id)

    def _work(self) -> None:
        """Do one job after the other, until it is closed."""
        while not self._is_closing:
            try:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing or self._next() is not None)
                    known = None if self._is_closing else self._next()
                if known is not None:
                    self._do(known.path)
            except Exception:  # noqa: BLE001 it is logged, and a thread that ends would say nothing
                # The jobs that wait are worth another attempt, whatever is wrong: a full disk will be freed.
                _LOG.exception("the work on the jobs goes on in %s s", _AFTER_A_FAILURE_S)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, _AFTER_A_FAILURE_S)

    def _next(self) -> _Known | None:
        """The job that works or worked when the last server ended, else the one that waits longest."""
        unfinished = [known for known in self._ours() if not known.job.state.has_ended]
        begun = [known for known in unfinished if known.job.state is not State.QUEUED]
        return next(iter(begun or unfinished), None)

    def _do(self, path: Path) -> None:
        """Bring a job to its end, unless it is closed before."""
        check_home(self._settings)
        with self._changed:
            entry = journal.read(path)
            if entry is not None and entry.state is State.QUEUED:  # else it was cancelled meanwhile, or works
                job_process.start(self._settings, self._command, path)
        if self._follow(path):
            with self._changed:
                entry = journal.read(path)
                if entry is not None and entry.end is not None and not entry.has_stages:
                    journal.settle(path, entry)  # Dagster will not record it
                journal.prune(self._layout)
                self._changed.notify_all()

    def _follow(self, path: Path) -> bool:
        """Watch the process of a job, and end it where it is cancelled; whether it has ended."""
        signals, cancelled_at = list(job_process.SIGNALS), 0.0
        while holder(path) is not None:
            entry = journal.read(path)
            if entry is not None and entry.is_cancelled and entry.pid:
                cancelled_at = cancelled_at or time.monotonic()
                if signals and time.monotonic() >= cancelled_at + signals[0][0]:
                    job_process.send(entry.pid, signals.pop(0)[1])
            with self._changed:
                if self._is_closing:
                    return False
                self._changed.wait(_POLL_S)
        return True


def _end(job: Job) -> dict[str, object]:
    """What the last event of a job says."""
    return {"state": str(job.state), "run_id": job.run_id, "summary": job.summary, "failures": list(job.failures)}
