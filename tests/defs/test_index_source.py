"""The job `index_source`, on real files, stores and a Dagster instance."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import stage_assets
from docindex_dagster.defs.resources import EmbeddingModel
from docindex_dagster.defs.tags import FULL_TAG, SOURCES_NAME
from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.status import catalog
from docindex_dagster.stores.doctor import examine
from tests.defs.conftest import GUIDE, KEY, QUIET, new_project
from tests.recording import index_and_record

ASSETS = {
    "discovered_files",
    "commits",
    "chunks",
    "references",
    "embeddings",
    "lancedb_table",
    "tantivy_index",
    "knowledge_graph",
    "index_catalog",
}


class PlantedModel(EmbeddingModel):
    """A model that returns one vector containing NaN."""

    def load(self) -> "PlantedEmbedder":
        return PlantedEmbedder()


class PlantedEmbedder(StaticEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_documents(texts)
        vectors[0, 0] = np.nan
        return vectors


def snapshot(project) -> dict[str, tuple[int, int, int]]:
    """Return the inode, size and modification time of every index file."""
    files = (path for path in project.layout.home.rglob("*") if path.is_file() and path.parent.name != "locks")
    return {str(path): (path.stat().st_ino, path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    materializations = [
        event.step_materialization_data.materialization for event in result.get_asset_materialization_events()
    ]
    (found,) = (item for item in materializations if item.asset_key.to_user_string() == asset)
    return {name: value.value for name, value in found.metadata.items()}


def test_the_steps_run_in_the_order_of_the_stages(project):
    """Work that a stage starts ahead for a later one can run during the stages between them."""
    result = project.index()

    began = [event.step_key for event in result.all_events if event.event_type_value == "STEP_START"]
    assert began == [*(stage.name for stage in stages()), "index_catalog"]


def test_a_run_reads_the_declared_sources_twice_whatever_the_number_of_its_stages(project, monkeypatch):
    """Once at the start, and once at the end for the catalog: with thousands of sources, each read counts."""
    found: list[Settings] = []
    reading = registry.sources

    def read(settings: Settings) -> dict[str, Source]:
        found.append(settings)
        return reading(settings)

    monkeypatch.setattr(registry, "sources", read)

    assert project.index().success
    assert len(found) == 2


def test_a_run_sees_what_was_declared_since_the_one_before(project):
    """This includes a process that has already loaded the definitions."""
    job = build_definitions(project.root).resolve_job_def("index_source")

    def index(key: str) -> bool:
        project.instance.add_dynamic_partitions(SOURCES_NAME, [key])
        options: dict[str, Any] = {"partition_key": key, "raise_on_error": False, "run_config": QUIET}
        return job.execute_in_process(instance=project.instance, **options).success

    assert index(KEY)
    config = project.root / "docindex.toml"
    config.write_text(config.read_text().replace('name = "notes"', 'name = "papers"'))

    assert not index(KEY)
    assert index("library/papers")
    assert [entry.source for entry in catalog.entries(project.layout)] == [KEY, "library/papers"]


STORES = ("lancedb_table", "tantivy_index", "knowledge_graph")
TABLES = ("languages", "skip_reasons", "chunk_types", "predicates")
OF_THE_FILE = {"bytes", "table_rewritten"}  # Dagster lists them last: they are known once the table is written


@pytest.fixture(scope="module")
def indexed(tmp_path_factory) -> Iterator[dg.ExecuteInProcessResult]:
    """A run that several tests inspect."""
    with new_project(tmp_path_factory.mktemp("indexed")) as project:
        yield project.index()


def chunk_changes(result: dg.ExecuteInProcessResult) -> tuple[int, ...]:
    found = metadata(result, "chunks")
    return tuple(found[name] for name in ("added", "changed", "removed"))


def test_one_run_materialises_every_asset_and_all_checks_pass(project):
    result = project.index()

    assert result.success
    events = result.get_asset_materialization_events()
    assert {event.asset_key.to_user_string() for event in events} == ASSETS
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == 16
    assert all(check.passed for check in evaluations)
    assert project.search("green button") == ["guide.md"]
    assert project.search("fsum") == ["sums.py"]
    assert list(examine(project.layout)) == []


def test_assets_show_counts_columns_and_a_short_sample(project):
    shown = metadata(project.index(), "chunks")

    assert shown["dagster/partition_row_count"] == shown["added"] > 0
    assert "chunk_id" in {column.name for column in shown["dagster/column_schema"].columns}
    cells = [cell for record in shown["sample"].records for cell in record.data.values()]
    assert all(len(cell) <= 200 and "\n" not in cell for cell in cells)


@pytest.mark.parametrize("asset", ["discovered_files", "commits", "chunks", "references", "embeddings", *STORES])
def test_numbers_come_before_tables_and_the_long_sample_last(indexed, asset):
    shown = [name for name in metadata(indexed, asset) if name not in OF_THE_FILE]

    assert shown[-1] == "sample"
    tables_at = [at for at, name in enumerate(shown) if name in {"dagster/column_schema", *TABLES}]
    assert shown.index("seconds") < min(tables_at)


@pytest.mark.parametrize("asset", ["discovered_files", "commits", "chunks", "references", "embeddings", *STORES])
def test_every_column_that_is_shown_is_described(indexed, asset):
    columns = metadata(indexed, asset)["dagster/column_schema"].columns

    assert [column.name for column in columns if not column.description] == []


def test_times_are_recorded_to_the_millisecond(indexed):
    seconds = [found["seconds"] for asset in ASSETS if "seconds" in (found := metadata(indexed, asset))]

    assert len(seconds) == len(ASSETS)
    assert seconds == [round(value, 3) for value in seconds]


def test_a_second_run_writes_nothing_and_the_catalogue_does_not_change(project):
    project.index()
    before = snapshot(project)

    result = project.index()

    assert result.success
    assert chunk_changes(result) == (0, 0, 0)
    assert snapshot(project) == before


def test_a_full_run_reuses_nothing_and_gives_the_same_rows(project):
    project.index()
    before = tables.read(project.layout.table("chunks", KEY))

    result = project.index(tags={FULL_TAG: "true"})

    assert metadata(result, "embeddings")["reused"] == 0
    assert tables.read(project.layout.table("chunks", KEY)).equals(before)


def test_an_edit_changes_only_the_chunks_of_its_file(project):
    project.index()
    (project.notes / "guide.md").write_text(GUIDE.replace("green", "violet"))

    result = project.index()

    assert metadata(result, "lancedb_table")["reused"] >= 1
    assert metadata(result, "lancedb_table")["removed"] == 0
    assert project.search("violet") == ["guide.md"]
    assert project.search("green") == []


def test_an_added_a_deleted_and_a_renamed_file_change_only_their_chunks(project):
    project.index()
    others = tables.read(project.layout.table("chunks", KEY))["row_hash"].to_pylist()

    (project.notes / "new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    assert chunk_changes(project.index()) == (1, 0, 0)

    (project.notes / "new.md").rename(project.notes / "old.md")
    renamed = project.index()
    assert chunk_changes(renamed) == (1, 0, 1)
    assert project.search("marmots") == ["old.md"]

    (project.notes / "old.md").unlink()
    assert chunk_changes(project.index()) == (0, 0, 1)
    assert tables.read(project.layout.table("chunks", KEY))["row_hash"].to_pylist() == others


def test_a_changed_setting_is_noticed_like_a_changed_file(project):
    project.index()
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + "\n[chunking]\ntarget_tokens = 32\nmin_tokens = 8\noverlap_tokens = 4\n")

    result = project.index()

    assert result.success
    assert sum(chunk_changes(result)) > 0


def test_a_planted_bad_vector_fails_the_checks_and_searches_go_on(project):
    project.index()
    before = project.layout.current.read_bytes()
    (project.notes / "new.md").write_text("# New\n\nA page about marmots and their burrows.\n")

    result = project.index(embedding_model=PlantedModel(root=str(project.root)))

    assert not result.success
    failed = {check.check_name for check in result.get_asset_check_evaluations() if not check.passed}
    assert failed == {"vectors_are_finite"}
    materialised = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
    assert materialised >= {"discovered_files", "commits", "chunks", "references"}
    assert materialised.isdisjoint({"embeddings", "lancedb_table", "tantivy_index"})
    assert project.layout.current.read_bytes() == before
    assert project.search("green button") == ["guide.md"]
    assert project.index().success
    assert project.search("marmots") == ["new.md"]


def test_a_planted_missing_row_fails_the_publication_and_searches_go_on(project, monkeypatch):
    project.index()
    before = project.layout.current.read_bytes()
    (project.notes / "new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    from docindex_dagster.stores import tantivy_index

    write = tantivy_index.reconcile
    monkeypatch.setattr(tantivy_index, "reconcile", lambda index, source, rows, _: write(index, source, rows.slice(1)))

    result = project.index()

    assert not result.success
    failed = {
        (check.asset_key.to_user_string(), check.check_name)
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.blocking
    }
    assert failed == {("lancedb_table", "stores_agree"), ("tantivy_index", "stores_agree")}
    materialised = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
    assert not materialised & {"lancedb_table", "tantivy_index", "index_catalog"}
    assert project.layout.current.read_bytes() == before
    assert project.search("marmots") == []


def test_a_second_run_of_a_source_waits_for_the_first(project):
    results = []
    waiting = threading.Event()

    def run() -> None:
        waiting.set()
        results.append(project.index())

    with exclusive(project.layout.source_lock(KEY), owner="run 1", on_wait=pytest.fail):
        thread = threading.Thread(target=run)
        thread.start()
        waiting.wait()
        thread.join(timeout=3)
        assert thread.is_alive()
        assert not project.layout.current.exists()
    thread.join(timeout=60)

    assert results[0].success


def test_a_run_of_a_source_that_is_not_declared_fails_with_its_name(project):
    result = project.index("library/unknown")

    assert not result.success
    errors = [event.step_failure_data.error.to_string() for event in result.get_step_failure_events()]
    assert "source 'library/unknown' not found" in errors[0]


def test_the_record_of_runs_holds_no_text_of_a_source(tmp_path, git):
    secret = "xyloquartz"
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "code"\n')
    code = tmp_path / "code"
    code.mkdir()
    git(code, "init", "-q")
    (code / "guide.md").write_text(
        f"# The {secret}\n\nA **{secret}** is a pump, and `{secret}` uses [it](#{secret}).\n\n{secret} requires pump.\n"
    )
    (code / "pump.py").write_text(f'def prime(by="{secret}"):\n    """Of {secret}."""\n    return by  # {secret}\n')
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", f"Add the {secret}", "-m", f"As {secret} needs it.")
    settings = load_settings(tmp_path)

    with dagster_runs.instance(settings) as instance:
        assert index_and_record(settings, "git/code", instance).succeeded

    files = [file for file in Layout(settings.home).dagster.rglob("*") if file.is_file()]
    assert len(files) > 2
    assert [file.name for file in files if secret.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("name", ["chunks", "embeddings", "graph_triples"])
def test_a_table_that_cannot_be_written_fails_the_run_and_nothing_is_published(project, monkeypatch, name):
    """A thread writes it while the step emits its events."""
    writing = tables.write

    def failing(path: Path, table: pa.Table) -> bool:
        if path.parent.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return writing(path, table)

    monkeypatch.setattr(tables, "write", failing)

    assert not project.index().success
    assert not project.layout.current.exists()
    monkeypatch.undo()
    assert project.index().success
    assert list(examine(project.layout)) == []


def test_a_step_that_fails_after_its_work_waits_for_its_table(project, monkeypatch):
    """The source's lock protects the table while it is written."""
    begun, ended = list[str](), list[str]()
    writing = tables.write

    def slow(path: Path, table: pa.Table) -> bool:
        begun.append(path.parent.name)
        time.sleep(0.2)
        is_written = writing(path, table)
        ended.append(path.parent.name)
        return is_written

    def broken(*_: object) -> None:
        raise RuntimeError("the event cannot be recorded")

    monkeypatch.setattr(tables, "write", slow)
    monkeypatch.setattr(stage_assets, "_results", broken)

    assert not project.index().success
    assert begun == ended == ["discovered_files"]
