"""Journal runs become Dagster runs: indistinguishable from Dagster's own, and recorded exactly once."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.defs.tags import ENDED_AT_TAG, FULL_TAG, LAUNCHER_TAG, LOST_TAG, ONLY_TAG, PARTITION_TAG
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run, StageEntry, State
from tests.defs.conftest import KEY, Project, new_project
from tests.recording import record_all

_OF_TIME = {"seconds", "bytes", "table_rewritten", "table_version", "generation", "oldest_check_hours", "index_bytes"}
_RECORD = """
import sys
from pathlib import Path
from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import load_settings
from tests.recording import record_all
settings = load_settings(Path(sys.argv[1]))
with dagster_runs.instance(settings) as instance:
    print("open", flush=True)
    record_all(settings, instance)
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Iterator[Project]:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with new_project(tmp_path) as made, dagster_runs.instance(load_settings(tmp_path)) as instance:
        yield Project(made.root, instance)


@pytest.fixture
def say(capsys) -> Callable[[str], None]:
    """Print a line in spite of pytest's output capturing."""

    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)  # noqa: T201

    return print_line


def record(project: Project) -> int:
    return record_all(load_settings(project.root), project.instance)


def index(project: Project, **arguments: Any) -> str:
    return dagster_runs.index(load_settings(project.root), KEY, **arguments).run_id


def shown(instance: dg.DagsterInstance, run_id: str) -> tuple[Mapping[str, Any], Mapping[tuple[str, str | None], Any]]:
    """Return the UI's view of a run: metadata, data version and inputs of each asset, and check results."""
    assets: dict[str, Any] = {}
    checks: dict[tuple[str, str | None], Any] = {}
    for entry in instance.all_logs(run_id):
        event = entry.dagster_event
        if event is None:
            continue
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            made = event.step_materialization_data.materialization
            metadata = {name: value.value for name, value in made.metadata.items() if name not in _OF_TIME}
            versions = {name: value for name, value in (made.tags or {}).items() if "event_pointer" not in name}
            assets[made.asset_key.to_user_string()] = (made.partition, metadata, versions)
        elif event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            data = event.asset_check_evaluation_data
            checks[data.asset_key.to_user_string(), data.check_name] = (data.passed, data.severity, data.partition)
    return assets, checks


def test_a_recorded_run_shows_what_a_run_of_dagster_does(project, tmp_path_factory):
    with new_project(tmp_path_factory.mktemp("other")) as made, dg.instance_for_test() as instance:
        other = Project(made.root, instance)
        expected = shown(instance, other.index().run_id)

    run_id = index(project)
    assert record(project) == 1

    assets, checks = shown(project.instance, run_id)
    of_stages = {product.name for stage in stages() for product in stage.products}
    assert set(assets) == of_stages | {"index_catalog"}
    assert {name: assets[name] for name in of_stages} == {name: expected[0][name] for name in of_stages}
    assert checks == expected[1]
    run = project.instance.get_run_by_id(run_id)
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert (run.tags[PARTITION_TAG], run.tags[LAUNCHER_TAG]) == (KEY, "command line")
    assert ENDED_AT_TAG in run.tags


def test_runs_are_recorded_in_their_order_and_once(project):
    first = index(project)
    (project.notes / "new.md").write_text("# New\n\nA page about marmots.\n")
    second = index(project, mode="full", launched_by="watch")
    (project.notes / "new.md").write_text("# New\n\nA page about marmots and owls.\n")
    third = index(project, only=("new.md",))

    assert (record(project), record(project)) == (3, 0)

    runs = project.instance.get_runs()
    assert [run.run_id for run in runs] == [third, second, first]
    assert [run.tags.get(FULL_TAG) for run in runs] == [None, "true", None]
    assert runs[0].tags[ONLY_TAG] == '["new.md"]'
    assert runs[1].tags[LAUNCHER_TAG] == "watch"
    assert list(journal.runs(project.layout)) == []


def test_a_run_that_failed_is_recorded_with_its_reason(project):
    (project.notes / "guide.md").unlink()
    (project.notes / "sums.py").unlink()
    project.notes.rmdir()

    outcome = dagster_runs.index(load_settings(project.root), KEY)
    assert (outcome.succeeded, record(project)) == (False, 1)

    run = project.instance.get_run_by_id(outcome.run_id)
    assert run.status is dg.DagsterRunStatus.FAILURE
    failures = dagster_runs.RecordedRuns(load_settings(project.root)).get(outcome.run_id).failures
    assert failures == outcome.failures
    assert "notes" in failures[0]


def cancel(project: Project) -> None:
    ((path, _),) = journal.runs(project.layout)
    journal.cancel(path)


def journaled(project: Project, *done: StageEntry, state: State | None, is_cancelled: bool = False) -> str:
    run = Run("0c5b0b4e-6b5c-4a7e-8a8f-0d3f4d0a7c11", KEY, "command line", time.time())
    with journal.writing(project.layout, run) as writer:
        for entry in done:
            writer.stage(entry)
        if is_cancelled:
            cancel(project)
        if state is not None:
            writer.end(state, ("stopped before it finished",))
    return run.run_id


