"""The sensor on file changes and the nightly schedule, driven by their own ticks."""

import subprocess
import sys
from datetime import UTC, datetime
from uuid import uuid4

import dagster as dg
import pytest

from docindex_dagster import runs
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.dead_runs import process_tags
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.settings import load_settings
from tests.defs.conftest import GUIDE, KEY, Project


def tick(project: Project, cursor: str | None = None) -> dg.SensorResult:
    """One evaluation of the sensor; new partitions are added as the daemon would."""
    definitions = build_definitions(project.root)
    sensor = definitions.get_repository_def().get_sensor_def("source_files_changed")
    resources = {"project": ProjectResource(root=str(project.root))}
    with dg.build_sensor_context(instance=project.instance, cursor=cursor, resources=resources) as context:
        result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    for request in result.dynamic_partitions_requests or ():
        project.instance.add_dynamic_partitions(SOURCES_NAME, list(request.partition_keys))
    return result


def requested(result: dg.SensorResult) -> list[str | None]:
    return [request.partition_key for request in result.run_requests or ()]


def test_a_new_source_gets_a_partition_a_run_and_an_observation(project):
    result = tick(project)

    assert requested(result) == [KEY]
    assert project.instance.get_dynamic_partitions(SOURCES_NAME) == [KEY]
    (observation,) = result.asset_events
    assert observation.partition == KEY
    assert observation.tags["dagster/data_version"]


def test_nothing_is_asked_for_while_nothing_changes(project):
    first = tick(project)

    second = tick(project, first.cursor)

    assert requested(second) == []
    assert not second.asset_events
    assert second.cursor == first.cursor


def test_each_change_is_noticed_even_back_to_what_was(project):
    guide = project.notes / "guide.md"
    texts = [guide.read_text(), "# Other\n\nAnother text of another size.\n"]
    cursor = tick(project).cursor

    for text in (texts[1], texts[0], texts[1]):
        guide.write_text(text)
        result = tick(project, cursor)
        assert requested(result) == [KEY]
        assert all(request.run_key is None for request in result.run_requests)
        cursor = result.cursor


def test_a_source_that_was_removed_and_added_again_is_asked_for(project):
    first = tick(project)
    project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)

    assert requested(tick(project, first.cursor)) == [KEY]


def killed_run(
    project: Project, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED, repeated: str | None = None
) -> dg.DagsterRun:
    """A run whose process is gone, or one with the tags of such a run that it repeats."""
    job = build_definitions(project.root).resolve_job_def("index_source")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    run_id = str(uuid4())
    tags = {**process_tags(repeated or run_id), "docindex/pid": str(process.pid), "dagster/partition": KEY}
    return project.instance.create_run_for_job(job, run_id=run_id, status=status, tags=tags)


def test_a_run_whose_process_is_gone_is_reported_failed_and_asked_for_again(project):
    first = tick(project)
    run = killed_run(project)

    assert requested(tick(project, first.cursor)) == [KEY]
    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.FAILURE


def test_a_killed_run_is_asked_for_once(project):
    first = tick(project)
    killed_run(project)
    second = tick(project, first.cursor)

    assert requested(tick(project, second.cursor)) == []


def test_a_killed_run_of_a_source_that_cannot_be_read_now_is_asked_for_later(project):
    first = tick(project)
    run = killed_run(project)
    project.notes.rename(project.root / "away")
    second = tick(project, first.cursor)
    assert requested(second) == []
    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.FAILURE

    (project.root / "away").rename(project.notes)

    assert requested(tick(project, second.cursor)) == [KEY]


def test_a_killed_run_is_asked_for_though_another_source_is_indexed_by_hand_first(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n')
    (project.root / "other").mkdir()
    (project.root / "other" / "guide.md").write_text(GUIDE)
    first = tick(project)
    killed_run(project)

    assert runs.index(load_settings(project.root), "library/other", project.instance).succeeded

    assert requested(tick(project, first.cursor)) == [KEY]


def test_a_killed_run_is_asked_for_though_one_file_is_indexed_by_hand_first(project):
    first = tick(project)
    killed_run(project)

    assert runs.index(load_settings(project.root), KEY, project.instance, only=["guide.md"]).succeeded

    assert requested(tick(project, first.cursor)) == [KEY]


def test_indexing_a_source_by_hand_makes_up_for_its_killed_run(project):
    first = tick(project)
    run = killed_run(project)

    assert runs.index(load_settings(project.root), KEY, project.instance).succeeded

    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.FAILURE
    assert requested(tick(project, first.cursor)) == []


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING])
def test_a_run_that_repeats_a_killed_one_has_its_tags_and_is_left_alone(project, status):
    first = tick(project)
    killed = killed_run(project)
    cursor = tick(project, first.cursor).cursor
    repeating = killed_run(project, status, repeated=killed.run_id)

    assert requested(tick(project, cursor)) == []
    assert project.instance.get_run_by_id(repeating.run_id).status is status


def test_a_run_of_a_living_process_is_left_alone(project):
    first = tick(project)
    job = build_definitions(project.root).resolve_job_def("index_source")
    tags = {**process_tags(""), "dagster/partition": KEY}
    run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

    assert requested(tick(project, first.cursor)) == []
    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.STARTED


def test_a_later_process_with_the_same_number_does_not_keep_a_run_alive(project):
    first = tick(project)
    job = build_definitions(project.root).resolve_job_def("index_source")
    tags = {**process_tags(""), "docindex/process_started": "1", "dagster/partition": KEY}
    project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

    assert requested(tick(project, first.cursor)) == [KEY]


def test_an_edited_setting_is_noticed_like_an_edited_file(project):
    first = tick(project)
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + "[chunking]\ncode_chars = 900\n")

    assert requested(tick(project, first.cursor)) == [KEY]


def test_a_source_that_cannot_be_read_does_not_disturb_the_others(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "library"\nname = "gone"\npath = "gone"\n')

    assert requested(tick(project)) == [KEY]


def test_the_schedule_asks_for_one_run_a_source_and_night(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "git"\nname = "other"\npath = "other"\n')
    repository = build_definitions(project.root).get_repository_def()
    schedule = repository.get_schedule_def("nightly_reindex")
    at = datetime(2026, 11, 21, 3, tzinfo=UTC)

    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions(SOURCES_NAME, [KEY, "git/not-declared-any-more"])
        with dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=at,
            repository_def=repository,
            resources={"project": ProjectResource(root=str(project.root))},
        ) as context:
            requests = schedule.evaluate_tick(context).run_requests

    assert [(request.partition_key, request.run_key) for request in requests] == [
        (KEY, f"2026-11-21T03:00:00+00:00:{KEY}"),
        ("git/other", "2026-11-21T03:00:00+00:00:git/other"),
    ]


@pytest.mark.parametrize("setting", ["nightly = '30 5 * * *'\ntimezone = 'Europe/Berlin'"])
def test_the_schedule_stands_at_the_time_of_the_settings(project, setting):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + f"[schedule]\n{setting}\n")

    schedule = build_definitions(project.root).get_repository_def().get_schedule_def("nightly_reindex")

    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 5 * * *", "Europe/Berlin")
