"""How the runs in the journal ended, for all who show the state of a source."""

from collections.abc import Mapping
from dataclasses import replace

from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Entry, State
from docindex_dagster.status.source_status import NO_RUNS, Outcome, Runs

_OUTCOMES: Mapping[State, Outcome] = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.LOST: "failed",
    State.CANCELED: "canceled",
    State.RUNNING: "running",
}


def with_journal(layout: Layout, recorded: Mapping[str, Runs] | None) -> dict[str, Runs] | None:
    """The runs of each source by Dagster's record and the journal, which is newer; None where there is neither."""
    found = dict(recorded or {})
    for _, entry in journal.runs(layout):
        key = entry.begin.source
        found[key] = _with(found.get(key, NO_RUNS), entry)
    return found if found or recorded is not None else None


def _with(runs: Runs, entry: Entry) -> Runs:
    """What is known of the runs of a source with one that began after them."""
    runs = replace(runs, outcome=_OUTCOMES[entry.state], run_id=entry.begin.run_id)
    if entry.end is None or entry.state is State.CANCELED:
        return runs
    if entry.state is not State.SUCCEEDED:
        return replace(runs, failed_id=entry.begin.run_id, failure="; ".join(entry.end.failures))
    if not entry.looked_at_all:
        return runs
    return replace(runs, checked_at=entry.end.ended_at, failed_id=None, failure=None)
