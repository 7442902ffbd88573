"""Runs whose process is gone. Dagster cannot tell, and would wait for them; each run says which process it is."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from docindex_dagster.files import is_running

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
# The UI does not show tags that begin like this.
_HOST, _PID, _STARTED = ".dagster/docindex/host", ".dagster/docindex/pid", ".dagster/docindex/process_started"
_RUN = ".dagster/docindex/run"
# Marks a run that failed because its process was gone.
LOST_TAG = "docindex/lost"


def process_tags(run_id: str) -> dict[str, str]:
    """Tags that tell this process from every other one, also from a later one with the same number.

    They name the run, too: Dagster copies tags to a run that repeats another, and there they say nothing yet.
    """
    pid = os.getpid()
    return {_HOST: socket.gethostname(), _PID: str(pid), _STARTED: _started(pid) or "", _RUN: run_id}


def report_dead_runs(instance: dg.DagsterInstance, tags: Mapping[str, str] | None = None) -> list[dg.DagsterRun]:
    """Report unfinished runs of this machine whose process is gone as failed, and return them.

    Args:
        instance: where the runs are.
        tags: what they are tagged with; all runs by default.
    """
    unfinished = dg.RunsFilter(statuses=_UNFINISHED, tags={**(tags or {}), _HOST: socket.gethostname()})
    dead = [run for run in instance.get_runs(unfinished) if _is_its_own(run) and not _is_alive(run.tags)]
    for run in dead:
        instance.add_run_tags(run.run_id, {LOST_TAG: "true"})
        instance.report_run_failed(run, f"process {run.tags.get(_PID)} of this run is gone")
    return dead


def _is_its_own(run: dg.DagsterRun) -> bool:
    """Whether the tags are those of the run, not of one that it repeats."""
    return run.tags.get(_RUN, "") in {"", run.run_id}


def _is_alive(tags: Mapping[str, str]) -> bool:
    pid = tags.get(_PID, "")
    if not pid.isdecimal():
        return True
    if not is_running(int(pid)):
        return False
    return _started(int(pid)) in {None, tags.get(_STARTED) or None}


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since the machine did; None where the system does not say (not Linux)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    # The second field is the command in parentheses, which may hold anything; the start is the 22nd.
    return stat.rpartition(")")[2].split()[19]
