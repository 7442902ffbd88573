"""What a log may do with the events of a step: which wait until others come, and what they say of earlier answers."""

from collections.abc import Callable
from typing import Any

import dagster as dg

_KINDS = dg.DagsterEventType
# Those that Dagster writes into the log of the run alone.
PLAIN = frozenset(
    {
        _KINDS.STEP_START,
        _KINDS.LOADED_INPUT,
        _KINDS.STEP_INPUT,
        _KINDS.STEP_OUTPUT,
        _KINDS.HANDLED_OUTPUT,
        _KINDS.STEP_SUCCESS,
    }
)
# What is planned before a run begins, and what a step says between its beginning and its end: others come soon.
_WAITING = (PLAIN - {_KINDS.STEP_START, _KINDS.STEP_SUCCESS}) | {
    _KINDS.ASSET_MATERIALIZATION_PLANNED,
    _KINDS.ASSET_CHECK_EVALUATION_PLANNED,
    _KINDS.ASSET_MATERIALIZATION,
    _KINDS.ASSET_CHECK_EVALUATION,
}


def kind_of(event: dg.EventLogEntry) -> dg.DagsterEventType | None:
    """What an event says; None for a message of a program."""
    return event.dagster_event.event_type if event.dagster_event else None


def may_wait(event: dg.EventLogEntry) -> bool:
    """Whether an event may be written with those that come after it: it belongs to a run, and others come soon."""
    return bool(event.run_id) and kind_of(event) in _WAITING


class Answers:
    """What a log answered while a run is under way, so that a run asks nothing twice.

    Dagster asks for the materialisations of an asset in each step that reads it, and twice for each of its checks; and
    whether there is a partition, sixty times. An answer about an asset holds until something is stored of it: no other
    run of the same source can be under way. Whether there is a partition is asked anew in each step.
    """

    def __init__(self) -> None:
        self.are_remembered = False
        self._answers: dict[dg.AssetKey | None, dict[str, Any]] = {}

    def note(self, event: dg.EventLogEntry) -> None:
        """Forget what an event makes untrue."""
        if event.dagster_event is None:
            return
        if event.dagster_event.is_job_event:
            self._answers.clear()
            self.are_remembered = kind_of(event) is _KINDS.RUN_START
        elif kind_of(event) is _KINDS.STEP_START:
            self.forget_partitions()
        elif event.dagster_event.asset_key is not None:
            self._answers.pop(event.dagster_event.asset_key, None)

    def forget_partitions(self) -> None:
        """Forget which partitions there are."""
        self._answers.pop(None, None)

    def of(self, asset: dg.AssetKey | None, question: object, ask: Callable[[], Any]) -> Any:
        """The answer to a question about an asset, or about partitions; asked for where it is not known."""
        if not self.are_remembered:
            return ask()
        known = self._answers.setdefault(asset, {})
        name = repr(question)
        if name not in known:
            known[name] = ask()
        return known[name]
