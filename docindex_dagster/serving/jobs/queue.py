"""Job queue of a project: submit, list, follow and cancel jobs. One job runs at a time; the others wait in order.

Jobs are runs in the journal that were requested from `docindex serve`. Their state is entirely in their lines and
locks, so a restarted server continues where a killed one stopped.
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
    JobsDisabledError,
    ReusedKeyError,
    UnknownJobError,
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
_POLL_S = 0.1  # between two checks of a running process
_RUNS_SHOWN = 100
_RUNS_MAX_AGE_S = 1.0  # maximum age of the cached list of other runs
_MAX_TAILS = 32
_CLOSE_TIMEOUT_S = 10.0
_RETRY_DELAY_S = 5.0
_DEFAULT_DURATION_S = 30.0  # the assumed duration of a job until one has ended


class RecordedRuns(Protocol):
    """The project's runs as recorded by Dagster."""

    def newest(self, limit: int) -> list[Job]:
        """Return the newest runs that index or remove a source, as jobs."""

    def get(self, run_id: str) -> Job | None:
        """Return a run as a job; None if it does not exist."""

    def cancel(self, run_id: str) -> None:
        """Stop a run.

        Raises:
            EndedJobError: it has ended.
            JobError: its process cannot be reached.
        """


@dataclass(frozen=True, slots=True)
class _JournaledJob:
    """A run in the journal, with its file and its job."""

    path: Path
    entry: Entry
    job: Job

    @property
    def is_ours(self) -> bool:
        return self.entry.run.launched_by == "serve"


