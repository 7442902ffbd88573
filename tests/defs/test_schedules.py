"""The schedules, driven by their own ticks."""

import os
from datetime import UTC, datetime

import dagster as dg
import pytest

from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.defs.tags import SOURCES_NAME, VERIFY_TAG
from docindex_dagster.sources import removed_sources
from tests.defs.conftest import KEY, Project
from tests.nights import distant_night

LONG_AGO_NS = 1_500_000_000_000_000_000


def requests_of(project: Project, at: datetime, *present: str) -> list[dg.RunRequest]:
    """Return what a nightly tick at `at` requests on an instance with some partitions."""
    repository = build_definitions(project.root).get_repository_def()
    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions(SOURCES_NAME, [KEY, *present])
        with dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=at,
            repository_def=repository,
            resources={"project": ProjectResource(root=str(project.root))},
        ) as context:
            return list(repository.get_schedule_def("nightly_reindex").evaluate_tick(context).run_requests or ())


def test_the_night_asks_for_one_run_a_source(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "git"\nname = "other"\npath = "other"\n')

    requests = requests_of(project, datetime(2026, 11, 21, 3, tzinfo=UTC), "git/not-declared-any-more")

    assert [(request.partition_key, request.run_key) for request in requests] == [
        (KEY, f"2026-11-21T03:00:00+00:00:{KEY}"),
        ("git/other", "2026-11-21T03:00:00+00:00:git/other"),
    ]


def test_what_was_taken_out_stays_out(project):
    removed_sources.record_removal(project.layout, KEY)

    assert requests_of(project, datetime(2026, 11, 21, 3, tzinfo=UTC)) == []


@pytest.mark.parametrize(
    ("setting", "day", "verifies"),
    [("sunday", 22, True), ("sunday", 23, False), ("monday", 23, True), ("never", 22, False)],
)
def test_one_night_a_week_verifies(project, setting, day, verifies):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + f'[schedule]\nverify = "{setting}"\n')

    (request,) = requests_of(project, datetime(2026, 11, day, 3, tzinfo=UTC))

    assert (request.tags.get(VERIFY_TAG) == "true") is verifies


def test_the_night_heals_what_failed(project):
    assert project.index().success
    project.notes.rename(project.root / "away")
    assert not project.index().success
    (project.root / "away").rename(project.notes)
    (project.notes / "guide.md").write_text("# Guide\n\nA page about marmots.\n")

    (request,) = requests_of(project, datetime(2026, 11, 21, 3, tzinfo=UTC))
    healed = project.index(request.partition_key, tags=dict(request.tags))

    assert healed.success
    assert all(check.passed for check in healed.get_asset_check_evaluations())
    assert project.search("marmots") == ["guide.md"]


def test_the_verifying_night_finds_what_no_time_stamp_tells(project):
    page = project.notes / "page.md"
    for text in ("# Page\n\nAbout marmots.\n", "# Page\n\nAbout beavers.\n"):
        page.write_text(text)
        os.utime(page, ns=(LONG_AGO_NS, LONG_AGO_NS))
        assert project.index().success
    assert project.search("beavers") == []

    (request,) = requests_of(project, datetime(2026, 11, 22, 3, tzinfo=UTC))
    assert project.index(request.partition_key, tags=dict(request.tags)).success

    assert project.search("beavers") == ["page.md"]


@pytest.mark.parametrize("setting", ["nightly = '30 5 * * *'\ntimezone = 'Europe/Berlin'"])
def test_the_schedule_stands_at_the_time_of_the_settings(project, setting):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + f"[schedule]\n{setting}\n")

    schedule = build_definitions(project.root).get_repository_def().get_schedule_def("nightly_reindex")

    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 5 * * *", "Europe/Berlin")


def test_no_night_comes_while_the_daemon_of_a_test_runs(project, monkeypatch):
    for name, value in distant_night(datetime(2026, 11, 22, 3, 0, tzinfo=UTC)).items():
        monkeypatch.setenv(name, value)

    schedules = build_definitions(project.root).get_repository_def().schedule_defs

    assert {(schedule.cron_schedule, schedule.execution_timezone) for schedule in schedules} == {("0 15 * * *", "UTC")}
