"""Stages have one implementation: library runs and Dagster runs do, count and check the same."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import dagster as dg
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import PluginError, VerificationError
from docindex_dagster.core.events import StageEnded, listening
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline import stages
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner import run
from docindex_dagster.runner.run import StageOutcomes, index
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader
from tests import offering
from tests.conftest import PAGE_WITHOUT_TEXT
from tests.defs.conftest import KEY, Project, new_project

LONG_AGO_S = 1_600_000_000
Reported = tuple[dict[str, dict[str, Any]], dict[str, bool]]

# Metadata that depends on the time and place of a run.
_OWN = {
    "seconds",
    "bytes",
    "table_rewritten",
    "generation",
    "table_version",
    "dagster/uri",
    "dagster/partition_row_count",
}


@pytest.fixture
def project(tmp_path) -> Iterator[Project]:
    with new_project(tmp_path) as made:
        yield made


@pytest.fixture
def token_counts(tmp_path_factory, monkeypatch) -> Iterator[str]:
    """Install the stage from docs/how-to/write-a-plug-in.md and yield the folder for PYTHONPATH."""
    yield offering.install(tmp_path_factory.mktemp("site"), "A stage", monkeypatch)
    monkeypatch.undo()
    sys.modules.pop("docindex_token_counts", None)
    offering.forget()


def elsewhere(project: Project) -> Settings:
    """Return the settings of the same project with a separate index."""
    return load_settings(project.root).model_copy(update={"home": project.root / "elsewhere"})


def run_of_library(settings: Settings) -> StageOutcomes:
    source = registry.find(settings, KEY)
    with writable_home(settings):
        return run.run_stages(SourceRun(settings, source, StaticEmbedder))


def of_dagster(result: dg.ExecuteInProcessResult) -> Reported:
    """Return the numbers of each asset except the catalog, and the results of the stages' checks."""
    numbers = {
        event.asset_key.to_user_string(): {
            name: value.value
            for name, value in event.step_materialization_data.materialization.metadata.items()
            if name not in _OWN and isinstance(value.value, (int, float, str)) and name != "warnings"
        }
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.to_user_string() != "index_catalog"
    }
    checks = {
        f"{check.asset_key.to_user_string()}:{check.check_name}": check.passed
        for check in result.get_asset_check_evaluations()
        if check.asset_key.to_user_string() != "index_catalog"
    }
    return numbers, checks


def of_library(ran: StageOutcomes) -> Reported:
    known = stages.by_name()
    numbers = {
        name: {key: value for key, value in report.numbers.items() if key not in _OWN}
        for outcome in ran.outcomes.values()
        for name, report in outcome.reports.items()
    }
    checks = {
        f"{known[stage].products[0].name}:{check}": result.passed
        for stage, outcome in ran.outcomes.items()
        for check, result in outcome.checks.items()
    }
    rules = {
        f"{product.name}:{rule}": True for stage in known.values() for product in stage.products for rule in stage.rules
    }
    return numbers, checks | rules


def test_a_run_of_the_library_and_one_of_dagster_have_the_same_counts_and_checks(project):
    (project.notes / "page.html").write_text(PAGE_WITHOUT_TEXT)

    by_dagster, by_library = of_dagster(project.index()), of_library(run_of_library(elsewhere(project)))

    assert by_dagster[0] == by_library[0]
    assert by_dagster[1] == by_library[1]
    assert by_library[0]["chunks"]["fallbacks"] == 1
    assert by_library[1]["chunks:few_fallbacks"] is False
    assert by_library[1]["lancedb_table:golden_query_finds_itself"] is True


def test_both_end_the_same_stages_and_those_of_a_publication_in_their_order(project):
    seen: dict[str, list[str]] = {"dagster": [], "library": []}

    def listen(way: str) -> AbstractContextManager[None]:
        def hear(event: object) -> None:
            if isinstance(event, StageEnded):
                seen[way].append(event.stage)

        return listening(hear)

    with listen("dagster"):
        assert project.index().success
    with listen("library"):
        run_of_library(elsewhere(project))

    assert set(seen["library"]) == set(seen["dagster"]) == {stage.name for stage in stages.stages()}
    # The other stages run in parallel, and a late graph is published separately.
    of_publication = ["discovered_files", "commits", "chunks", "embeddings", "stores"]
    assert [name for name in dict.fromkeys(seen["library"]) if name in of_publication] == of_publication


