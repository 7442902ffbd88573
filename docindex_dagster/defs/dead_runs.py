"""Detection of runs whose process died. Dagster does not notice and would wait, so each run records its process.

A process id is meaningful only within its PID namespace, during one boot of one machine; containers may share a host
name. From here, the state of a run elsewhere is unknown. With shared stores, runs therefore prove that they are alive:
each holds a lock between machines that is named after it. The lock belongs to a session of the run's process. It is
released soon after the process dies, or after a lease if the machine fails or the process hangs. Without shared
stores, such runs are left to operators and to Dagster's `run_monitoring`, which ends runs that take too long.

By default, Dagster opens a connection to the database server for each statement, about 400 per run. Runs keep a pool
of connections instead, like Dagster's web server.
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
# The UI hides tags with this prefix.
_HOST, _PID, _STARTED = ".dagster/docindex/host", ".dagster/docindex/pid", ".dagster/docindex/process_started"
_MACHINE, _BOOT, _NAMESPACE = ".dagster/docindex/machine", ".dagster/docindex/boot", ".dagster/docindex/pid_namespace"
_RUN = ".dagster/docindex/run"
# Linux gives the initial PID namespace of a machine this number; containers have other numbers.
_INITIAL_NAMESPACE = "pid:[4026531836]"
# Marks a run that holds its liveness lock; the value is its id, because Dagster copies tags when a run is repeated.
_LIVENESS_TAG = ".dagster/docindex/sign"
# A run that is older than this without a liveness lock will not take one; clock differences are smaller.
_LONGEST_BEFORE_S = 300.0
_STATEMENT_TIMEOUT_MS = 10 * 60 * 1000  # deleting a run with many events is slow
_CONNECTION_LIFETIME_S = 60 * 60
_MAX_OVERFLOW = 4  # connections in addition to one per storage, for threads that write concurrently
# The liveness lock of this process's newest run, held until the next run begins, so that ending runs never look dead.
_held = ExitStack()
atexit.register(_held.close)


def process_tags(run_id: str) -> dict[str, str]:
    """Return tags that distinguish this process from all others, even from a later one with the same id.

    The tags include the run id, because Dagster copies tags to a run that repeats another, where they do not apply.
    """
    pid = os.getpid()
    return {**_place(), _PID: str(pid), _STARTED: _started(pid) or "", _RUN: run_id}


def record_process(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Record this process in a run, and let it keep its database connections until it ends."""
    keep_connections(instance)
    instance.add_run_tags(run_id, process_tags(run_id))
    _hold_liveness_lock(instance, settings, run_id)


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Let an instance keep its connections until it is closed or the server ends them."""
    instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _CONNECTION_LIFETIME_S, _MAX_OVERFLOW)
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        if getattr(storage, "postgres_url", None) is not None:
            _test_before_use(storage._engine)  # type: ignore[union-attr]  # noqa: SLF001 Dagster sets no `pool_pre_ping`


def report_dead_runs(
    instance: dg.DagsterInstance, settings: Settings, tags: Mapping[str, str] | None = None
) -> list[dg.DagsterRun]:
    """Report unfinished runs whose process died as failed, and return them.

    Args:
        instance: The instance with the runs.
        settings: The settings, which tell whether other machines have runs that hold liveness locks.
        tags: The tags of the runs to check; all runs by default.

    Raises:
        LockError: The liveness locks cannot be checked.
    """
    here, wanted = _place(), dict(tags or {})
    unfinished = dg.RunsFilter(statuses=_UNFINISHED, tags={**wanted, _HOST: here[_HOST]})
    dead = [run for run in instance.get_runs(unfinished) if _has_own_tags(run) and _is_dead(run.tags, here)]
    elsewhere = _runs_without_lock(instance, settings, wanted)
    dead += [run for run in elsewhere if run.run_id not in {one.run_id for one in dead}]
    for run in dead:
        _report_dead(instance, run)
    return dead


def live_process(run: dg.DagsterRun) -> int | None:
    """Return the process of a run, or None if it died or is not known to be on this machine."""
    here = _place()
    is_here = all(run.tags.get(name, "") == value for name, value in here.items())
    pid = run.tags.get(_PID, "")
    return int(pid) if is_here and _has_own_tags(run) and pid.isdecimal() and _is_alive(run.tags) else None


def _report_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    instance.add_run_tags(run.run_id, {LOST_TAG: "true"})
    process = f"process {run.tags[_PID]}" if _PID in run.tags else "the process"
    instance.report_run_failed(run, f"{process} of this run died")


def _place() -> dict[str, str]:
    """Return what makes process ids comparable; a value is empty if the system does not provide it."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux
        namespace = ""
    # Container images may include a machine id, which does not identify the actual machine.
    machine = _read("/etc/machine-id") if namespace == _INITIAL_NAMESPACE else ""
    boot = _read("/proc/sys/kernel/random/boot_id")
    return {_HOST: socket.gethostname(), _MACHINE: machine, _BOOT: boot, _NAMESPACE: namespace}


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _has_own_tags(run: dg.DagsterRun) -> bool:
    """Return whether the process tags belong to the run itself, not to one that it repeats."""
    return run.tags.get(_RUN, "") in {"", run.run_id}


