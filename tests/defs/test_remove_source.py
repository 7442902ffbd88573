"""The job `remove_source` leaves nothing behind and touches nothing else."""

from typer.testing import CliRunner

from docindex_dagster.cli.app import app
from docindex_dagster.core import tables
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.jobs import removal_config
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.status import catalog
from docindex_dagster.stores import link_files
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import read_generation
from tests.defs.conftest import KEY, Project

OTHER = "library/other"


def has_links(project: Project) -> bool:
    """Return whether the published link file exists, so that a context need not open the graph."""
    generation = read_generation(project.layout)
    return generation is not None and link_files.read(project.layout, generation) is not None


def test_a_removed_source_leaves_no_row_table_run_or_partition(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n')
    (project.root / "other").mkdir()
    (project.root / "other" / "page.md").write_text("# Other\n\nA page about marmots and their burrows.\n")
    assert project.index().success
    assert project.index(OTHER).success
    assert has_links(project)

    job = build_definitions(project.root).resolve_job_def("remove_source")
    assert job.execute_in_process(instance=project.instance, run_config=removal_config(KEY)).success

    assert project.search("green button") == []
    assert project.search("marmots") == ["page.md"]
    assert all(
        tables.read(project.layout.table(asset, KEY)) is None for asset in ("discovered_files", "chunks", "embeddings")
    )
    assert [entry.source for entry in catalog.entries(project.layout)] == [OTHER]
    assert project.instance.get_dynamic_partitions(SOURCES_NAME) == [OTHER]
    assert {run.tags.get("dagster/partition") for run in project.instance.get_runs()} == {OTHER, None}
    assert list(examine(project.layout)) == []
    assert has_links(project)


def test_a_source_that_stays_declared_is_left_out_of_runs_over_all_until_it_is_named(project, monkeypatch):
    assert project.index().success
    job = build_definitions(project.root).resolve_job_def("remove_source")
    assert job.execute_in_process(instance=project.instance, run_config=removal_config(KEY)).success
    monkeypatch.chdir(project.root)
    runner = CliRunner()

    left_out = runner.invoke(app, ["index"])
    named = runner.invoke(app, ["index", KEY])
    after = runner.invoke(app, ["index"])

    assert "adds it back" in left_out.output
    assert project.search("green button") == ["guide.md"]
    assert (named.exit_code, after.exit_code) == (0, 0)
    assert KEY in after.output