class Jobs:
    """The jobs of one project. Threads may share it. As a context manager, it runs them.

    Runs that something else started are listed as well, by id: those in the journal and those recorded by Dagster.
    """

    def __init__(
        self, settings: Settings, recorded: RecordedRuns, command: Sequence[str], *, is_on: bool = True
    ) -> None:
        """Create the queue without starting it.

        Args:
            settings: the project's settings.
            recorded: the runs recorded by Dagster.
            command: the program that runs a job.
            is_on: whether jobs are accepted; if not, only other runs are shown.
        """
        self._settings = settings
        self._layout = Layout(settings.home)
        self._recorded = recorded
        self._command = command
        self._is_on = is_on
        self._opened = ExitStack()
        self._changed = Condition()
        self._is_closing = False
        self._known: dict[Path, _JournaledJob] = {}
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._runs: tuple[float, list[Job]] = (-_RUNS_MAX_AGE_S, [])
        self._worker = Thread(target=self._run_jobs, name="jobs", daemon=True)

    def __enter__(self) -> Self:
        """Start working, beginning with what an earlier server left unfinished.

        Raises:
            AccessError: another server runs the jobs of this project.
        """
        if not self._is_on:
            return self
        with access.writable_home(self._settings):
            self._layout.journal.mkdir(exist_ok=True)
        lock = self._layout.jobs_lock
        if not self._opened.enter_context(exclusive_if_free(lock, "docindex serve")):
            other = holder(lock)
            self._opened.close()
            owner = f"process {other.pid}" if other else "another process"
            raise AccessError(f"{owner} already serves this project: stop it first, or pass --no-jobs")
        journal.prune(self._layout)
        self._worker.start()
        return self

    def close(self) -> None:
        """Stop. A running job continues, and the next server follows it."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._worker.is_alive():
            self._worker.join(_CLOSE_TIMEOUT_S)
        self._opened.close()

    def __exit__(self, *_: object) -> None:
        """Close the queue."""
        self.close()

    def submit(self, request: JobRequest, key: str | None = None) -> Job:
        """Submit a job. If the key was used within a day, return the job that was submitted with it.

        Raises:
            JobsDisabledError: the server accepts no jobs.
            LinkError: a folder around the home has become a symbolic link, for example after a pull.
            ReusedKeyError: the key was used with another request.
            FullQueueError: too many jobs are waiting.
            SourceError: the source or a path does not exist.
            JobError: the request contains options that exclude each other.
        """
        self._check_accepting()
        if (first := self._job_of_key(request, key)) is not None:
            return first
        model.check(load_settings(self._settings.root), request)
        with self._changed:
            if (first := self._job_of_key(request, key)) is not None:  # another thread was faster
                return first
            self._check_room()
            run = Run(
                str(uuid4()), request.source, "serve", time.time(), request.mode, request.paths, request.kind, key
            )
            journal.add_queued(self._layout, run)
            self._changed.notify_all()
            return self.get(run.run_id)

    def _job_of_key(self, request: JobRequest, key: str | None) -> Job | None:
        found = (known for known in self._ours() if key is not None and known.entry.run.key == key)
        first = next((known for known in found if journal.holds_key(known.entry.run)), None)
        if first is not None and first.job.request != request:
            raise ReusedKeyError(f"the key {key!r} belongs to another request, job {first.job.id}: choose a new one")
        return None if first is None else first.job

    def _check_room(self) -> None:
        waiting = sum(known.job.state is State.QUEUED for known in self._ours())
        limit = self._settings.serve.queue
        if waiting >= limit:
            seconds = max(1, round(self._typical_duration_s()))
            raise FullQueueError(f"{waiting} jobs are already queued (serve.queue = {limit}): try again later", seconds)

    def _typical_duration_s(self) -> float:
        """Return the typical duration of a job, from the latest ones."""
        durations = [known.job.seconds for known in self._ours() if known.job.seconds is not None][-10:]
        return sum(durations) / len(durations) if durations else _DEFAULT_DURATION_S

    def get(self, id: str) -> Job:  # noqa: A002 the name in the API
        """Return a job, or another run with this id.

        Raises:
            UnknownJobError: it does not exist.
        """
        known = self._find(id)
        job = self._recorded.get(id) if known is None else known.job
        if job is None:
            raise UnknownJobError(f"job {id!r} not found; the newest 1,000 jobs are kept for 7 days")
        return job

    def all(self) -> list[Job]:
        """Return all jobs and the newest other runs, newest first."""
        jobs = {known.job.id: known.job for known in self._journaled()}
        recorded = [run for run in self._newest_runs() if run.id not in jobs]
        return sorted([*reversed(jobs.values()), *recorded], key=lambda job: job.created_at, reverse=True)

    def _journaled(self, id: str | None = None) -> list[_JournaledJob]:  # noqa: A002 as above
        """Return the runs in the journal, oldest first; with an id, only that one."""
        with self._changed:
            paths = journal.files(self._layout)
            if gone := self._known.keys() - set(paths):
                self._known = {path: known for path, known in self._known.items() if path not in gone}
                self._runs = (-_RUNS_MAX_AGE_S, [])  # Dagster may have recorded them by now
            selected = paths if id is None else [path for path in paths if path.stem.partition("-")[2] == id]
            return [known for path in selected if (known := self._load(path)) is not None]

    def _load(self, path: Path) -> _JournaledJob | None:
        known = self._known.get(path)
        if known is None or not known.job.state.has_ended:
            entry = journal.read(path)
            if entry is None:
                return None
            known = self._known[path] = _JournaledJob(path, entry, self._job(path, entry))
        return known

    def _ours(self) -> list[_JournaledJob]:
        return [known for known in self._journaled() if known.is_ours]

    def _find(self, id: str) -> _JournaledJob | None:  # noqa: A002 as above
        return next(iter(self._journaled(id)), None)

    def _newest_runs(self) -> list[Job]:
        with self._changed:
            read_at, runs = self._runs
        if time.monotonic() - read_at < _RUNS_MAX_AGE_S:
            return runs
        found = self._recorded.newest(_RUNS_SHOWN)
        with self._changed:
            self._runs = (time.monotonic(), found)
        return found

    def cancel(self, id: str) -> Job:  # noqa: A002 the name in the API
        """Cancel a job or another run. A waiting one ends immediately, a running one soon.

        Raises:
            UnknownJobError: no job or run has this id.
            EndedJobError: it has ended.
            JobsDisabledError: the server accepts no jobs.
            LinkError: see `submit`.
            JobError: the process of the other run cannot be reached.
        """
        self._check_accepting()
        with self._changed:
            known = self._find(id)
            if known is not None:
                self._cancel(known)
                self._changed.notify_all()
                return self.get(id)
        self.get(id)
        self._recorded.cancel(id)
        with self._changed:
            self._runs = (-_RUNS_MAX_AGE_S, [])
        return self.get(id)

    def _cancel(self, known: _JournaledJob) -> None:
        entry = known.entry
        if entry.state.has_ended:
            raise EndedJobError(f"job {entry.run.run_id} has ended already: {entry.state}")
        if entry.run.launched_by == "watch":
            raise JobError(
                f"run {entry.run.run_id} belongs to process {entry.pid}, which watches the sources: stop that process"
            )
        journal.cancel(known.path)
        if not known.is_ours:  # the thread that follows one of our jobs ends its process
            with suppress(ProcessLookupError):
                os.kill(entry.pid, signal.SIGINT)

    def events(self, id: str, after: int = 0) -> list[JobEvent]:  # noqa: A002 as above
        """Return the events of a job after a number. For other runs, the only event is that they have ended.

        Raises:
            UnknownJobError: the job does not exist.
        """
        known = self._find(id)
        job = self.get(id) if known is None else known.job
        events = list(self._tail(known.path).events) if known is not None and known.is_ours else []
        if job.state.has_ended:
            events.append(JobEvent(len(events) + 1, ENDED, _end(job)))
        return events[after:]

    def _check_accepting(self) -> None:
        if not self._is_on:
            raise JobsDisabledError(
                "this server accepts no jobs (--no-jobs): run `docindex index` in the project instead"
            )
        if self._is_closing or not self._worker.is_alive():
            raise JobsDisabledError("this server accepts no jobs while it is starting or stopping; try again")
        check_home(self._settings)

    def _tail(self, path: Path) -> Tail:
        """Return the events in the file of a job. Only the most recently used files stay cached."""
        with self._changed:
            tail = self._tails.setdefault(path.stem, Tail())
            self._tails.move_to_end(path.stem)
            if len(self._tails) > _MAX_TAILS:
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

    def _run_jobs(self) -> None:
        """Run one job after another until closed."""
        while not self._is_closing:
            try:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing or self._next() is not None)
                    known = None if self._is_closing else self._next()
                if known is not None:
                    self._run(known.path)
            except Exception:  # noqa: BLE001 it is logged, and the thread must not end silently
                # Retry whatever the cause, since queued jobs may succeed later, for example once a full disk is freed.
                _LOG.exception("processing of jobs failed; retrying in %s s", _RETRY_DELAY_S)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, _RETRY_DELAY_S)

    def _next(self) -> _JournaledJob | None:
        """Return the job that was running when the last server ended, else the one that has waited longest."""
        unfinished = [known for known in self._ours() if not known.job.state.has_ended]
        started = [known for known in unfinished if known.job.state is not State.QUEUED]
        return next(iter(started or unfinished), None)

    def _run(self, path: Path) -> None:
        """Run a job to its end, unless the queue is closed before."""
        check_home(self._settings)
        with self._changed:
            entry = journal.read(path)
            if entry is not None and entry.state is State.QUEUED:  # otherwise it was canceled meanwhile or is running
                job_process.start(self._settings, self._command, path)
        if self._follow(path):
            with self._changed:
                entry = journal.read(path)
                if entry is not None and entry.end is not None and not entry.has_stages:
                    journal.settle(path, entry)  # Dagster does not record it
                journal.prune(self._layout)
                self._changed.notify_all()

    def _follow(self, path: Path) -> bool:
        """Follow the process of a job and end it if canceled. Return whether the job has ended."""
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
    """Return the data of the last event of a job."""
    return {"state": str(job.state), "run_id": job.run_id, "summary": job.summary, "failures": list(job.failures)}
