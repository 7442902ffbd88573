"""Indexing as in `docindex index`, with the run recorded in Dagster immediately."""

from functools import partial

import dagster as dg

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import Settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.recorder import record
from docindex_dagster.runner.entries import Launcher, Mode
from docindex_dagster.runner.runs import RunOutcome


def index_and_record(
    settings: Settings,
    key: str,
    instance: dg.DagsterInstance,
    *,
    mode: Mode = "changes",
    only: tuple[str, ...] = (),
    launched_by: Launcher = "command line",
) -> RunOutcome:
    """Index a source, then record its run and all earlier runs."""
    outcome = dagster_runs.index(settings, key, mode=mode, only=only, launched_by=launched_by)
    record_all(settings, instance)
    return outcome


def record_all(settings: Settings, instance: dg.DagsterInstance) -> int:
    """Record the runs in the journal."""
    return record(instance, settings, partial(build_definitions, settings.root))
