"""Tests that the files of `deploy/` agree, and that the files, commands, settings and queues they name exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from pydantic import BaseModel

from docindex_dagster.cli.app import app
from docindex_dagster.core.settings import Settings
from tests.deploy.files import (
    BASE,
    COMPOSE,
    DEPLOY,
    LAUNCHERS,
    MANIFESTS,
    ROOT,
    UNITS,
    VALUES,
    YAML,
    commands,
    dagster_yaml,
    documents,
    example,
    queues,
    read,
)

PACKAGED = ROOT / "docindex_dagster" / "defs" / "dagster.yaml"
PACKAGE = ROOT / "docindex_dagster"
CODE = [path.read_text(encoding="utf-8") for path in (PACKAGE / "definitions.py", *(PACKAGE / "defs").rglob("*.py"))]


def variables_in(value: Any) -> set[str]:
    """Return the names in `env: NAME` entries of a Dagster file."""
    if isinstance(value, list):
        return {name for each in value for name in variables_in(each)}
    if not isinstance(value, dict):
        return set()
    own = {value["env"]} if isinstance(value.get("env"), str) else set()
    return own | {name for each in value.values() for name in variables_in(each)}


def is_setting(variable: str) -> bool:
    """Return whether `DOCINDEX_SECTION__NAME` is a setting."""
    section, _, name = variable.removeprefix("DOCINDEX_").lower().partition("__")
    model = Settings.model_fields[section].annotation if section in Settings.model_fields else None
    if not name:
        return model is not None
    return isinstance(model, type) and issubclass(model, BaseModel) and name in model.model_fields


def limits() -> list[dict[str, Any]]:
    return list(read(BASE)["concurrency"]["runs"]["tag_concurrency_limits"])


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_each_file_is_yaml(path):
    assert all(documents(path))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_adds_to_the_base_and_replaces_nothing(launcher):
    assert read(BASE).keys().isdisjoint(read(LAUNCHERS[launcher]))
    assert yaml.safe_load(dagster_yaml(launcher)) == {**read(BASE), **read(LAUNCHERS[launcher])}


def test_a_deployment_differs_from_one_machine_only_where_it_has_to():
    packaged, base = read(PACKAGED), read(BASE)

    assert {key: base[key] for key in packaged if key not in {"concurrency", "run_monitoring"}} == {
        key: value for key, value in packaged.items() if key not in {"concurrency", "run_monitoring"}
    }
    assert all(limit in limits() for limit in packaged["concurrency"]["runs"]["tag_concurrency_limits"])


@pytest.mark.parametrize("variable", [name for name in example() if name.startswith("DOCINDEX_")])
def test_each_variable_of_docindex_is_a_setting_or_of_the_deployment(variable):
    assert is_setting(variable) or variable in {"DOCINDEX_IMAGE", "DOCINDEX_DOCKER_NETWORK"}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_dagster_takes_from_the_environment_is_in_the_example(launcher):
    assert variables_in(yaml.safe_load(dagster_yaml(launcher))) <= example().keys()


def test_containers_of_the_docker_launcher_get_all_that_a_run_needs():
    given = read(LAUNCHERS["docker"])["run_launcher"]["config"]["env_vars"]
    of_runs = [name for name in example() if name.startswith(("AWS_", "DAGSTER_PG_", "DOCINDEX_STORAGE__"))]

    assert sorted(given) == sorted(of_runs)


def test_compose_takes_from_the_environment_what_is_in_the_example():
    names = re.findall(r"\$\{(\w+)", COMPOSE.read_text(encoding="utf-8"))

    assert set(names) <= example().keys()


def test_no_secret_is_committed():
    secrets = {name: value for name, value in example().items() if re.search(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY", name)}
    literal = re.compile(r"(?i)^\s*\w*(?:password|secret_access_key|token):[ ]*['\"]?[\w/+]", re.MULTILINE)

    assert len(secrets) == 4
    assert not any(secrets.values())
    assert [path.name for path in YAML if literal.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("command", [each for each in commands() if each[0] == "docindex"], ids=" ".join)
def test_commands_of_docindex_exist_with_their_options(command):
    found: Any = typer.main.get_command(app)
    context = found.make_context("docindex", command[1:], resilient_parsing=True)
    name, subcommand, arguments = found.resolve_command(context, command[1:])

    assert name == "serve"
    assert subcommand.make_context(name, arguments).params["no_jobs"] is True


def test_there_are_as_many_workers_and_publishers_as_runs_at_once():
    services = read(COMPOSE)["services"]
    workers = services["worker"]["deploy"]["replicas"]
    replicas = {each["metadata"]["name"]: each["spec"].get("replicas") for each in documents(*MANIFESTS)}

    assert {"key": "dagster/partition", "limit": workers} in limits()
    assert read(BASE)["concurrency"]["runs"]["max_concurrent_runs"] == workers + 1
    assert replicas["docindex-worker"] == workers
    assert replicas["docindex-publisher"] == 1


def test_the_chart_has_the_limits_of_the_base():
    concurrency, base = read(VALUES)["concurrency"], read(BASE)["concurrency"]

    assert concurrency["runs"]["maxConcurrentRuns"] == base["runs"]["max_concurrent_runs"]
    assert concurrency["runs"]["tagConcurrencyLimits"] == base["runs"]["tag_concurrency_limits"]
    assert concurrency["pools"] == {
        "defaultLimit": base["pools"]["default_limit"],
        "granularity": base["pools"]["granularity"],
        "opGranularityRunBuffer": base["pools"]["op_granularity_run_buffer"],
    }
    assert read(VALUES)["postgresql"]["postgresqlScheme"] == base_postgres()["scheme"]
    assert read(VALUES)["postgresql"]["postgresqlParams"] == base_postgres()["params"]


def base_postgres() -> dict[str, Any]:
    found: dict[str, Any] = read(BASE)["storage"]["postgres"]["postgres_db"]
    return found


def test_workers_listen_to_the_queue_of_the_launcher_and_publishers_to_theirs():
    default = read(LAUNCHERS["celery"])["run_launcher"]["config"]["default_queue"]

    assert queues() == {default, "docindex-publisher"}


@pytest.mark.parametrize(
    "name",
    ["docindex/publisher", "docindex-publisher", "docindex_embedding", "dagster-celery/queue", "dagster-ray/config"],
)
def test_tags_queues_and_pools_are_those_of_the_code(name):
    assert any(f'"{name}' in text for text in CODE)


def test_the_image_has_what_it_copies():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert all(f"!{Path(name).parts[0]}" in ignored for name in copied)
    assert len(ignored) == len({*ignored})
    with_ray = {"ray"}  # excluded: it is by far the largest package, and Ray clusters have their own image
    assert set(re.search(r"for launcher in ([\w ]+);", text)[1].split()) == set(LAUNCHERS) - with_ray


def test_the_image_is_made_in_stages_is_not_root_and_says_whether_it_is_well():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    *_, last = re.split(r"^FROM ", text, flags=re.MULTILINE)

    assert len(re.findall(r"^FROM \$\{PYTHON_IMAGE\}", text, re.MULTILINE)) == text.count("\nFROM ") == 3
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert json.loads(re.search(r"^CMD (.+)$", last, re.MULTILINE)[1]) == read(COMPOSE)["services"]["search"]["command"]
    assert "pip install" not in last  # the image contains neither the wheel's compiler nor its sources


def test_each_service_that_stays_says_whether_it_is_well_or_why_not():
    services = read(COMPOSE)["services"]
    disabled = {name for name, service in services.items() if service.get("healthcheck", {}).get("disable")}

    assert services.keys() - {name for name, service in services.items() if "healthcheck" in service} == {"bucket"}
    assert disabled == {"worker", "publisher"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_units_start_a_command_that_there_is(unit):
    (line,) = re.findall(r"^ExecStart=(.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    program, *arguments = line.split()
    found: Any = typer.main.get_command(app)
    context = found.make_context("docindex", arguments, resilient_parsing=True)
    name, subcommand, options = found.resolve_command(context, arguments)

    assert program.endswith("/docindex")
    assert subcommand.make_context(name, options).params["port"] in {3000, 8090}
