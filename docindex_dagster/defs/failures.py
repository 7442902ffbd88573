"""Why a run failed, as lines that a user can act on: the same on the command line, in the catalogue and in alerts."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, ParamSpec, TypeVar, cast

import dagster as dg

from docindex_dagster.core import errors

_P = ParamSpec("_P")
_R = TypeVar("_R")
INTERRUPTED = "it was stopped before its end"
_KINDS = {
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
    dg.DagsterEventType.ENGINE_EVENT,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
}
_INTERRUPT = "DagsterExecutionInterruptedError"
_OURS = {name for name, value in vars(errors).items() if isinstance(value, type)}
_LONGEST = 500  # characters of a reason in one line


def as_dagster_failure(body: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let what an error of ours says be the first that the UI shows of a failed asset, before Dagster's frames."""
    if not isgeneratorfunction(body):
        return _raising_failure()(body)

    @wraps(body)
    def stream(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[Any]:
        with _raising_failure():
            yield from body(*args, **kwargs)

    return cast("Callable[_P, _R]", stream)


@contextmanager
def _raising_failure() -> Iterator[None]:
    """Raise Dagster's `Failure` in the place of an error of ours, which stays its cause."""
    try:
        yield
    except errors.DocindexError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """Why a recorded run failed, in one line."""
    records = instance.get_records_for_run(run_id, of_type=_KINDS).records
    events = [record.event_log_entry.dagster_event for record in records]
    text = " ".join("; ".join(explain(event for event in events if event is not None)).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def explain(events: Iterable[dg.DagsterEvent]) -> tuple[str, ...]:
    """The failed checks or else the errors among the events of a run; at least one line.

    Of a step's error, it is the message of the outermost error of ours, else the first line of the innermost one.
    """
    events = list(events)
    by_step: dict[str | None, Any] = {
        event.step_key: error
        for event in events
        if event.is_failure and (error := getattr(event.event_specific_data, "error", None))
    }
    if any(_is_interrupt(error) for error in by_step.values()):
        return (INTERRUPTED,)
    checks = tuple(dict.fromkeys(_failed_checks(events)))
    of_steps = tuple(f"{step}: {_message(error)}" for step, error in by_step.items() if step is not None)
    of_run = tuple(_message(error) for error in by_step.values())
    of_engine = tuple(_message(error) for event in events if (error := _engine_error(event)))
    # A run whose process is gone has no error: only words.
    words = tuple(event.message for event in events if event.is_failure and event.message)
    found = checks or of_steps or of_run or of_engine[-1:] or words[-1:]
    return found or ("the run failed; see its log in the Dagster UI",)


def _failed_checks(events: Iterable[dg.DagsterEvent]) -> Iterator[str]:
    for event in events:
        if event.event_type_value != dg.DagsterEventType.ASSET_CHECK_EVALUATION.value:
            continue
        check = event.asset_check_evaluation_data
        if check.blocking and not check.passed:
            why = check.metadata.get("reason")
            yield f"{check.asset_key.to_user_string()}: {check.check_name} failed: {why.value if why else 'see the UI'}"


def _engine_error(event: dg.DagsterEvent) -> Any:
    """Why Dagster could not start a run: the run's own failure only says that it is one."""
    is_engine = event.event_type_value == dg.DagsterEventType.ENGINE_EVENT.value
    return event.engine_event_data.error if is_engine else None


def _is_interrupt(error: Any) -> bool:
    while error is not None:
        if error.cls_name == _INTERRUPT:
            return True
        error = error.cause
    return False


def _message(error: Any) -> str:
    innermost = error
    while error is not None:
        name, _, message = error.message.strip().partition(": ")
        if name.rpartition(".")[2] in _OURS:
            return str(message)
        innermost, error = error, error.cause
    lines = innermost.message.strip().splitlines()
    return lines[0] if lines else "failed"
