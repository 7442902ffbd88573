"""The references stage between chunks and graph: no reference is lost, and no file is processed twice."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from docindex_dagster.callgraph.table import MADE_WITH, REFERENCES, as_table
from docindex_dagster.chunking import inputs
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.pipeline import chunking
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import StageOutcomes, run_stages
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

KEY = "library/files"
FILES = {
    "a.py": "from b import beta\n\n\ndef alpha():\n    return beta()\n",
    "b.py": "def beta():\n    return 1\n",
    "c.md": "# Gamma\n\nIt calls `beta` and has some words more.\n",
}


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "files").mkdir()
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        (self.root / "files" / name).write_text(text)

    def settings(self, graph: str = "") -> Settings:
        (self.root / CONFIG_NAME).write_text(f'[graph]\n{graph}\n[[source]]\nkind = "library"\npath = "files"\n')
        return load_settings(self.root)

    @property
    def source(self) -> Source:
        return next(iter(registry.sources(self.settings()).values()))

    @property
    def layout(self) -> Layout:
        return Layout(self.root / ".docindex")

    def run(self, graph: str = "", *, full: bool = False) -> StageOutcomes:
        return run_stages(SourceRun(self.settings(graph), self.source, StaticEmbedder, full))

    def calls(self) -> list[tuple[str, str]]:
        triples = tables.read(self.layout.table("graph_triples", KEY))
        rows = triples.filter(pc.equal(triples["predicate"], "calls")).to_pylist()
        return [(row["subject"], row["object"]) for row in rows]

    @property
    def left(self) -> Path:
        return self.layout.table("fresh_references", KEY)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def numbers(ran: StageOutcomes) -> dict[str, int | float | str]:
    return dict(ran.outcomes["references"].reports["references"].numbers)


CALL = ("a.py::alpha", "b.py::beta")


def test_what_the_workers_extracted_as_they_cut_is_taken_and_removed(project):
    ran = project.run()

    assert numbers(ran) == {"files": 2, "reused": 0, "parsed_again": 0, "without_structure": 0}
    assert project.calls() == [CALL]
    assert not project.left.exists()


def test_an_edit_extracts_one_file(project):
    project.run()
    project.write("b.py", "def beta():\n    return 2\n")

    assert numbers(project.run()) == {"files": 2, "reused": 1, "parsed_again": 0, "without_structure": 0}
    assert project.calls() == [CALL]


def test_a_run_that_ends_before_the_references_are_written_loses_none(project, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chunking, "build_references", stop)
        with pytest.raises(KeyboardInterrupt):
            project.run()
        project.write("d.py", "def delta():\n    return 2\n")
        with pytest.raises(KeyboardInterrupt):
            project.run()
    assert project.left.exists()

    assert numbers(project.run()) == {"files": 3, "reused": 0, "parsed_again": 0, "without_structure": 0}
    assert project.calls() == [CALL]
    assert not project.left.exists()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")], ids=["gone", "damaged"])
def test_a_table_that_is_lost_is_made_again_from_the_files(project, damage):
    project.run()
    table = project.layout.table("references", KEY)
    before = tables.read(table)
    damage(table)

    assert not is_current(project.settings(), project.source)
    assert numbers(project.run())["parsed_again"] == 2
    assert tables.read(table).equals(before)


def test_another_extraction_parses_files_again_cuts_none_and_makes_the_graph_anew(project, monkeypatch):
    project.run()
    monkeypatch.setattr(inputs, "REFERENCES_VERSION", "another")
    resolved: list[str] = []
    collect = FileEdges.collect

    def noting(edges: FileEdges) -> None:
        resolved.append(edges.unit.path)
        collect(edges)

    monkeypatch.setattr(FileEdges, "collect", noting)

    ran = project.run()

    assert numbers(ran)["parsed_again"] == 2
    assert ran.outcomes["chunks"].reports["chunks"].numbers["changed"] == 0
    assert resolved == ["a.py", "b.py"]


@pytest.mark.parametrize("graph", ["enabled = false", "code = false"])
def test_where_the_graph_has_no_code_nothing_is_extracted_until_it_has(project, graph):
    ran = project.run(graph)

    assert numbers(ran) == {"files": 0}
    assert tables.read(project.layout.table("references", KEY)).schema.remove_metadata().equals(REFERENCES)
    assert not project.left.exists()
    assert is_current(project.settings(graph), project.source)
    assert not is_current(project.settings(), project.source)

    assert numbers(project.run())["parsed_again"] == 2
    assert project.calls() == [CALL]
    assert numbers(project.run(graph)) == {"files": 0}


def test_a_file_that_was_only_touched_leaves_all_as_it_is(project):
    project.run()
    os.utime(project.root / "files" / "a.py")

    assert "chunks" not in project.run().outcomes


def test_a_full_run_takes_nothing_that_an_earlier_one_left(project):
    project.run()

    assert numbers(project.run(full=True)) == {"files": 2, "reused": 0, "parsed_again": 0, "without_structure": 0}


def test_a_file_that_had_bad_luck_is_tried_again(project):
    project.run()
    table = project.layout.table("references", KEY)
    found = tables.read(table)
    problems = pa.array(["time-out: not parsed within 1 s", None])
    failed = found.set_column(found.schema.get_field_index("problem"), REFERENCES.field("problem"), problems)
    made_with = found.schema.metadata[MADE_WITH].decode()
    about = {b"docindex.made_of": tables.metadata_value(table, b"docindex.made_of").encode()}
    chunking._write(project.layout, KEY, as_table(failed.replace_schema_metadata(None), made_with), about)

    assert not is_current(project.settings(), project.source)
    assert numbers(project.run()) == {"files": 2, "reused": 1, "parsed_again": 1, "without_structure": 0}
