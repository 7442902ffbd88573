"""A file whose names cannot be resolved, or take too long, loses only its own edges and is reported."""

import pyarrow.compute as pc
import pytest

from docindex_dagster.callgraph.tabling import Limits
from docindex_dagster.graph.build import Content
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.graph.source_graph import Graph, stray_edges
from docindex_dagster.status import catalog
from tests.conftest import publish_rows, vectors_of
from tests.graph.built import build_graph, update_graph
from tests.graph.samples import chunks_of, opened

FILES = {
    "lib.py": "def open_valve():\n    return 1\n",
    "bad.py": "from lib import open_valve\n\n\ndef broken():\n    return open_valve()\n",
    "good.py": "from bad import broken\n\n\ndef run():\n    return broken()\n",
}
LONG = "".join(f"def f{n}(a):\n    return f{n + 1}(a)\n\n\n" for n in range(400)) + "f0(f1(f2(3)))\n"
HAS_ITS_EDGES = ("good.py::run", "bad.py::broken")


def calls(graph: Graph) -> set[tuple[str, str]]:
    rows = graph.triples.filter(pc.equal(graph.triples["predicate"], "calls"))
    return set(zip(rows["subject"].to_pylist(), rows["object"].to_pylist(), strict=True))


@pytest.fixture
def bad_raises(monkeypatch):
    """Make resolving the calls of one file raise an internal error."""
    collect = FileEdges.collect

    def fail(edges):
        if edges.unit.path == "bad.py":
            raise KeyError("pump")
        collect(edges)

    monkeypatch.setattr(FileEdges, "collect", fail)


def test_an_error_costs_a_file_its_own_edges_alone_and_is_reported(bad_raises):
    chunks = chunks_of(FILES)
    graph = build_graph(chunks)

    assert calls(graph) == {HAS_ITS_EDGES}
    assert graph.problems == {"bad.py": "error: KeyError: 'pump'"}
    assert stray_edges(graph, chunks) == ""


def test_the_next_update_tries_a_file_again_that_has_no_edges(monkeypatch, bad_raises):
    chunks = chunks_of(FILES)
    graph = build_graph(chunks)
    monkeypatch.undo()

    again = update_graph(graph, chunks)

    assert again.problems == {}
    assert again.triples.equals(build_graph(chunks).triples)


def test_names_that_take_too_many_steps_cost_the_same_file_its_edges_in_every_build():
    chunks = chunks_of({"long.py": LONG, **FILES})
    content = Content(limits=Limits(steps=100))
    graph = build_graph(chunks, content)

    assert graph.problems == {"long.py": "limit: resolving names takes more than 100 steps"}
    assert HAS_ITS_EDGES in calls(graph)
    assert graph.is_settled  # a retry would give the same result
    assert build_graph(chunks, content).triples.equals(graph.triples)


def test_a_source_that_takes_too_long_keeps_what_it_has_and_goes_on_with_the_next_run():
    chunks = chunks_of(FILES)
    short = build_graph(chunks, Content(limits=Limits(source_s=-1)))

    assert short.problems.keys() == FILES.keys()
    assert "::" in "".join(short.nodes["node"].to_pylist())
    assert not short.is_settled
    assert update_graph(short, chunks).triples.equals(build_graph(chunks).triples)


def test_a_file_that_takes_too_long_is_given_up():
    chunks = chunks_of({"long.py": LONG, **FILES})

    graph = build_graph(chunks, Content(limits=Limits(file_s=-1)))

    assert graph.problems == {"long.py": "time-out: resolving names takes more than -1 s"}
    assert HAS_ITS_EDGES in calls(graph)


def test_a_document_that_begins_with_code_before_its_first_heading_has_its_sections():
    text = "    >>> import pump\n\nFrames\n******\n:ref:`the-overview` says more.\n"

    graph = opened({"frames.rst": text})

    assert "frames.rst#Frames" in graph.nodes["node"].to_pylist()
    assert build_graph(chunks_of({"frames.rst": text})).problems == {}


def test_a_file_without_edges_is_reported_wherever_the_index_is_and_is_no_reason_to_try_again(bad_raises, layout):
    chunks = chunks_of(FILES)
    publication = publish_rows(layout, "library/sample", chunks, vectors_of(chunks))

    reported = "the graph has only definitions for 1 of 3 files"
    assert publication.graph_problem == f"{reported}: bad.py (error: KeyError: 'pump')"
    assert not publication.source.lacks_of_graph
    (entry,) = catalog.entries(layout)
    assert catalog.index_limitations(entry) == [reported]
    assert catalog.is_degraded(entry)
