"""Runs whose process is gone. Dagster does not notice, and would wait for them; each run says which process it is.

The number of a process means something within its PID namespace alone, of one boot of one machine; containers may share
the name of a host. Whether a run elsewhere goes on is unknown here. Where machines share the stores, runs give a sign
of life: each holds a lock between machines that is named after it. It belongs to a session of the run's process, so it
is free soon after that is gone, and after a lease where the machine was lost, or the process paused, without a word.
Else it is left to those who know, and to Dagster's `run_monitoring`, which ends what takes too long.

By default, Dagster opens a connection to the database server for each statement, about 400 in a run. Runs keep a pool
of connections instead, as Dagster's web server does.
"""

import atexit
import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg

from docindex_dagster.core.files import is_running
from docindex_dagster.core.locks import Locks
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import shared
from docindex_dagster.defs.tags import LOST_TAG

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
# The UI does not show tags that begin like this.
_HOST, _PID, _STARTED = ".dagster/docindex/host", ".dagster/docindex/pid", ".dagster/docindex/process_started"
_MACHINE, _BOOT, _NAMESPACE = ".dagster/docindex/machine", ".dagster/docindex/boot", ".dagster/docindex/pid_namespace"
_RUN = ".dagster/docindex/run"
# Linux gives the PID namespace in which a machine starts this number, and those of containers others.
_FIRST_NAMESPACE = "pid:[4026531836]"
# A run that gives its sign bears this tag, with its own id: Dagster copies tags to a run that repeats another.
_SIGN = ".dagster/docindex/sign"
# A run that has been at work for so long, and never gave a sign, will not; clocks of machines differ by less.
_LONGEST_BEFORE_S = 300.0
_STATEMENT_TIMEOUT_MS = 10 * 60 * 1000  # deleting a run with many events takes long
_LONGEST_S = 60 * 60
_MORE = 4  # connections besides one for each storage, for threads that write at once
# What the newest run of this process holds until the next one begins: so a run that ends is never taken for lost.
_held = ExitStack()
atexit.register(_held.close)


def process_tags(run_id: str) -> dict[str, str]:
    """Tags that distinguish this process from every other one, also from a later one with the same number.

    They name the run, too: Dagster copies tags to a run that repeats another, and there they say nothing yet.
    """
    pid = os.getpid()
    return {**_place(), _PID: str(pid), _STARTED: _started(pid) or "", _RUN: run_id}


def begin(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Note in a run that it works in this process, and let that hold its connections until it ends."""
    hold(instance)
    instance.add_run_tags(run_id, process_tags(run_id))
    _give_sign(instance, settings, run_id)


def hold(instance: dg.DagsterInstance) -> None:
    """Let an instance hold the connections that it made until it is closed, or the server ends them."""
    instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _LONGEST_S, _MORE)
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        if getattr(storage, "postgres_url", None) is not None:
            _replace_ended(storage._engine)  # type: ignore[union-attr]  # noqa: SLF001 Dagster sets no `pool_pre_ping`


def report_dead_runs(
    instance: dg.DagsterInstance, settings: Settings, tags: Mapping[str, str] | None = None
) -> list[dg.DagsterRun]:
    """Report unfinished runs whose process is gone as failed, and return them.

    Args:
        instance: where the runs are.
        settings: they say whether there are runs of other machines, which are known by their signs.
        tags: what they are tagged with; all runs by default.

    Raises:
        LockError: the signs cannot be looked for.
    """
    here, wanted = _place(), dict(tags or {})
    unfinished = dg.RunsFilter(statuses=_UNFINISHED, tags={**wanted, _HOST: here[_HOST]})
    dead = [run for run in instance.get_runs(unfinished) if _is_its_own(run) and _is_dead(run.tags, here)]
    elsewhere = _without_sign(instance, settings, wanted)
    dead += [run for run in elsewhere if run.run_id not in {one.run_id for one in dead}]
    for run in dead:
        _report(instance, run)
    return dead


def live_process(run: dg.DagsterRun) -> int | None:
    """The process that a run works in; None where that is gone, or is not known to be one of this machine."""
    here = _place()
    is_here = all(run.tags.get(name, "") == value for name, value in here.items())
    pid = run.tags.get(_PID, "")
    return int(pid) if is_here and _is_its_own(run) and pid.isdecimal() and _is_alive(run.tags) else None


def _report(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    instance.add_run_tags(run.run_id, {LOST_TAG: "true"})
    process = f"process {run.tags[_PID]}" if _PID in run.tags else "the process"
    instance.report_run_failed(run, f"{process} of this run is gone")


def _place() -> dict[str, str]:
    """Where the numbers of processes mean what they do here; a value is empty where the system does not say it."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux
        namespace = ""
    # An image of a container may bring a number of a machine, which says nothing of the one that it runs on.
    machine = _read("/etc/machine-id") if namespace == _FIRST_NAMESPACE else ""
    boot = _read("/proc/sys/kernel/random/boot_id")
    return {_HOST: socket.gethostname(), _MACHINE: machine, _BOOT: boot, _NAMESPACE: namespace}


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_its_own(run: dg.DagsterRun) -> bool:
    """Whether the tags are those of the run, not of one that it repeats."""
    return run.tags.get(_RUN, "") in {"", run.run_id}


def _is_dead(tags: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """Whether the process of these tags is gone for sure, as seen from a place; False where that is unknown."""
    there = {name: tags.get(name, "") for name in here}
    if there == here:
        return not _is_alive(tags)
    is_same_machine = there[_MACHINE] == here[_MACHINE] != ""
    return is_same_machine and there[_BOOT] not in {here[_BOOT], ""}  # of a boot before this one


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


def _give_sign(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Give the sign of a run for as long as this process is at it; nothing where there is one machine alone."""
    locks = shared.locks_of(instance, settings)
    if locks is None:
        return
    _held.close()
    _held.enter_context(locks.exclusive(_sign_of(run_id), f"run {run_id}", lambda _: None))
    instance.add_run_tags(run_id, {_SIGN: run_id})


def _without_sign(instance: dg.DagsterInstance, settings: Settings, tags: dict[str, str]) -> list[dg.DagsterRun]:
    """The runs at work with these tags that give no sign; none where there is one machine alone.

    Of those that were not heard of for a lease, all locks are free then, also those for which nobody waits.

    Raises:
        LockError: the locks cannot be reached, so nobody knows.
    """
    locks = shared.locks_of(instance, settings)
    if locks is None:
        return []
    locks.end_silent()
    at_work = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING], tags=tags)
    return [record.dagster_run for record in instance.get_run_records(at_work) if _gives_no_sign(record, locks)]


def _gives_no_sign(record: dg.RunRecord, locks: Locks) -> bool:
    run = record.dagster_run
    if run.tags.get(_SIGN) == run.run_id:
        return not locks.is_held(_sign_of(run.run_id))
    return record.start_time is not None and time.time() - record.start_time > _LONGEST_BEFORE_S


def _sign_of(run_id: str) -> str:
    return f"run {run_id}"


def _replace_ended(engine: Any) -> None:
    """Let each connection be tried before it is used: those that were held over a restart of the server are ended."""
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError

    def check(connection: Any, *_: object) -> None:
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.dbapi.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkout", check)
