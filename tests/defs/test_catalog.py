"""`index_catalog`, the page for platform teams: its contents and the warnings of its checks."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.runs.schema import RunsTable
from sqlalchemy import update

from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import catalog_asset
from docindex_dagster.defs.tags import SOURCES_NAME
from tests.defs.conftest import KEY, QUIET, Project
from tests.defs.quick_runs import quick_run

CATALOG = dg.AssetKey("index_catalog")
OTHER = "library/other"
DECLARED = '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n'


def declare_other(project: Project) -> None:
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + DECLARED)
    project.instance.add_dynamic_partitions(SOURCES_NAME, [OTHER])
    (project.root / "other").mkdir()
    (project.root / "other" / "page.md").write_text("# Other\n\nA page about marmots and their burrows.\n")


def report(project: Project) -> None:
    catalog_asset.report(project.instance, load_settings(project.root))


def shown(project: Project) -> dict[str, Any]:
    """Return the values of the newest page."""
    event = project.instance.get_latest_materialization_event(CATALOG)
    return {name: item.value for name, item in event.asset_materialization.metadata.items()}


def check(project: Project, name: str) -> dg.AssetCheckEvaluation:
    """Return the newest evaluation of a check."""
    (record,) = project.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(CATALOG, name), limit=1
    )
    return record.event.dagster_event.asset_check_evaluation_data


def needing_attention(project: Project) -> list[tuple[str, str, str]]:
    """Return the rows of `attention` on the newest page: source, state and reason."""
    event = project.instance.get_latest_materialization_event(CATALOG)
    table = event.asset_materialization.metadata["attention"]
    assert isinstance(table, dg.TableMetadataValue)
    return [(str(row.data["source"]), str(row.data["state"]), str(row.data["reason"])) for row in table.records]


def sources(evaluation: dg.AssetCheckEvaluation) -> dict[str, str]:
    """Return the check's message for each source it warns about."""
    table = evaluation.metadata["sources"]
    assert isinstance(table, dg.TableMetadataValue)
    return {str(record.data["source"]): str(record.data["reason"]) for record in table.records}


def test_a_run_shows_its_source_as_checked_and_numbers_that_plot(project):
    assert project.index().success

    page = shown(project)

    assert page["attention"] == "All sources are healthy."
    assert page["overview"].startswith("**All sources are healthy.** Searchable: 2 files in ")
    assert f"| {KEY} | [ok](/runs/" in page["overview"]
    assert (page["sources"], page["files"], page["failed"], page["missing"]) == (1, 2, 0, 0)
    assert f"| {page['chunks']} |" in page["overview"]
    assert page["contents"].startswith(f"- **{KEY}**: ")
    assert page["index_bytes"] > page["text_bytes"] > 0
    assert 0 <= page["oldest_check_hours"] < 1
    assert {"nodes", "edges", "commits", "seconds", "needing_attention"} <= set(page)
    assert check(project, "no_source_is_left_failed").passed
    assert check(project, "every_source_was_checked_lately").passed


def test_a_failed_source_is_shown_with_its_reason(project):
    declare_other(project)
    quick_run(project.instance, "the | disk is full", key=OTHER)
    assert project.index().success

    page = shown(project)

    assert page["overview"].startswith("**1 of 2 sources needs attention.**")
    assert needing_attention(project) == [(OTHER, "failed", "discovered_files: the | disk is full")]
    assert page["failed"] == page["needing_attention"] == 1
    evaluation = check(project, "no_source_is_left_failed")
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.WARN
    assert sources(evaluation) == {OTHER: "discovered_files: the | disk is full"}
    assert "docindex index SOURCE" in evaluation.metadata["what to do"].value


def test_a_source_that_was_not_checked_for_long_is_a_warning(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + "[schedule]\nmax_age_hours = 1\n")
    long_ago = dg.DagsterRun("index_source", status=dg.DagsterRunStatus.SUCCESS, tags={"dagster/partition": OTHER})
    declare_other(project)
    assert project.index(OTHER).success
    for record in project.instance.get_run_records():
        project.instance.delete_run(record.dagster_run.run_id)
    project.instance.add_run(long_ago)
    age(project, long_ago.run_id, hours=3)
    assert project.index().success

    evaluation = check(project, "every_source_was_checked_lately")

    assert not evaluation.passed
    assert set(sources(evaluation)) == {OTHER}
    assert sources(evaluation)[OTHER].startswith("last checked 20")
    assert 2.9 < shown(project)["oldest_check_hours"] < 3.1


def age(project: Project, run_id: str, hours: float) -> None:
    """Backdate a run."""
    ended = time.time() - hours * 3600
    storage = project.instance.run_storage
    assert isinstance(storage, SqlRunStorage)
    with storage.connect() as connection:
        connection.execute(update(RunsTable).where(RunsTable.c.run_id == run_id).values(end_time=ended))


def test_a_missing_folder_is_shown_and_its_index_stays(project):
    assert project.index().success
    project.notes.rename(project.root / "moved")

    report(project)

    page = shown(project)
    assert page["missing"] == 1
    ((source, state, reason),) = needing_attention(project)
    assert (source, state) == (KEY, "missing")
    assert reason.startswith(f"folder {project.notes} not found: ")
    assert page["chunks"] > 0


def test_a_report_without_a_run_is_the_same_catalogue_made_from_the_same(project):
    result = project.index()
    assert result.success
    before = project.instance.get_latest_materialization_event(CATALOG)
    file = (project.layout.catalog.read_bytes(), project.layout.catalog.stat().st_mtime_ns)
    quick_run(project.instance, "broken")

    report(project)

    after = project.instance.get_latest_materialization_event(CATALOG)
    assert after.run_id != before.run_id
    assert after.asset_materialization.tags == before.asset_materialization.tags
    assert (project.layout.catalog.read_bytes(), project.layout.catalog.stat().st_mtime_ns) == file
    assert shown(project)["failed"] == 1
    assert not check(project, "no_source_is_left_failed").passed


def test_the_page_waits_for_no_publication(project):
    assert project.index().success
    job = build_definitions(project.root).resolve_implicit_global_asset_job_def()

    def materialise() -> bool:
        result = job.execute_in_process(instance=project.instance, asset_selection=[CATALOG], run_config=QUIET)
        return result.success

    with ThreadPoolExecutor(1) as other, exclusive(project.layout.publication_lock, "a run", on_wait=print):
        assert other.submit(materialise).result(timeout=30)


def test_neither_the_clock_nor_the_outcome_of_a_run_is_in_the_data_version(project):
    def version() -> str:
        tags = project.instance.get_latest_materialization_event(CATALOG).asset_materialization.tags
        found: str = tags["dagster/data_version"]
        return found

    assert project.index().success
    before = version(), project.layout.catalog.read_bytes()
    declare_other(project)
    quick_run(project.instance, "broken", key=OTHER)
    assert project.index().success

    assert (version(), project.layout.catalog.read_bytes()) == before


def test_fifty_sources_that_need_attention_are_all_named_with_their_reasons(project):
    names = [f"gone{number:02}" for number in range(50)]
    config = project.root / "docindex.toml"
    config.write_text("".join(f'[[source]]\nkind = "library"\npath = "{name}"\n' for name in names))

    report(project)

    rows = needing_attention(project)
    assert [row[:2] for row in rows] == [(f"library/{name}", "missing") for name in names]
    assert all(reason.startswith("folder ") for _, _, reason in rows)


def test_before_anything_is_indexed_the_page_says_what_is_declared(project):
    report(project)

    assert "| library/notes | not indexed |" in shown(project)["overview"]
