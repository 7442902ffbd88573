"""The process of a job of `docindex serve`: python -m docindex_dagster.cli.job ORDER.

It does what `docindex index SOURCE` or `docindex source remove SOURCE` does, and says in the job's events what
`docindex index --json` would. It is no command for users.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from docindex_dagster.cli import OBJECTS_BETWEEN_COLLECTIONS
from docindex_dagster.core import events
from docindex_dagster.core.errors import DocindexError, first_line
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.serving.jobs.child import Order, begin
from docindex_dagster.serving.jobs.journal import BEGAN, FINISHED, Journal


def main() -> None:
    """Do the job, and say how it ended."""
    order = Order.of_json(sys.argv[1])
    begin(order.lock)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, signal.default_int_handler)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    settings = load_settings()
    journal = Journal(Layout(settings.home).job(order.id, "events"))
    journal.write(BEGAN, {"run_id": order.id, "pid": os.getpid()}, synced=True)
    try:
        with events.listening(journal.hear):
            summary = _indexed(settings, order) if order.request.kind == "index" else _removed(settings, order)
    except KeyboardInterrupt:
        end = _failed("it was stopped before its end")
    except DocindexError as error:
        end = _failed(str(error))
    except OSError as error:
        end = _failed(f"{error.filename or 'file system'}: {error.strerror or error}")
    except Exception as error:
        journal.write(FINISHED, _failed(f"{type(error).__name__}: {first_line(error)}"), synced=True)
        raise
    else:
        outcome = "succeeded" if summary["succeeded"] else "failed"
        end = {"outcome": outcome, "summary": summary, "failures": summary["failures"]}
    journal.write(FINISHED, end, synced=True)


def _failed(reason: str) -> Mapping[str, Any]:
    return {"outcome": "failed", "summary": None, "failures": [reason]}


def _indexed(settings: Settings, order: Order) -> dict[str, Any]:
    from docindex_dagster.cli import launch
    from docindex_dagster.status.summary import summary_of
    from docindex_dagster.stores import link_files, maintenance

    request, started = order.request, time.monotonic()
    outcome = launch.index(
        settings,
        request.source,
        mode=request.mode,
        only=tuple(sorted(request.paths)),
        run_id=order.id,
        launched_by="serve",
    )
    if settings.storage.url is None:
        link_files.bring_up_to_date(Layout(settings.home))
        maintenance.bring_up_to_date(Layout(settings.home))
    return summary_of(request.source, outcome, time.monotonic() - started)


def _removed(settings: Settings, order: Order) -> dict[str, Any]:
    """Take the source out of the index, Dagster and docindex.toml, as `docindex source remove` does."""
    from docindex_dagster.cli import launch
    from docindex_dagster.cli.sources import undeclare
    from docindex_dagster.runner.runs import RunOutcome
    from docindex_dagster.sources import edit
    from docindex_dagster.status.summary import end_of

    key, started = order.request.source, time.monotonic()
    edit.check_removable(settings.root, key)
    failures = launch.remove(settings, key, launched_by="serve")
    was_declared = not failures and undeclare(settings, key)
    return {
        **end_of(key, RunOutcome(order.id, not failures, failures=failures)),
        "was_declared": was_declared,
        "seconds": round(time.monotonic() - started, 2),
    }


if __name__ == "__main__":
    main()
