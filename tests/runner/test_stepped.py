"""Runs whose stages are requested one after another, like Dagster steps."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import DocindexError, LostTableError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.pipeline import embedding, stages
from docindex_dagster.pipeline.chunking import REFERENCES_OF_FILES
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Inputs, Outcome, Stage
from docindex_dagster.runner import run as running
from docindex_dagster.runner.run import NOT_RUN, SteppedRun
from docindex_dagster.sources import registry
from tests.defs.conftest import KEY, Project, new_project
from tests.models import TinyEmbedder

ALL = [stage.name for stage in stages.OURS]


@pytest.fixture
def project(tmp_path) -> Iterator[Project]:
    with new_project(tmp_path) as made:
        yield made


@contextmanager
def stepped(project: Project, selected: list[str] = ALL, waiting: tuple[str, ...] = ()) -> Iterator[SteppedRun]:
    settings = load_settings(project.root)
    source = SourceRun(settings, registry.find(settings, KEY), TinyEmbedder)
    with writable_home(settings), closing(SteppedRun(source, selected, waiting)) as made:
        yield made


@pytest.fixture
def begun(monkeypatch) -> list[str]:
    """Record the names of stages as they begin."""
    names: list[str] = []

    def noting(stage: Stage) -> Stage:
        def run(source: SourceRun, inputs: Inputs) -> Outcome:
            names.append(stage.name)
            return stage.run(source, inputs)

        return replace(stage, run=run)

    ours = tuple(map(noting, stages.OURS))
    for module in (stages, running):
        monkeypatch.setattr(module, "stages", lambda: ours)
    return names


def test_each_stage_is_asked_for_in_turn(project, begun):
    with stepped(project) as run:
        assert [run.entry(name).stage for name in ALL] == ALL

    assert set(begun) == set(ALL)
    assert project.search("green button") == ["guide.md"]


def test_no_stage_runs_before_the_first_is_asked_for(project, begun):
    with stepped(project):
        assert begun == []


def test_a_stage_that_waits_for_a_slot_runs_when_it_is_asked_for(project, begun):
    with stepped(project, waiting=("embeddings",)) as run:
        run.entry("references")
        assert "embeddings" not in begun
        run.entry("embeddings")
        assert "embeddings" in begun


def test_only_selected_stages_run_and_the_others_are_read_from_tables(project, begun):
    with stepped(project) as run:
        run.entry("stores")
    begun.clear()

    with stepped(project, ["chunks", "references"]) as run:
        assert run.entry("chunks").products["chunks"].numbers["reused"] == 2
        run.entry("references")

    assert begun == ["chunks", "references"]


def test_a_selected_stage_whose_inputs_were_never_made_says_so(project):
    with pytest.raises(LostTableError, match="is missing or damaged"), stepped(project, ["chunks"]) as run:
        run.entry("chunks")


def test_a_stage_fails_with_its_own_error_and_those_after_it_do_not_run(project, monkeypatch):
    def fail(_run: SourceRun, _inputs: Inputs) -> Outcome:
        raise ValueError("no such model")

    ours = tuple(replace(stage, run=fail) if stage is embedding.EMBEDDINGS else stage for stage in stages.OURS)
    for module in (stages, running):
        monkeypatch.setattr(module, "stages", lambda: ours)

    with stepped(project) as run:
        run.entry("chunks")
        with pytest.raises(ValueError, match="no such model"):
            run.entry("embeddings")
        with pytest.raises(DocindexError, match=NOT_RUN):
            run.entry("stores")


def test_a_table_that_cannot_be_written_fails_its_stage(project, monkeypatch):
    def fail(*_: object) -> bool:
        raise OSError("the disk has gone")

    monkeypatch.setattr(Stage, "keep", fail)

    with stepped(project) as run, pytest.raises(DocindexError, match="the disk has gone"):
        run.entry("discovered_files")


def test_closing_it_waits_for_the_stage_that_runs_beside(project, monkeypatch):
    ended: list[str] = []

    def slow(source: SourceRun, inputs: Inputs) -> Outcome:
        time.sleep(0.3)
        ended.append("references")
        return REFERENCES_OF_FILES.run(source, inputs)

    ours = tuple(replace(stage, run=slow) if stage is REFERENCES_OF_FILES else stage for stage in stages.OURS)
    for module in (stages, running):
        monkeypatch.setattr(module, "stages", lambda: ours)

    with stepped(project) as run:
        run.entry("chunks")

    assert ended == ["references"]
