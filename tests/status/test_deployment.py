"""Checks of Dagster's instance config in `docindex doctor`."""

import pytest
import yaml
from dagster import DagsterInvalidConfigError
from dagster._core.instance.config import dagster_instance_config

from docindex_dagster.status.deployment import problems

QUALIFIED = "postgresql+psycopg2://user@host/db"


def test_a_url_that_sqlalchemy_takes_for_a_driver_that_is_not_there_is_named(monkeypatch):
    plain = problems({"storage": {"postgres": {"postgres_url": "postgresql://user@host/db"}}}, is_shared=False)
    by_parts = problems({"storage": {"postgres": {"postgres_db": {"hostname": "host"}}}}, is_shared=False)
    monkeypatch.setenv("DATABASE", "postgres://user@host/db")
    module = {"module": "dagster_postgres.run_storage", "config": {"postgres_url": {"env": "DATABASE"}}}
    by_variable = problems({"run_storage": module}, is_shared=False)

    assert "storage.postgres: " in plain[0]
    assert "postgresql+psycopg2://" in plain[0]
    assert "scheme: postgresql+psycopg2" in by_parts[0]
    assert by_variable[0].startswith("run_storage.config: ")
    assert problems({"storage": {"postgres": {"postgres_url": QUALIFIED}}}, is_shared=True) == []


@pytest.mark.parametrize("config", [{}, {"storage": {"sqlite": {"base_dir": "here"}}}])
def test_shared_stores_want_their_runs_in_postgres(config):
    assert "does not store its runs in Postgres" in problems(config, is_shared=True)[0]
    assert problems(config, is_shared=False) == []


def test_shared_stores_want_a_queue():
    config = {
        "storage": {"postgres": {"postgres_url": QUALIFIED}},
        "run_coordinator": {"module": "dagster", "class": "DefaultRunCoordinator"},
    }

    assert "DefaultRunCoordinator" in problems(config, is_shared=True)[0]


def test_the_password_of_a_url_is_not_printed():
    config = {"storage": {"postgres": {"postgres_url": "postgresql://user:secret@host/db"}}}

    assert "secret" not in "".join(problems(config, is_shared=False))


@pytest.mark.parametrize("value", [None, "x", 3, ["x"]])
@pytest.mark.parametrize(
    "path",
    [
        *("run_coordinator", "storage", "storage.postgres", "storage.postgres.postgres_db"),
        *("run_storage", "event_log_storage.config", "schedule_storage.config.postgres_db"),
    ],
)
@pytest.mark.parametrize("is_shared", [True, False])
def test_a_section_without_settings_is_named(path, value, is_shared):
    config = value
    for name in reversed(path.split(".")):
        config = {name: config}
    config = {"storage": {"postgres": {"postgres_url": QUALIFIED}}} | config
    assert problems(config, is_shared=is_shared) == [f"expected settings below {path}: add them, or remove it"]


@pytest.mark.parametrize("coordinator", [{}, {"class": None}, {"class": 3}])
def test_a_coordinator_without_a_class_breaks_nothing(coordinator):
    config = {"storage": {"postgres": {"postgres_url": QUALIFIED}}, "run_coordinator": coordinator}
    assert all("run_coordinator" in line for line in problems(config, is_shared=True))


@pytest.mark.parametrize(
    "text", ["run_coordinator:", "storage: x", "storage: {postgres: {postgres_db: x}}", "run_storage:"]
)
def test_dagster_refuses_such_a_file_as_well(text, tmp_path):
    (tmp_path / "dagster.yaml").write_text(text)
    with pytest.raises(DagsterInvalidConfigError):
        dagster_instance_config(str(tmp_path))
    assert problems(yaml.safe_load(text), is_shared=False)