def _is_dead(tags: Mapping[str, str], here: Mapping[str, str]) -> bool:
    """Return whether the process in some tags has certainly died, as seen from here; False if unknown."""
    there = {name: tags.get(name, "") for name in here}
    if there == here:
        return not _is_alive(tags)
    is_same_machine = there[_MACHINE] == here[_MACHINE] != ""
    return is_same_machine and there[_BOOT] not in {here[_BOOT], ""}  # from an earlier boot


def _is_alive(tags: Mapping[str, str]) -> bool:
    pid = tags.get(_PID, "")
    if not pid.isdecimal():
        return True
    if not is_running(int(pid)):
        return False
    return _started(int(pid)) in {None, tags.get(_STARTED) or None}


def _started(pid: int) -> str | None:
    """Return when a process started, in clock ticks since boot, or None if unknown (outside Linux)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    # The second field is the command in parentheses, which may contain anything; the start time is the 22nd.
    return stat.rpartition(")")[2].split()[19]


def _hold_liveness_lock(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Hold the liveness lock of a run while this process executes it; do nothing on a single machine."""
    locks = shared.locks_of(instance, settings)
    if locks is None:
        return
    _held.close()
    _held.enter_context(locks.exclusive(_liveness_lock_name(run_id), f"run {run_id}", lambda _: None))
    instance.add_run_tags(run_id, {_LIVENESS_TAG: run_id})


def _runs_without_lock(instance: dg.DagsterInstance, settings: Settings, tags: dict[str, str]) -> list[dg.DagsterRun]:
    """Return the active runs with these tags that hold no liveness lock; none on a single machine.

    First free all locks of runs that did not respond for a lease, including locks without waiters.

    Raises:
        LockError: The locks cannot be reached, so liveness is unknown.
    """
    locks = shared.locks_of(instance, settings)
    if locks is None:
        return []
    locks.end_silent()
    at_work = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING], tags=tags)
    return [record.dagster_run for record in instance.get_run_records(at_work) if _lacks_lock(record, locks)]


def _lacks_lock(record: dg.RunRecord, locks: Locks) -> bool:
    run = record.dagster_run
    if run.tags.get(_LIVENESS_TAG) == run.run_id:
        return not locks.is_held(_liveness_lock_name(run.run_id))
    return record.start_time is not None and time.time() - record.start_time > _LONGEST_BEFORE_S


def _liveness_lock_name(run_id: str) -> str:
    return f"run {run_id}"


def _test_before_use(engine: Any) -> None:
    """Test each connection before it is used, because a restart of the server ends pooled connections."""
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError

    def check(connection: Any, *_: object) -> None:
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.dbapi.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkout", check)
