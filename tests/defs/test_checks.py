"""Source checks: results belong to their source, whatever else is indexed afterwards."""

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter

from docindex_dagster.definitions import build_definitions
from tests.conftest import PAGE_WITHOUT_TEXT
from tests.defs.conftest import KEY, Project
from tests.defs.test_catalog import OTHER, declare_other, needing_attention

FEW_FALLBACKS = dg.AssetCheckKey(dg.AssetKey("chunks"), "few_fallbacks")


def evaluation(project: Project, key: str) -> dg.AssetCheckEvaluation:
    """Return the newest result of the check in a partition."""
    (record,) = project.instance.event_log_storage.get_asset_check_execution_history(
        FEW_FALLBACKS, limit=1, partition_filter=PartitionKeyFilter(key=key)
    )
    return record.event.dagster_event.asset_check_evaluation_data


def test_a_check_that_failed_for_a_source_is_failed_until_that_source_passes(project):
    (project.notes / "page.html").write_text(PAGE_WITHOUT_TEXT)
    declare_other(project)

    assert project.index().success
    assert project.index(OTHER).success

    assert evaluation(project, OTHER).passed
    failed = evaluation(project, KEY)
    assert (failed.passed, failed.description) == (False, "1 of 3 files is cut as text")
    table = failed.metadata["files"]
    assert isinstance(table, dg.TableMetadataValue)
    (row,) = table.records
    assert set(failed.metadata) == {"reason", "files"}  # plots of its numbers would mix sources
    assert row.data == {"path": "page.html", "reason": "html loader found no text"}

    ((source, state, reason),) = needing_attention(project)
    assert (source, state) == (KEY, "degraded")
    assert reason.startswith("1 of 3 files is cut as text: ")

    (project.notes / "page.html").unlink()
    assert project.index().success
    assert evaluation(project, KEY).passed


def test_every_check_of_an_asset_with_partitions_has_them_but_those_that_look_at_all_sources(project):
    graph = build_definitions(project.root).resolve_asset_graph()

    checks = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    others = {spec.name for spec in checks if spec.partitions_def != graph.get(spec.asset_key).partitions_def}

    assert others == {"every_folder_is_there", "every_remote_answers"}
