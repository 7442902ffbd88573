"""Tests that Dagster, Celery, Compose, hadolint and others accept the files of `deploy/`: `make test-deploy`.

Helm renders the chart that `DOCINDEX_TEST_CHART` names: a folder, a file, or `dagster/dagster`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import (
    COMPOSE,
    DEPLOY,
    LAUNCHERS,
    MANIFESTS,
    UNITS,
    VALUES,
    VALUES_OF_KUBERNETES,
    commands,
    dagster_yaml,
    documents,
    example,
    read,
)

pytestmark = pytest.mark.deploy
CHART = os.environ.get("DOCINDEX_TEST_CHART", "")
WITH_HELM = pytest.mark.skipif(not CHART or not shutil.which("helm"), reason="there is no helm, or no chart")
IN_ENVIRONMENT = Path(sys.executable).parent
COMPOSE_COMMANDS = (["docker", "compose"], [str(IN_ENVIRONMENT / "docker-compose")])
INSTALLED_PROGRAM = "/opt/docindex/.venv/bin/docindex"
MOST_EXPOSED = 4.0  # out of 10, according to `systemd-analyze security`; an unhardened unit scores 9.2
WITH_SYSTEMD = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")


@pytest.fixture
def environment(monkeypatch) -> dict[str, str]:
    """Return the variables of the example, with placeholders for secrets."""
    filled = {name: value or "a-secret-of-a-test" for name, value in example().items()}
    for name, value in filled.items():
        monkeypatch.setenv(name, value)
    return filled


def run(*command: str | Path, **arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True, **arguments)


def instance_ref(folder: Path, text: str) -> Any:
    """Return Dagster's instance reference for a `dagster.yaml`, validated against the instance schema."""
    from dagster._core.instance.ref import InstanceRef

    (folder / "dagster.yaml").write_text(text, encoding="utf-8")
    return InstanceRef.from_dir(str(folder))


def check(data: Any) -> None:
    """Validate the configuration of an instance class against the schema of that class."""
    from dagster._config import Field, process_config, resolve_to_config_type
    from dagster._serdes.config_class import class_from_code_pointer

    configurable: Any = class_from_code_pointer(data.module_name, data.class_name)
    config_type = resolve_to_config_type(configurable.config_type())
    result = process_config(Field(config_type).config_type, yaml.safe_load(data.config_yaml))

    assert result.success, result.errors


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_dagster_takes_each_variant(launcher, tmp_path, environment):
    pytest.importorskip("dagster_postgres")
    module = read(LAUNCHERS[launcher])["run_launcher"]["module"]
    pytest.importorskip(module.partition(".")[0], reason=f"there is no {module}: make test-deploy or test-scale has it")
    ref = instance_ref(tmp_path, dagster_yaml(launcher))
    for data in (ref.run_storage_data, ref.event_storage_data, ref.schedule_storage_data, ref.run_launcher_data):
        check(data)

    assert ref.custom_instance_class_data is None
    assert ref.compute_logs_data.class_name == "NoOpComputeLogManager"


def test_the_database_is_reached_by_the_driver_that_comes_with_dagster_postgres(tmp_path, environment):
    pytest.importorskip("psycopg2")
    from dagster_postgres.utils import pg_url_from_config
    from sqlalchemy import create_engine

    ref = instance_ref(tmp_path, dagster_yaml("celery"))
    config = yaml.safe_load(ref.run_storage_data.config_yaml)["postgres_db"]
    values = {
        key: environment[item["env"]] if isinstance(item, dict) and "env" in item else item
        for key, item in config.items()
    }
    url = pg_url_from_config({"postgres_db": values})

    assert create_engine(url).driver == "psycopg2"
    assert "keepalives_idle=10" in url


def test_celery_workers_run_one_run_at_a_time_and_take_no_more(environment):
    pytest.importorskip("dagster_celery")
    script = "from dagster_celery.app import app; import json; print(json.dumps({k: app.conf[k] for k in %r}))"
    names = [
        "broker_url",
        "result_backend",
        "worker_pool",
        "worker_disable_prefetch",
        "task_acks_late",
        "task_track_started",
    ]
    path = os.pathsep.join([str(DEPLOY / "celery"), *sys.path])
    done = run(sys.executable, "-c", script % names, env={**os.environ, "PYTHONPATH": path})

    assert json.loads(done.stdout) == {
        "broker_url": environment["DAGSTER_CELERY_BROKER_URL"],
        "result_backend": environment["DAGSTER_CELERY_BACKEND_URL"],
        "worker_pool": "solo",
        "worker_disable_prefetch": True,
        "task_acks_late": True,
        "task_track_started": True,
    }


