"""Runs planned by another user, such as the author of a checkout that contains Dagster's databases, do not start."""

from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from docindex_dagster.cli.serve import _pinned
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.jobs import REMOVE_SOURCE, removal_config
from docindex_dagster.defs.tags import SOURCES_NAME
from tests.defs.conftest import KEY, Project


def failure(project: Project, job: str, config: dict[str, Any]) -> str:
    """Return the reason why a run failed."""
    project.instance.add_dynamic_partitions(SOURCES_NAME, [KEY])
    partition = None if job == REMOVE_SOURCE else KEY
    with pytest.raises(dg.DagsterError) as error:
        build_definitions(project.root).resolve_job_def(job).execute_in_process(
            instance=project.instance, partition_key=partition, run_config=config
        )
    return str(error.value.__cause__)


@pytest.mark.parametrize("resource", ["run", "embedding_model"])
def test_a_run_cannot_lead_the_resources_of_its_project_elsewhere(project, tmp_path, resource):
    config = {"resources": {resource: {"config": {"root": str(tmp_path / "other")}}}}

    assert "cannot configure docindex resources" in failure(project, "index_source", config)
    assert not (tmp_path / "other").exists()
    assert not project.layout.current.exists()


def test_a_run_cannot_be_of_another_project(project, tmp_path):
    config = {"resources": {"run": {"config": {"root": str(tmp_path / "other")}}}}

    assert "cannot configure docindex resources" in failure(project, "index_source", config)
    assert not (tmp_path / "other").exists()


def test_a_removal_cannot_be_of_another_project(project, tmp_path):
    config = removal_config(KEY) | {"resources": {"project": {"config": {"root": str(tmp_path / "other")}}}}

    assert "cannot configure docindex resources" in failure(project, REMOVE_SOURCE, config)


@pytest.mark.parametrize("is_pinned", [False, True])
def test_nothing_runs_that_databases_in_git_ask_for(project, tmp_path, git, is_pinned):
    (home := tmp_path / "clone" / "dagster").mkdir(parents=True)
    git(home.parent, "init", "-q")
    place = _pinned(load_settings(project.root), home) if is_pinned else str(home)
    with dg.DagsterInstance.local_temp(place) as instance:
        instance.add_dynamic_partitions(SOURCES_NAME, [KEY])
        git(home.parent, "add", "--force", ".")

        assert "git tracks files in" in failure(replace(project, instance=instance), "index_source", {})
