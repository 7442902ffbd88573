"""Tests that killing the server or a job's process never loses a job, or repeats one silently."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import dagster as dg
import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Entry
from docindex_dagster.serving.jobs.model import Tail
from tests.incremental.conftest import folder, say  # noqa: F401 they are fixtures
from tests.incremental.contents import difference, problems
from tests.incremental.processes import CHECKOUT, anew, contents_of, ended
from tests.incremental.projects import Project
from tests.recording import record_all

Victim = Literal["server", "process", "both"]
_SOURCES = ("git/code", "library/notes")
_VICTIMS: tuple[Victim, ...] = ("server", "process", "both")
_ORPHANS_END_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Kill:
    """The killed process, the job's progress at that time, and the job's final state."""

    victim: Victim
    died_in: str
    state: str


class Server:
    """A process that serves a project's jobs."""

    def __init__(self, project: Project, source: str, key: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.serving.jobs.server", source, key],
            cwd=CHECKOUT,
            env=project.environment(os.environ),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.says() == "open"

    def says(self) -> str:
        """Return the next line of its output, or an empty string if it has ended."""
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        """Wait for the process to exit."""
        self.process.wait()
        self.process.stdout.close()


def test_no_job_is_lost_or_done_twice(folder):  # noqa: F811
    (killed,) = kill_jobs(folder, 1, number=3, victims=("both",))

    assert killed.victim == "both"
    assert killed.state in {"succeeded", "lost"}


@pytest.mark.kill
def test_no_job_is_lost_or_done_twice_in_dozens_of_kills(folder, say):  # noqa: F811
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 50)
    say(f"to repeat: make test-kill DOCINDEX_TEST_SEED={number} DOCINDEX_TEST_KILLS={wanted}")

    kills = kill_jobs(folder, wanted, number=number)

    say(figures(kills))
    assert len(kills) == wanted
    assert [kill.victim for kill in kills[:3]] == list(_VICTIMS[:wanted])
    assert {kill.state for kill in kills} <= {"succeeded", "lost"}


def kill_jobs(root: Path, times: int, *, number: int, victims: Sequence[Victim] = _VICTIMS) -> list[Kill]:
    """Repeat `times` times: edit, submit a job, kill a process, restart the server and check the job."""
    project = Project.create(root, number, files=16)
    chance = random.Random(number)
    duration = _undisturbed(project, _SOURCES[0])
    kills: list[Kill] = []
    for at in range(times):
        project.edit()
        source, victim = _SOURCES[at % 2], victims[at % len(victims)]
        server = Server(project, source, f"kill {at}")
        time.sleep(chance.random() ** 3 * duration)  # mostly early: submitting and starting a job are quick
        died_in = kill(project, server, victim, f"kill {at}")
        server.close()
        again = Server(project, source, f"kill {at}")
        job, state = again.says(), again.says()
        again.close()
        where = f"{victim} killed in {died_in}, at kill {at} of seed {number}"
        check(project, job, state, died_in, where)
        kills.append(Kill(victim, died_in, state))
    for source in _SOURCES:
        _undisturbed(project, source)
    assert difference(contents_of(project), anew(project, "library")) == ""
    assert problems(project.layout) == []
    return kills


def kill(project: Project, server: Server, victim: Victim, key: str) -> str:
    """Kill a process, and return the job's last stage or the step that its process had not yet reached."""
    if victim == "server":
        server.kill()
    path = file_of(project.layout, key)
    pid = process_of(path) if path is not None else None
    if victim != "server" and pid is not None:
        os.killpg(pid, signal.SIGKILL)
    if victim == "both":
        server.kill()
    if victim == "process":  # let the server notice the job's end
        while server.says():
            pass
    if pid is not None and victim != "server":
        assert ended(pid, _ORPHANS_END_WITHIN_S)
    if path is None:
        return "before it was asked for"
    if pid is None and victim == "process":
        return "no process, so that nothing was killed"
    events = Tail().read(path).events
    return str(events[-1].data.get("stage", events[-1].name)) if events else "before it began"


def jobs_of(layout: Layout) -> list[tuple[Path, Entry]]:
    """Return the files and entries of a project's jobs."""
    found = ((path, journal.read(path)) for path in journal.files(layout))
    return [(path, entry) for path, entry in found if entry is not None]


def file_of(layout: Layout, key: str) -> Path | None:
    return next((path for path, entry in jobs_of(layout) if entry.run.key == key), None)


def process_of(path: Path) -> int | None:
    """Return the PID of a job's process, found by its argument, or None if it is not running."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"\0{path.stem}\0" in (process / "cmdline").read_text():
                return int(process.name)
        except OSError:
            continue
    return None


def check(project: Project, job: str, state: str, died_in: str, where: str) -> None:
    """Check the entry and the run of a job, and that no other runs exist.

    Every started job has exactly one run, and its outcome matches the entry.
    """
    with dagster_runs.instance(project.settings) as instance:
        record_all(project.settings, instance)
        runs = {run.run_id: run.status for run in instance.get_runs()}
    entries = [entry for _, entry in jobs_of(project.layout)]
    (entry,) = (each for each in entries if each.run.run_id == job)
    assert (entry.state, entry.state.has_ended) == (state, True), where
    assert len({each.run.key for each in entries}) == len(entries), where
    assert runs.keys() == {each.run.run_id for each in entries if each.has_begun}, where
    if state == "succeeded":
        assert runs[job] is dg.DagsterRunStatus.SUCCESS, where
    else:
        assert state == "lost", where
        assert entry.end.failures, where
        assert died_in != "before it was asked for", where
        assert runs.get(job, dg.DagsterRunStatus.FAILURE) is dg.DagsterRunStatus.FAILURE, where
    assert problems(project.layout) == [], where


def _undisturbed(project: Project, source: str) -> float:
    """Return the duration of an undisturbed job in seconds."""
    server = Server(project, source, json.dumps([source, time.time()]))
    started = time.monotonic()
    job, state = server.says(), server.says()
    seconds = time.monotonic() - started
    server.close()
    assert state == "succeeded", (job, jobs_of(project.layout))
    return seconds


def figures(kills: list[Kill]) -> str:
    """Return a summary of the killed processes, the progress of their jobs, and the outcomes."""
    counted = Counter((kill.victim, kill.state) for kill in kills)
    lines = [f"{len(kills)} kills:", *(f"  {victim:<8} {state:<10} {n:>3}" for (victim, state), n in counted.items())]
    stages = Counter(kill.died_in for kill in kills)
    return "\n".join([*lines, "by where the job was:", *(f"  {stage:<24} {n:>3}" for stage, n in stages.items())])
