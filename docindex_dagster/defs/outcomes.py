"""How the runs of each source ended, read from Dagster's record of runs: in bulk, since it holds tens of thousands."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

import dagster as dg

from docindex_dagster.defs import failures
from docindex_dagster.defs.resources import ENDED_AT_TAG, ONLY_TAG, PARTITION_TAG
from docindex_dagster.status.source_status import NO_RUNS, Outcome, Runs

_OUTCOMES: dict[dg.DagsterRunStatus, Outcome] = {
    dg.DagsterRunStatus.SUCCESS: "succeeded",
    dg.DagsterRunStatus.FAILURE: "failed",
    dg.DagsterRunStatus.CANCELED: "canceled",
    dg.DagsterRunStatus.QUEUED: "queued",
    dg.DagsterRunStatus.NOT_STARTED: "queued",
}
_FINISHED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
_DISCOVERY = dg.AssetKey("discovered_files")
_SMALLEST_PAGE = 50
# So many of the newest runs mostly have those of all sources; to read more of them takes longer than to ask again.
_PAGE_A_SOURCE = 1.25
_MOST_PAGES = 40
# The log of each failed run is a file of its own, which takes some milliseconds to open.
_MOST_REASONS = 100


def of_sources(
    instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None = None
) -> dict[str, Runs]:
    """The runs of those sources that were ever run.

    Args:
        instance: where the runs are recorded.
        keys: the sources.
        ending: a run that is in its last step, and counts as one that ended well.
    """
    found = _newest(instance, keys, ending)
    failed = sorted(key for key, runs in found.items() if runs.failed_id)
    reasons = {key: failures.reason(instance, found[key].failed_id or "") for key in failed[:_MOST_REASONS]}
    unread = dict.fromkeys(failed[_MOST_REASONS:], "see the run")
    return {**found, **{key: replace(found[key], failure=text) for key, text in (reasons | unread).items()}}


def _newest(instance: dg.DagsterInstance, keys: Collection[str], ending: dg.DagsterRun | None) -> dict[str, Runs]:
    """Read runs from the newest one on, until the last successful one of each source is among them.

    The first page is of all runs, which is quick and mostly enough; the others are of the sources that are left. They
    are not filtered by status: SQLite would follow the index of the statuses, which takes minutes.
    """
    found: dict[str, Runs] = {}
    is_settled: set[str] = set()
    size = max(_SMALLEST_PAGE, round(_PAGE_A_SOURCE * len(keys)))
    left, cursor = set(keys), None
    for page_number in range(_MOST_PAGES):
        wanted = dg.RunsFilter(tags={PARTITION_TAG: sorted(left)}) if page_number else dg.RunsFilter()
        page = instance.get_run_records(wanted, limit=size, cursor=cursor)
        for record in page:
            key = record.dagster_run.tags.get(PARTITION_TAG)
            if key not in left:
                continue
            is_ending = ending is not None and record.dagster_run.run_id == ending.run_id
            found[key] = _older(found.get(key, NO_RUNS), record, is_settled=key in is_settled, is_ending=is_ending)
            run = record.dagster_run
            if is_ending or (run.status in _FINISHED and not is_partial_success(run)):
                is_settled.add(key)
            if found[key].checked_at is not None:
                left.discard(key)
        if len(page) < size or not left:
            break
        cursor = page[-1].dagster_run.run_id
    return found


def _older(runs: Runs, record: dg.RunRecord, *, is_settled: bool, is_ending: bool) -> Runs:
    """What is known of a source's runs with one more run, which is older than those known before.

    Args:
        runs: what is known.
        record: the run.
        is_settled: there is a newer run of the source, so that this failure is of no more interest.
        is_ending: the run counts as one that ended well.
    """
    run = record.dagster_run
    outcome = "succeeded" if is_ending else _OUTCOMES.get(run.status, "running")
    if runs.outcome is None:
        runs = replace(runs, outcome=outcome, run_id=run.run_id)
    if outcome == "failed" and not is_settled:
        runs = replace(runs, failed_id=run.run_id)
    if outcome == "succeeded" and looked_at_all(run):
        runs = replace(runs, checked_at=ended_at(record))
    return runs


def ended_at(record: dg.RunRecord) -> float:
    """When a run ended, in seconds since 1970, also where it was recorded later."""
    noted = record.dagster_run.tags.get(ENDED_AT_TAG)
    if noted is not None:
        return datetime.fromisoformat(noted).timestamp()
    return record.end_time or record.update_timestamp.timestamp()


def is_partial_success(run: dg.DagsterRun) -> bool:
    """Whether a run looked at a part of its source and ended well, which says nothing of the rest."""
    return run.status is dg.DagsterRunStatus.SUCCESS and not looked_at_all(run)


def looked_at_all(run: dg.DagsterRun) -> bool:
    """Whether a run looked at all files of its source, not at some files, and did not begin with a later stage."""
    return ONLY_TAG not in run.tags and (not run.asset_selection or _DISCOVERY in run.asset_selection)
