"""The job `remove_source`: nothing is left behind, and nothing else is touched."""

from docindex_dagster import catalog, tables
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.stores.doctor import examine
from tests.defs.conftest import KEY

OTHER = "library/other"


def test_a_removed_source_leaves_no_row_table_run_or_partition(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n')
    (project.root / "other").mkdir()
    (project.root / "other" / "page.md").write_text("# Other\n\nA page about marmots and their burrows.\n")
    assert project.index().success
    assert project.index(OTHER).success

    job = build_definitions(project.root).resolve_job_def("remove_source")
    config_of_run = {"ops": {"withdraw_source": {"config": {"source": KEY}}}}
    assert job.execute_in_process(instance=project.instance, run_config=config_of_run).success

    assert project.search("green button") == []
    assert project.search("marmots") == ["page.md"]
    assert all(
        tables.read(project.layout.table(asset, KEY)) is None for asset in ("discovered_files", "chunks", "embeddings")
    )
    assert [entry.source for entry in catalog.entries(project.layout)] == [OTHER]
    assert project.instance.get_dynamic_partitions(SOURCES_NAME) == [OTHER]
    assert {run.tags.get("dagster/partition") for run in project.instance.get_runs()} == {OTHER, None}
    assert list(examine(project.layout)) == []
