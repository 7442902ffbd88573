"""Signs of life of runs, where machines share the stores: each holds a lock between machines that is named after it.

A machine cannot look at the processes of another one. The lock belongs to a session of the run's process, so it is free
soon after that is gone, and after a lease where the machine was lost, or the process paused, without a word.
"""

import atexit
import time
from contextlib import ExitStack

import dagster as dg

from docindex_dagster.core.locks import Locks
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import shared

# A run that gives its sign bears this tag, with its own id: Dagster copies tags to a run that repeats another.
_TAG = ".dagster/docindex/sign"
# A run that has been at work for so long, and never gave a sign, will not; clocks of machines differ by less.
_LONGEST_BEFORE_S = 300.0

# What the newest run of this process holds until the next one begins: so a run that ends is never taken for lost.
_held = ExitStack()
atexit.register(_held.close)


def give(instance: dg.DagsterInstance, settings: Settings, run_id: str) -> None:
    """Give the sign of a run for as long as this process is at it; nothing where there is one machine alone."""
    locks = shared.locks_of(instance, settings)
    if locks is None:
        return
    _held.close()
    _held.enter_context(locks.exclusive(_name(run_id), f"run {run_id}", lambda _: None))
    instance.add_run_tags(run_id, {_TAG: run_id})


def without(instance: dg.DagsterInstance, settings: Settings, tags: dict[str, str]) -> list[dg.DagsterRun]:
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
    return [record.dagster_run for record in instance.get_run_records(at_work) if _is_without(record, locks)]


def _is_without(record: dg.RunRecord, locks: Locks) -> bool:
    run = record.dagster_run
    if run.tags.get(_TAG) == run.run_id:
        return not locks.is_held(_name(run.run_id))
    return record.start_time is not None and time.time() - record.start_time > _LONGEST_BEFORE_S


def _name(run_id: str) -> str:
    return f"run {run_id}"