@pytest.mark.parametrize(
    ("state", "is_cancelled", "status"),
    [
        (None, False, dg.DagsterRunStatus.FAILURE),
        (State.FAILED, False, dg.DagsterRunStatus.FAILURE),
        (State.FAILED, True, dg.DagsterRunStatus.CANCELED),
        (None, True, dg.DagsterRunStatus.CANCELED),
    ],
)
def test_a_run_that_was_killed_or_stopped_is_recorded_as_such(project, state, is_cancelled, status):
    project.layout.prepare()
    run_id = journaled(project, state=state, is_cancelled=is_cancelled)

    assert record(project) == 1

    run = project.instance.get_run_by_id(run_id)
    assert run.status is status
    assert (run.tags.get(LOST_TAG) == "true") is (state is None and not is_cancelled)


def test_a_rule_that_was_broken_is_a_failed_check(project):
    index(project)
    (path, _) = next(journal.runs(project.layout))
    rule = next(iter(next(stage for stage in stages() if stage.name == "chunks").rules))
    done = [journal.stages(path)[name] for name in ("discovered_files", "commits")]
    journal.forget(project.layout, KEY)
    run_id = journaled(project, *done, StageEntry("chunks", broken={rule: "two are one"}), state=State.FAILED)

    record(project)

    _, checks = shown(project.instance, run_id)
    assert checks["chunks", rule][0] is False
    assert project.instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.FAILURE


def test_a_run_that_goes_on_is_left_to_the_next_time(project):
    project.layout.prepare()
    with journal.writing(project.layout, Run(str(uuid4()), KEY, "watch", time.time())):
        assert record(project) == 0
    assert record(project) == 1


def test_the_sensor_records_what_commands_did(project):
    run_id = index(project)
    repository = build_definitions(project.root).get_repository_def()
    name = "journal_recorded"
    resources = {"project": ProjectResource(root=str(project.root))}
    with dg.build_sensor_context(project.instance, repository_def=repository, resources=resources) as context:
        result = repository.get_sensor_def(name)(context)

    assert result == dg.SkipReason("recorded 1 run")
    assert project.instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.SUCCESS


def test_a_laptop_without_dagster_gets_no_instance_before_something_is_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with new_project(tmp_path) as project:
        index(project)
        assert not project.layout.dagster.exists()
        assert dagster_runs.outcomes(load_settings(tmp_path))[KEY].outcome == "succeeded"
        assert not project.layout.dagster.exists()


def kill_recorders(project: Project, times: int, number: int, say: Callable[[str], None]) -> None:
    """Index and kill the recorder at random moments; every run must end up recorded exactly once."""
    chance, expected, killed = random.Random(number), [], 0
    while killed < times:
        (project.notes / "page.md").write_text(f"# Page {killed}\n\nNumber {killed} of many.\n")
        expected.append(index(project))
        for _ in range(chance.randint(1, 4)):
            process = subprocess.Popen(
                [sys.executable, "-c", _RECORD, str(project.root)], stdout=subprocess.PIPE, cwd=Path.cwd()
            )
            process.stdout.readline()
            time.sleep(chance.random() * 1.5)
            is_killed = process.poll() is None
            process.kill()
            process.communicate()
            killed += is_killed
    record(project)
    say(f"{killed} recorders killed, {len(expected)} runs")
    runs = project.instance.get_runs()
    assert Counter(run.run_id for run in runs) == Counter(expected)
    assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}
    for run_id in expected:
        made = Counter(
            entry.dagster_event.asset_key.to_user_string()
            for entry in project.instance.all_logs(run_id)
            if entry.dagster_event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
        )
        assert set(made.values()) == {1}, (run_id, made)
        assert len(made) == sum(len(stage.products) for stage in stages()) + 1
    assert list(journal.runs(project.layout)) == []


def test_recorders_that_are_killed_lose_and_repeat_nothing(project):
    kill_recorders(project, 1, 7, lambda _: None)


@pytest.mark.parametrize("kind", [dg.DagsterEventType.RUN_START, dg.DagsterEventType.RUN_SUCCESS])
def test_a_run_that_a_recorder_began_is_recorded_again(project, monkeypatch, kind):
    run_id = index(project)
    store = type(project.instance.event_log_storage).store_event

    def killed(storage, event: dg.EventLogEntry) -> None:
        if event.dagster_event_type is kind:
            raise KeyboardInterrupt
        store(storage, event)

    with monkeypatch.context() as patch:
        patch.setattr(type(project.instance.event_log_storage), "store_event", killed)
        with pytest.raises(KeyboardInterrupt):
            record(project)

    assert record(project) == 1

    assets, checks = shown(project.instance, run_id)
    assert len(assets) == sum(len(stage.products) for stage in stages()) + 1
    assert all(passed for passed, _, _ in checks.values())
    assert project.instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.SUCCESS


@pytest.mark.kill
def test_recorders_that_are_killed_200_times_lose_and_repeat_nothing(project, say):
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 200)
    say(f"to repeat: make test-kill DOCINDEX_TEST_SEED={number} DOCINDEX_TEST_KILLS={wanted}")
    kill_recorders(project, wanted, number, say)
