"""`alert_on_failure`: which failures are posted, how often, and the behavior when the webhook is unreachable."""

import logging
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
import pytest
from dagster._utils.error import serializable_error_info_from_exc_info

from docindex_dagster.core.errors import AlertError, DamagedStoreError
from docindex_dagster.core.retry import Retry
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import alerts
from docindex_dagster.defs.alerts import ALERT_TAG, alert_on_failure
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.defs.tags import PARTITION_TAG, SOURCE_TAG
from tests.defs.conftest import KEY, Project
from tests.defs.quick_runs import quick_run
from tests.recording import index_and_record
from tests.webhooks import SECRET, Webhook, listening

OTHER = "library/other"


@dataclass(slots=True)
class Sensor:
    """The sensor of a project, with the cursor that the daemon would keep."""

    project: Project
    cursor: str | None = None

    def tick(self) -> str:
        """Evaluate the sensor once and return its report. A failed tick leaves the cursor unchanged."""
        resources = {"project": ProjectResource(root=str(self.project.root))}
        repository = build_definitions(self.project.root).get_repository_def()
        with dg.build_sensor_context(
            self.project.instance, self.cursor, repository_def=repository, resources=resources
        ) as context:
            result = alert_on_failure(context)
        assert isinstance(result, dg.SensorResult)
        assert not result.run_requests
        self.cursor = result.cursor
        assert result.skip_reason is not None
        return str(result.skip_reason.skip_message)


@pytest.fixture
def sensor(project) -> Sensor:
    """The sensor after its first tick, from which alerts start."""
    sensor = Sensor(project)
    sensor.tick()
    return sensor


