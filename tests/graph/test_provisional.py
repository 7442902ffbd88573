"""The part of the previous graph that is published while the graph of new chunks is extracted."""

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core.settings import GraphSettings
from docindex_dagster.graph.extraction import EVERYTHING, Extraction, GraphPlan, provisional, version_of
from docindex_dagster.graph.source_graph import Graph, stray_edges
from tests.graph.built import build_graph
from tests.graph.test_incremental import Edited, edit

PROGRAM = ["python/ledger-package", "typescript/warehouse-barrel", "cpp/billing"]
FILES = {
    "shop.py": "from money import add\n\n\ndef total(rows):\n    return add(rows)\n",
    "money.py": "def add(rows):\n    return sum(rows)\n",
    "clock.py": "def now():\n    return tick()\n\n\ndef tick():\n    return 0\n",
}


def complete(graph: Graph, chunks: pa.Table) -> Extraction:
    return Extraction(graph, EVERYTHING.fingerprint, version_of(chunks))


def by_path(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each file."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in (graph.nodes, graph.triples):
        for row in table.to_pylist():
            if row["path"] is not None:
                found.setdefault(row["path"], []).append(row)
    return found


def without(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row not in others]


@pytest.fixture
def edited(tmp_path) -> Edited:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return Edited(tmp_path, [])


def calls(graph: Graph | None) -> set[tuple[str, str]]:
    assert graph is not None
    return {(row["subject"], row["object"]) for row in graph.triples.to_pylist() if row["predicate"] == "calls"}


def chunks_after(edited: Edited) -> pa.Table:
    edited.update()
    return edited.chunks


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 4))
def test_after_random_edits_it_is_a_consistent_part_of_the_previous_graph(seed: int, steps: int):
    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        edited = Edited(Path(folder), PROGRAM)
        before = complete(edited.graph, edited.chunks)
        for _ in range(steps):
            edit(chance, edited)
        chunks = chunks_after(edited)

    found = provisional(before, chunks, EVERYTHING)

    assert found.graph is not None
    assert before.graph is not None
    assert stray_edges(found.graph, chunks) == ""
    assert set(found.graph.nodes["chunk_id"].drop_null().to_pylist()) <= set(chunks["chunk_id"].to_pylist())
    old, part, new = by_path(before.graph), by_path(found.graph), by_path(edited.graph)
    paths = set(chunks["path"].to_pylist())
    assert part.keys() <= paths
    # For linked files, it repeats the previous graph.
    linked = {path for path in paths & old.keys() if part.get(path) == old[path]}
    assert found.unlinked == len(paths - linked)
    for path, rows in part.items():
        assert without(rows, old[path]) == []
        # For files that the complete graph leaves unchanged, it is a subset of the complete graph.
        if new[path] == old[path]:
            assert without(rows, new[path]) == []


def test_of_the_same_chunks_it_is_the_previous_graph(edited):
    before = complete(edited.graph, edited.chunks)

    found = provisional(before, edited.chunks, EVERYTHING)

    assert found.unlinked == 0
    assert found.graph.nodes.equals(before.graph.nodes)
    assert found.graph.triples.equals(before.graph.triples)


def test_it_is_never_taken_for_a_complete_one(edited):
    before = complete(edited.graph, edited.chunks)
    first, other = (provisional(known, edited.chunks, EVERYTHING) for known in (before, None))

    assert not first.is_settled
    assert len({before.version, first.version, other.version}) == 3
    assert provisional(before, edited.chunks, EVERYTHING).version == first.version


def test_a_file_that_called_into_one_that_changed_is_yet_to_be_linked(edited):
    before = complete(edited.graph, edited.chunks)
    (edited.folder / "money.py").write_text(FILES["money.py"].replace("sum(rows)", "sum(rows, 0)"))

    found = provisional(before, chunks_after(edited), EVERYTHING)

    assert found.unlinked == 2  # money.py, and shop.py, which calls it
    assert calls(before.graph) - calls(found.graph) >= {("shop.py::total", "money.py::add")}
    assert ("clock.py::now", "clock.py::tick") in calls(found.graph)
    assert "shop.py::total" in found.graph.nodes["node"].to_pylist()
    assert "money.py::add" not in found.graph.nodes["node"].to_pylist()


def test_a_file_that_is_gone_is_not_counted(edited):
    before = complete(edited.graph, edited.chunks)
    (edited.folder / "clock.py").unlink()

    found = provisional(before, chunks_after(edited), EVERYTHING)

    assert found.unlinked == 0
    assert not found.is_settled
    assert "clock.py" not in found.graph.nodes["path"].to_pylist()


def test_a_file_whose_edges_the_previous_graph_lacks_is_yet_to_be_linked(edited):
    nodes = edited.graph.nodes
    problems = ["time-out" if name == "clock.py" else None for name in nodes["node"].to_pylist()]
    at = nodes.schema.get_field_index("problem")
    nodes = nodes.set_column(at, nodes.schema.field(at), pa.array(problems, pa.string()))

    found = provisional(complete(Graph(nodes, edited.graph.triples), edited.chunks), edited.chunks, EVERYTHING)

    assert found.unlinked == 1
    assert "clock.py" not in found.graph.nodes["path"].to_pylist()


@pytest.mark.parametrize("plan", ["none", "another"])
def test_without_a_graph_of_the_same_plan_no_file_is_linked(edited, plan):
    before = None if plan == "none" else replace(complete(edited.graph, edited.chunks), plan="another")

    found = provisional(before, edited.chunks, EVERYTHING)

    assert found.unlinked == len(FILES)
    assert (found.graph.nodes.num_rows, found.graph.triples.num_rows) == (0, 0)


def test_where_no_graph_is_wanted_nothing_is_left_to_link(edited):
    plan = GraphPlan(GraphSettings(enabled=False))

    found = provisional(None, edited.chunks, plan)

    assert (found.graph, found.unlinked, found.is_settled) == (None, None, True)


def test_a_source_without_files_has_nothing_to_link(edited):
    found = provisional(None, edited.chunks.slice(0, 0), EVERYTHING)

    assert (found.unlinked, found.is_settled) == (0, False)


def test_edges_outside_of_the_source_stay(edited):
    (edited.folder / "clock.py").write_text("import os\n\n\ndef now():\n    return os.getpid()\n")
    before = complete(build_graph(chunks_after(edited)), edited.chunks)
    (edited.folder / "shop.py").write_text("import json\n")

    found = provisional(before, chunks_after(edited), EVERYTHING)

    names = found.graph.nodes["node"].to_pylist()
    assert "external:os" in names
    assert "external:json" not in names