@pytest.mark.parametrize(
    "command", [each for each in commands() if each[0].startswith(("celery", "dagster"))], ids=" ".join
)
def test_programs_of_the_containers_take_their_options(command):
    pytest.importorskip("dagster_celery")
    # `--help` goes last, so that the preceding arguments are parsed first.
    done = run(Path(sys.executable).parent / command[0], *command[1:], "--help")

    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def as_typed(manifest: dict[str, Any]) -> Any:
    """Return a manifest after a round trip through the Kubernetes client, which drops unknown fields."""
    from kubernetes.client import ApiClient

    version = manifest["apiVersion"].rpartition("/")[2]
    kind = f"V{version.removeprefix('v')}{manifest['kind']}"
    client = ApiClient()
    return client.sanitize_for_serialization(client._ApiClient__deserialize(manifest, kind))


def unknown(manifest: Any, typed: Any, path: str = "") -> list[str]:
    """Return the paths of manifest fields unknown to the Kubernetes API."""
    if isinstance(manifest, dict):
        here = [f"{path}.{key}" for key in manifest if manifest[key] is not None and key not in (typed or {})]
        return here + [
            each
            for key in manifest
            if key in (typed or {})
            for each in unknown(manifest[key], typed[key], f"{path}.{key}")
        ]
    if isinstance(manifest, list):
        return [each for index, item in enumerate(manifest) for each in unknown(item, typed[index], f"{path}[{index}]")]
    return []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_hold_what_kubernetes_knows(path):
    pytest.importorskip("kubernetes")

    for manifest in documents(path):
        assert unknown(manifest, as_typed(manifest)) == []


def test_an_unknown_key_of_a_manifest_is_found():
    pytest.importorskip("kubernetes")
    (manifest,) = documents(DEPLOY / "kubernetes" / "workers.yaml")
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}

    assert unknown(manifest, as_typed(manifest)) == [".spec.template.spec.containers[0].readynessProbe"]


def instance_in(manifests: list[dict[str, Any]]) -> str:
    """Return the `dagster.yaml` among the manifests."""
    (text,) = [each["data"]["dagster.yaml"] for each in manifests if "dagster.yaml" in (each.get("data") or {})]
    return str(text)


def rendered(*values: Path) -> list[dict[str, Any]]:
    """Return the manifests rendered from the chart."""
    options = [word for path in values for word in ("--values", str(path))]
    done = run("helm", "template", "docindex", CHART, "--namespace", "docindex", *options)

    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@WITH_HELM
@pytest.mark.parametrize("values", [(VALUES,), (VALUES, VALUES_OF_KUBERNETES)], ids=["celery", "kubernetes"])
def test_the_chart_takes_the_values_and_dagster_what_it_makes(values, tmp_path, environment):
    pytest.importorskip("dagster_postgres")
    manifests = rendered(*values)
    ref = instance_ref(tmp_path, instance_in(manifests))
    for data in (ref.run_storage_data, ref.event_storage_data, ref.schedule_storage_data, ref.run_launcher_data):
        check(data)

    assert [path for each in manifests for path in unknown(each, as_typed(each))] == []
    assert ref.run_launcher_data.class_name == ("CeleryRunLauncher" if values == (VALUES,) else "K8sRunLauncher")


@WITH_HELM
def test_the_instance_of_the_chart_is_that_of_the_image():
    chart, image = yaml.safe_load(instance_in(rendered(VALUES))), yaml.safe_load(dagster_yaml("celery"))
    same = ("run_launcher", "concurrency", "compute_logs", "sensors", "freshness", "telemetry", "nux", "python_logs")

    assert {key: chart[key] for key in same} == {key: image[key] for key in same}
    assert image["run_monitoring"].items() <= chart["run_monitoring"].items()
    assert image["retention"]["schedule"] == chart["retention"]["schedule"]


@pytest.mark.parametrize("command", COMPOSE_COMMANDS, ids=["plugin", "program"])
def test_compose_takes_its_file(command, tmp_path, environment):
    if not shutil.which(command[0]) or run(*command, "version").returncode:
        pytest.skip("it is not installed")
    for name in (COMPOSE.name, "docindex.toml"):
        (tmp_path / name).write_text(COMPOSE.read_text(encoding="utf-8") if name == COMPOSE.name else "")
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
    done = run(*command, "--file", tmp_path / COMPOSE.name, "config")

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["services"].keys() == read(COMPOSE)["services"].keys()


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path):
    program = IN_ENVIRONMENT / "hadolint"
    if not program.exists():
        pytest.skip("there is no hadolint: make test-deploy has it")
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python\nRUN cd /tmp && sudo pip install docindex-dagster\n")
    done = run(program, DEPLOY / "Dockerfile")

    assert (done.returncode, done.stdout) == (0, "")
    assert run(program, bad).returncode == 1


@WITH_SYSTEMD
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_knows_all_that_a_unit_says(unit, tmp_path):
    text = unit.read_text(encoding="utf-8")
    copy = tmp_path / unit.name
    copy.write_text(text.replace(INSTALLED_PROGRAM, "/bin/true"))
    done = run("systemd-analyze", "verify", "--man=no", copy)

    assert text.count(INSTALLED_PROGRAM) == 1
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr


@WITH_SYSTEMD
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_units_may_do_little_beside_their_work(unit):
    done = run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", unit)

    assert done.returncode == 0, done.stdout + done.stderr
