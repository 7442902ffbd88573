"""Outcomes of source runs, read from real run records."""

import time
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster_shared.error import SerializableErrorInfo

from docindex_dagster.defs import outcomes
from docindex_dagster.defs.tags import PARTITION_TAG
from docindex_dagster.status.source_status import Runs
from tests.defs.conftest import KEY
from tests.defs.quick_runs import quick_run, waiting_run

OTHER = "library/other"


@pytest.fixture
def instance(tmp_path) -> Iterator[dg.DagsterInstance]:
    """A file-based instance, as a project has it."""
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as opened:
        yield opened


def runs_of(instance: dg.DagsterInstance, key: str = KEY) -> Runs:
    return outcomes.runs_of_sources(instance, [key])[key]


def test_a_source_that_was_never_run_is_not_there(instance):
    quick_run(instance, key=OTHER)

    assert outcomes.runs_of_sources(instance, [KEY]) == {}


def test_a_run_that_ended_well_is_a_check(instance):
    before = time.time()
    run_id = quick_run(instance)

    found = runs_of(instance)

    assert (found.outcome, found.run_id, found.failed_id, found.failure) == ("succeeded", run_id, None, None)
    assert before <= found.checked_at <= time.time()


def test_a_failure_is_reported_with_its_reason_and_the_check_before_it_stays(instance):
    quick_run(instance)
    checked_at = runs_of(instance).checked_at
    run_id = quick_run(instance, "there is no folder\n/srv/notes")

    found = runs_of(instance)

    assert (found.outcome, found.failed_id) == ("failed", run_id)
    assert found.failure == "discovered_files: there is no folder /srv/notes"
    assert found.checked_at == checked_at


def test_a_failure_is_over_when_a_later_run_ends_well_not_when_it_begins(instance):
    failed_id = quick_run(instance, "broken")
    waiting_run(instance)
    assert (runs_of(instance).outcome, runs_of(instance).failed_id) == ("queued", failed_id)

    quick_run(instance)

    assert (runs_of(instance).outcome, runs_of(instance).failed_id) == ("succeeded", None)


def test_a_run_over_some_files_does_not_end_a_failure(instance):
    failed_id = quick_run(instance, "broken")
    quick_run(instance, only=True)

    assert runs_of(instance).failed_id == failed_id


def test_a_run_over_some_files_is_no_check_of_the_source(instance):
    quick_run(instance)
    checked_at = runs_of(instance).checked_at
    quick_run(instance, only=True)

    assert runs_of(instance).checked_at == checked_at


def test_the_run_that_is_asking_counts_as_done(instance):
    run = instance.add_run(dg.DagsterRun("index_source", status=dg.DagsterRunStatus.STARTED, tags={PARTITION_TAG: KEY}))

    assert runs_of(instance).outcome == "running"
    found = outcomes.runs_of_sources(instance, [KEY], ending=run)[KEY]
    assert found.outcome == "succeeded"
    assert found.checked_at is not None


def test_a_source_is_found_behind_any_number_of_runs_of_others(instance):
    quick_run(instance, "old trouble")
    for _ in range(130):
        instance.add_run(dg.DagsterRun("index_source", status=dg.DagsterRunStatus.SUCCESS, tags={PARTITION_TAG: OTHER}))

    found = outcomes.runs_of_sources(instance, [KEY, OTHER])

    assert found[KEY].failure == "discovered_files: old trouble"
    assert found[OTHER].outcome == "succeeded"


def test_an_error_of_python_is_reported_by_its_first_line(instance):
    run_id = quick_run(instance, ValueError("first line\nsecond line"))

    assert outcomes.reason(instance, run_id) == "discovered_files: ValueError: first line"


def test_a_run_whose_process_is_gone_is_reported_by_its_words(instance):
    run = instance.add_run(dg.DagsterRun("index_source", status=dg.DagsterRunStatus.STARTED))
    instance.report_run_failed(run, "process 7 of this run is gone")

    assert outcomes.reason(instance, run.run_id) == "process 7 of this run is gone"


def test_a_run_that_could_not_be_started_is_reported_by_what_kept_it_from_starting(instance):
    run = instance.add_run(dg.DagsterRun("index_source"))
    error = SerializableErrorInfo("OSError: no more processes\n", [], "OSError")
    instance.report_engine_event("Caught an error dequeuing a run", run, EngineEventData(error=error))
    instance.report_run_failed(run)

    assert outcomes.reason(instance, run.run_id) == "OSError: no more processes"


def test_an_interrupted_run_is_reported_as_such(instance):
    from dagster._core.errors import DagsterExecutionInterruptedError

    run_id = quick_run(instance, DagsterExecutionInterruptedError())

    assert outcomes.reason(instance, run_id) == outcomes.INTERRUPTED


def test_a_reason_without_end_is_cut(instance):
    assert len(outcomes.reason(instance, quick_run(instance, "x" * 10_000))) <= 501
