"""The sensor on file changes and the nightly schedule, driven by their own ticks."""

import subprocess
import sys
from datetime import UTC, datetime

import dagster as dg
import pytest

from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.dead_runs import process_tags
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import Project as ProjectResource
from tests.defs.conftest import KEY, Project


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


def killed_run(project: Project) -> dg.DagsterRun:
    """A run that started in a process which is gone."""
    job = build_definitions(project.root).resolve_job_def("index_source")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    tags = {**process_tags(), "docindex/pid": str(process.pid), "dagster/partition": KEY}
    return project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)


def test_a_run_whose_process_is_gone_is_reported_failed_and_asked_for_again(project):
    first = tick(project)
    run = killed_run(project)

    assert requested(tick(project, first.cursor)) == [KEY]
    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.FAILURE


def test_a_run_of_a_living_process_is_left_alone(project):
    first = tick(project)
    job = build_definitions(project.root).resolve_job_def("index_source")
    tags = {**process_tags(), "dagster/partition": KEY}
    run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

    assert requested(tick(project, first.cursor)) == []
    assert project.instance.get_run_by_id(run.run_id).status is dg.DagsterRunStatus.STARTED


def test_a_later_process_with_the_same_number_does_not_keep_a_run_alive(project):
    first = tick(project)
    job = build_definitions(project.root).resolve_job_def("index_source")
    tags = {**process_tags(), "docindex/process_started": "1", "dagster/partition": KEY}
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
