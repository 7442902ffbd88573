"""The process that runs a job of `docindex serve`: python -m docindex_dagster.cli.job RUN DESCRIPTOR.

It does what `docindex index SOURCE` or `docindex source remove SOURCE` does, and writes to the journal what
`docindex index --json` would print. It is internal.
"""

import gc
import os
import signal
import sys
import time
from dataclasses import replace
from typing import Any

from docindex_dagster.cli import OBJECTS_BETWEEN_COLLECTIONS
from docindex_dagster.core import events
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run, State
from docindex_dagster.runner.journal import Writer
from docindex_dagster.runner.run import reason_of
from docindex_dagster.runner.runs import INTERRUPTED
from docindex_dagster.serving.jobs.model import Listener


def main() -> None:
    """Run the job and record its outcome."""
    descriptor = int(sys.argv[2])
    writer = journal.inherited_writer(descriptor)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    settings = load_settings()
    Layout(settings.home)  # rejects symlinks
    is_index = writer.run.kind == "index"
    writer.begin(has_stages=is_index and settings.storage.url is None)
    failures: tuple[str, ...] = ()
    try:
        with events.listening(Listener(writer)):
            summary = _indexed(settings, writer) if is_index else _removed(settings, writer.run)
        writer.add(journal.SUMMARY, summary)
        failures = tuple(summary["failures"])
    except KeyboardInterrupt:
        failures = (INTERRUPTED,)
    except Exception as error:
        failures = (reason_of(error),)
        if not isinstance(error, DocindexError | OSError):
            raise
    finally:
        writer.end(State.FAILED if failures else State.SUCCEEDED, failures)
        os.fsync(descriptor)


def _indexed(settings: Settings, writer: Writer) -> dict[str, Any]:
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.status.summary import summary_of
    from docindex_dagster.stores import link_files, maintenance

    run, started = writer.run, time.monotonic()
    outcome = dagster_runs.index(settings, run.source, mode=run.mode, only=run.only, launched_by="serve", begun=writer)
    if settings.storage.url is None:
        try:
            link_files.bring_up_to_date(Layout(settings.home))
            maintenance.bring_up_to_date(Layout(settings.home))
        except DocindexError as error:  # the run itself succeeded
            outcome = replace(outcome, warnings=(*outcome.warnings, str(error)))
    return summary_of(run.source, outcome, time.monotonic() - started)


def _removed(settings: Settings, run: Run) -> dict[str, Any]:
    """Remove the source from the index, Dagster and docindex.toml, as `docindex source remove` does."""
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.cli.sources import undeclare
    from docindex_dagster.runner.runs import RunOutcome
    from docindex_dagster.sources import config_edits
    from docindex_dagster.status.summary import outcome_summary

    started = time.monotonic()
    config_edits.check_removable(settings.root, run.source)
    failures = dagster_runs.remove(settings, run.source, launched_by="serve")
    was_declared = not failures and undeclare(settings, run.source)
    return {
        **outcome_summary(run.source, RunOutcome(run.run_id, not failures, failures=failures)),
        "was_declared": was_declared,
        "seconds": round(time.monotonic() - started, 2),
    }


if __name__ == "__main__":
    main()