def test_the_library_looks_at_chosen_files_alone(project):
    settings = elsewhere(project)
    source = registry.find(settings, KEY)
    index(settings, source, StaticEmbedder())
    (project.notes / "guide.md").write_text("# Pumps\n\nA pump moves water.\n")
    (project.notes / "sums.py").write_text("def product() -> int:\n    return 1\n")

    index(settings, source, StaticEmbedder(), only=["guide.md"])

    texts = open_reader(Layout(settings.home)).table.to_arrow()["text"].to_pylist()
    assert any("A pump moves water" in text for text in texts)
    assert not any("def product" in text for text in texts)
    assert not is_current(settings, source)  # the other file is not up to date


def test_the_library_verifies_what_no_time_stamp_tells(project):
    settings = elsewhere(project)
    source = registry.find(settings, KEY)
    file = project.notes / "guide.md"
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    index(settings, source, StaticEmbedder())
    file.write_text(file.read_text().replace("green", "amber"))
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))

    assert not index(settings, source, StaticEmbedder()).is_new
    index(settings, source, StaticEmbedder(), verify=True)

    texts = open_reader(Layout(settings.home)).table.to_arrow()["text"].to_pylist()
    assert any("amber button" in text for text in texts)


def test_a_broken_rule_is_the_same_in_both(project, monkeypatch):
    def broken(*_: object) -> None:
        raise VerificationError("chunks", {"ids_are_unique": "two chunks have the id 1"})

    monkeypatch.setattr("docindex_dagster.chunking.build.verify_chunks", broken)

    checks = of_dagster(project.index())[1]
    with pytest.raises(VerificationError, match="two chunks have the id 1"):
        run_of_library(elsewhere(project))

    assert checks["chunks:ids_are_unique"] is False
    assert checks["chunks:files_are_covered"] is True


def test_a_stage_of_a_package_is_an_asset_with_its_checks(project, token_counts):
    graph = build_definitions(project.root).resolve_asset_graph()
    key = dg.AssetKey("token_counts")

    assert graph.get(key).parent_keys == {dg.AssetKey("chunks")}
    assert {check.name for check in graph.get_check_keys_for_assets({key})} == {"languages_are_known"}


def test_a_stage_of_a_package_runs_in_both_ways(project, token_counts):
    numbers, checks = of_dagster(project.index())
    ran = run_of_library(elsewhere(project))

    assert numbers["token_counts"] == ran.outcomes["token_counts"].reports["token_counts"].numbers
    assert numbers["token_counts"]["languages"] == 2
    assert checks["token_counts:languages_are_known"] is True
    kept = tables.read(elsewhere(project).home / "tables" / "token_counts" / "library%2Fnotes.parquet")
    assert kept["language"].to_pylist() == ["markdown", "python"]


def test_an_index_is_current_when_the_stage_of_a_package_is_done_as_well(project, token_counts, monkeypatch):
    settings = elsewhere(project)
    source = registry.find(settings, KEY)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "stages", lambda: stages.OURS)
        patch.setattr(run, "stages", lambda: stages.OURS)
        index(settings, source, StaticEmbedder())
        assert is_current(settings, source)

    assert not is_current(settings, source)
    assert "token_counts" in run_of_library(settings).outcomes
    assert is_current(settings, source)
    assert "token_counts" not in run_of_library(settings).outcomes


def test_a_removed_source_leaves_no_table_of_a_stage_of_a_package(project, token_counts):
    assert project.index().success
    table = project.layout.table("token_counts", KEY)
    assert table.exists()
    job = build_definitions(project.root).resolve_job_def("remove_source")

    config = {"ops": {"withdraw_source": {"config": {"source": KEY}}}}
    assert job.execute_in_process(instance=project.instance, run_config=config).success

    assert not table.exists()


def test_what_a_stage_warns_of_is_reported(project, token_counts):
    (project.notes / "page.html").write_text(PAGE_WITHOUT_TEXT)

    ran = run_of_library(elsewhere(project))

    assert any(text.startswith("1 of 3 files is cut as text") for text in ran.outcomes["chunks"].warnings)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (('inputs=("chunks",)', 'inputs=("pages",)'), "reads pages, which no stage stores"),
        (('name="token_counts"', 'name="chunks"'), "makes chunks, which another stage already makes"),
        (("STAGE = Stage(", "STAGE = dict("), "got dict"),
        (("LIMIT = 0.5", "import nowhere_at_all"), "No module named 'nowhere_at_all'"),
    ],
)
def test_a_stage_that_does_not_fit_is_reported(tmp_path, monkeypatch, edit, problem):
    offering.install(tmp_path, "A stage", monkeypatch, edit=edit)
    try:
        with pytest.raises(PluginError, match=problem):
            stages.stages()
    finally:
        monkeypatch.undo()
        sys.modules.pop("docindex_token_counts", None)
        offering.forget()