@pytest.fixture
def hook(monkeypatch, request) -> Iterator[Webhook]:
    """A webhook from the settings that answers 200 or as the test specifies; retries do not wait."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(alerts, "_RETRY", Retry(2, first_wait_s=0))
    with listening(getattr(request, "param", ())) as served:
        monkeypatch.setenv("DOCINDEX_ALERTS__WEBHOOK", served.url.get_secret_value())
        yield served


def stages(project: Project) -> list[str | None]:
    """Return the alert stages of the failed runs, oldest first."""
    runs = project.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
    return [run.tags.get(ALERT_TAG) for run in reversed(runs)]


def pages(project: Project) -> int:
    """Return the number of catalog materializations."""
    records = project.instance.fetch_materializations(dg.AssetKey("index_catalog"), limit=100).records
    return len(records)


def test_a_failure_is_posted_with_all_that_one_needs_to_know(project, sensor, hook):
    run_id = quick_run(project.instance, "there is no folder <here>")

    assert sensor.tick() == "failed runs: 1, messages: 1"

    (message,) = hook.posted
    ended = message.pop("time")
    assert ended.endswith("+00:00")
    assert message == {
        "text": "docindex: library/notes failed: discovered_files: there is no folder &lt;here&gt;",
        "status": "failed",
        "source": KEY,
        "job": "index_source",
        "run_id": run_id,
        "reason": "discovered_files: there is no folder <here>",
        "failures": 1,
    }


def test_what_failed_before_the_sensor_was_there_is_no_news(project, hook):
    quick_run(project.instance, "long ago")
    sensor = Sensor(project)

    assert sensor.tick() == "alerts start with the next failure"
    assert sensor.tick() == "no failed runs"
    assert hook.posted == []


def test_each_failure_is_reported_once(project, sensor, hook):
    quick_run(project.instance, "broken")

    assert sensor.tick() != "no failed runs"
    assert sensor.tick() == "no failed runs"
    assert len(hook.posted) == 1


def test_a_cursor_that_is_lost_repeats_nothing(project, sensor, hook):
    quick_run(project.instance, "broken")
    sensor.tick()

    sensor.cursor = "0"
    sensor.tick()

    assert len(hook.posted) == 1
    assert pages(project) == 1


def test_a_source_that_keeps_failing_is_reported_less_and_less_often(project, sensor, hook):
    for _ in range(9):
        quick_run(project.instance, "still broken")
        sensor.tick()

    assert [message["failures"] for message in hook.posted] == [1, 2, 4, 8]
    assert hook.texts()[1].startswith("docindex: library/notes failed (2 times in a row): ")
    assert stages(project) == ["told", "told", "counted", "told", *["counted"] * 3, "told", "counted"]


def repeated(instance: dg.DagsterInstance, run_id: str, failure: str | None, *, hidden: bool = True) -> str:
    """Re-execute a run as the UI does, with the original tags; some UI paths omit the hidden tags."""
    tags = instance.get_run_by_id(run_id).tags
    return quick_run(
        instance, failure, tags={key: value for key, value in tags.items() if hidden or not key.startswith(".")}
    )


@pytest.mark.parametrize("hidden", [True, False])
def test_a_re_executed_run_that_fails_is_noted_although_it_has_the_tags_of_the_first_one(project, sensor, hook, hidden):
    first = quick_run(project.instance, "broken")
    sensor.tick()
    second = repeated(project.instance, first, "still broken", hidden=hidden)

    assert sensor.tick() == "failed runs: 1, messages: 1"
    assert [message["run_id"] for message in hook.posted] == [first, second]
    assert sensor.tick() == "no failed runs"


def test_a_copied_tag_does_not_count_as_reported_today(project, sensor, hook, monkeypatch):
    first = quick_run(project.instance, "broken")
    sensor.tick()
    quick_run(project.instance, "broken")
    sensor.tick()
    today, tomorrow = time.time(), time.time() + 25 * 3600
    third = repeated(project.instance, first, "broken")
    ended = {run.run_id: tomorrow if run.run_id == third else today for run in project.instance.get_runs()}
    monkeypatch.setattr("docindex_dagster.defs.alerts._ended_at", lambda record: ended[record.dagster_run.run_id])
    monkeypatch.setattr("docindex_dagster.defs.alerts.time.time", lambda: tomorrow)

    sensor.tick()

    assert [message["failures"] for message in hook.posted] == [1, 2, 3]


def test_a_re_executed_run_that_is_not_over_is_no_alert(project, sensor, hook):
    hook.statuses = [404]
    first = quick_run(project.instance, "broken", key=OTHER)
    with pytest.raises(AlertError):
        sensor.tick()
    tags = project.instance.get_run_by_id(first).tags
    assert tags[ALERT_TAG] == "due"
    project.instance.add_run(dg.DagsterRun("index_source", tags={**tags, PARTITION_TAG: KEY}))

    sensor.tick()

    assert [message["source"] for message in hook.posted] == [OTHER, OTHER]


def test_failures_of_more_than_one_page_are_all_reported(project, sensor, hook, monkeypatch):
    monkeypatch.setattr("docindex_dagster.defs.alerts._PAGE", 2)
    keys = [f"library/{name}" for name in "abcde"]
    for key in keys:
        quick_run(project.instance, "broken", key=key)

    assert sensor.tick() == "failed runs: 5, messages: 5"

    assert sorted(message["source"] for message in hook.posted) == keys
    assert sensor.tick() == "no failed runs"


def test_failures_between_two_ticks_are_one_alert(project, sensor, hook):
    for _ in range(5):
        quick_run(project.instance, "broken")

    sensor.tick()

    assert [message["failures"] for message in hook.posted] == [5]
    assert pages(project) == 1


def test_a_failure_that_was_not_reported_for_a_day_is_reported_again(project, sensor, hook, monkeypatch):
    for _ in range(2):
        quick_run(project.instance, "broken")
        sensor.tick()
    tomorrow = time.time() + 25 * 3600
    monkeypatch.setattr("docindex_dagster.defs.alerts.time.time", lambda: tomorrow)

    quick_run(project.instance, "broken")  # the third in a row
    sensor.tick()

    assert [message["failures"] for message in hook.posted] == [1, 2, 3]


def test_a_source_that_works_again_is_reported_once(project, sensor, hook):
    for _ in range(2):
        quick_run(project.instance, "broken")
        sensor.tick()
    run_id = quick_run(project.instance)

    for _ in range(3):
        sensor.tick()

    assert [message["status"] for message in hook.posted] == ["failed", "failed", "recovered"]
    assert hook.posted[-1]["text"] == "docindex: library/notes works again"
    assert hook.posted[-1]["run_id"] == run_id
    quick_run(project.instance, "broken anew")
    sensor.tick()
    assert hook.posted[-1]["failures"] == 1


def test_a_failure_that_is_over_before_anybody_was_notified_is_no_alert(project, sensor, hook):
    quick_run(project.instance, "for a moment")
    quick_run(project.instance)

    sensor.tick()

    assert hook.posted == []
    assert stages(project) == ["over"]


def test_sources_removals_and_jobs_are_distinguished(project, sensor, hook):
    quick_run(project.instance, "a")
    quick_run(project.instance, "b", key=OTHER)
    quick_run(project.instance, "c", key=None, job="remove_source", tags={SOURCE_TAG: OTHER})
    quick_run(project.instance, "d", key=None, job="__ASSET_JOB")
    quick_run(project.instance)  # the first to succeed again

    sensor.tick()

    assert sorted((message["text"].split(" failed")[0], message["source"]) for message in hook.posted) == [
        ("docindex: library/other", OTHER),
        ("docindex: remove_source of library/other", OTHER),
        ("docindex: the job __ASSET_JOB", None),
    ]


def test_runs_of_other_code_locations_are_not_ours(project, sensor, hook):
    quick_run(project.instance, "broken", key=None, job="somebody_elses")

    assert sensor.tick() == "no failed runs"
    assert hook.posted == []


def test_a_run_that_a_user_stopped_is_counted_and_not_reported(project, sensor, hook):
    from dagster._core.errors import DagsterExecutionInterruptedError

    quick_run(project.instance, DagsterExecutionInterruptedError())

    sensor.tick()

    assert hook.posted == []
    assert stages(project) == ["counted"]


def test_the_page_and_its_check_show_a_failure_at_once_and_once(project, sensor):
    run_id = quick_run(project.instance, "broken")

    for _ in range(3):
        sensor.tick()

    assert pages(project) == 1
    event = project.instance.get_latest_materialization_event(dg.AssetKey("index_catalog"))
    assert f"/runs/{run_id}" in event.asset_materialization.metadata["overview"].value
    assert event.asset_materialization.metadata["failed"].value == 1


def test_the_log_says_what_failed_why_where_and_what_to_do(project, sensor, capfd):
    run_id = quick_run(project.instance, "broken")
    capfd.readouterr()

    sensor.tick()

    logged = capfd.readouterr().err
    assert f"library/notes failed: discovered_files: broken (run {run_id}); run `docindex index" in logged


def test_without_a_webhook_nothing_is_posted_and_everything_else_is_as_ever(project, sensor, hook, monkeypatch):
    monkeypatch.delenv("DOCINDEX_ALERTS__WEBHOOK")
    quick_run(project.instance, "broken")

    assert sensor.tick() == "failed runs: 1, messages: 1"
    assert stages(project) == ["told"]
    assert hook.posted == []


def test_damage_of_the_index_does_not_keep_an_alert_back(project, sensor, hook):
    project.layout.current.parent.mkdir(parents=True)
    project.layout.current.write_text("{")
    quick_run(project.instance, DamagedStoreError("CURRENT is damaged"))

    sensor.tick()

    assert hook.posted[0]["reason"] == "discovered_files: CURRENT is damaged"


def test_a_webhook_that_recovers_in_time_gets_the_message(project, sensor, hook):
    hook.statuses = [500]
    quick_run(project.instance, "broken")

    sensor.tick()

    assert len(hook.posted) == 2
    assert stages(project) == ["told"]


def test_a_webhook_that_fails_fails_the_tick_and_loses_and_repeats_nothing(project, sensor, hook):
    quick_run(project.instance, "first", key="library/a")
    quick_run(project.instance, "second", key="library/b")
    hook.statuses = [200, 404]  # the newest failure is posted first

    with pytest.raises(AlertError, match="answered with status 404"):
        sensor.tick()
    assert pages(project) == 1
    quick_run(project.instance, "third", key="library/c")
    sensor.tick()

    reasons = [message["reason"].removeprefix("discovered_files: ") for message in hook.posted]
    assert reasons == ["second", "first", "third", "first"]
    assert sensor.tick() == "no failed runs"
    assert pages(project) == 2
    assert stages(project) == ["told"] * 3


def test_a_message_that_is_always_refused_holds_back_no_other(project, sensor, hook):
    quick_run(project.instance, "first", key="library/a")
    quick_run(project.instance, "refused", key="library/b")
    hook.statuses = [404]

    with pytest.raises(AlertError, match="answered with status 404"):
        sensor.tick()
    assert stages(project) == ["told", "due"]
    quick_run(project.instance, "third", key="library/c")
    hook.statuses = [200, 404]
    with pytest.raises(AlertError, match="answered with status 404"):
        sensor.tick()

    reasons = [message["reason"].removeprefix("discovered_files: ") for message in hook.posted]
    assert reasons == ["refused", "first", "third", "refused"]
    assert stages(project) == ["told", "due", "told"]


def test_a_webhook_that_is_slow_to_answer_gets_a_message_once(project, sensor, hook, monkeypatch, capfd):
    monkeypatch.setattr(alerts, "_TIMEOUT_S", (3, 0.5))
    hook.is_silent = True
    quick_run(project.instance, "broken")

    assert sensor.tick() == "failed runs: 1, messages: 1"
    assert sensor.tick() == "no failed runs"

    assert len(hook.posted) == 1
    assert stages(project) == ["told"]
    assert "the webhook did not answer in time" in capfd.readouterr().err


def test_what_does_not_fit_into_a_tick_is_reported_in_the_next_one(project, sensor, hook, monkeypatch):
    for key in ("library/a", "library/b"):
        quick_run(project.instance, "broken", key=key)
    monkeypatch.setattr("docindex_dagster.defs.alerts._BUDGET_S", 0)

    sensor.tick()
    assert len(hook.posted) == 1
    sensor.tick()
    assert len(hook.posted) == 2


@pytest.mark.parametrize("hook", [[], [404], [500] * 3, [302]], indirect=True)
def test_the_url_of_the_webhook_is_in_no_log_error_tag_or_event(project, sensor, hook, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    is_taken = not hook.statuses
    run_id = quick_run(project.instance, "broken")
    reported = ""
    try:
        sensor.tick()
    except AlertError as error:
        reported = serializable_error_info_from_exc_info(sys.exc_info()).to_string() + "".join(
            traceback.format_exception(error)
        )

    assert (reported == "") == is_taken
    events = "".join(str(event) for event in project.instance.all_logs(run_id))
    tags = str(project.instance.get_run_by_id(run_id).tags)
    assert SECRET not in reported + caplog.text + "".join(capfd.readouterr()) + events + tags


def test_the_sensor_runs_by_default_and_says_what_it_does():
    assert alert_on_failure.name == "alert_on_failure"
    assert alert_on_failure.default_status is dg.DefaultSensorStatus.RUNNING
    assert "DOCINDEX_ALERTS__WEBHOOK" in (alert_on_failure.description or "")
    assert alert_on_failure.minimum_interval_seconds == 30


def test_on_an_instance_on_files_it_finds_the_failures_of_the_command_line(tmp_path, monkeypatch, hook):
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.core.settings import load_settings

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\nname = "notes"\npath = "notes"\n')
    settings = load_settings(tmp_path)
    with dagster_runs.instance(settings) as instance:
        sensor = Sensor(Project(tmp_path, instance))
        sensor.tick()

        outcome = index_and_record(settings, KEY, instance)
        sensor.tick()

        assert not outcome.succeeded
        assert [message["run_id"] for message in hook.posted] == [outcome.run_id]
        assert hook.posted[0]["reason"] == "; ".join(outcome.failures)
        assert instance.get_run_by_id(outcome.run_id).tags[PARTITION_TAG] == KEY
