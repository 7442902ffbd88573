"""Graph files of a source: an update reuses unchanged parts of the old files and equals a full extraction."""

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.core.layout import Layout
from docindex_dagster.graph import build
from docindex_dagster.graph.build import build_graph, update_graph
from docindex_dagster.graph.file_edges import FileEdges
from docindex_dagster.stores import graph_files
from docindex_dagster.stores import publish as publishing
from tests.conftest import chunks_of, publish_rows, references_of, vectors_of

KEY = "library/sample"
TEXTS = ["alpha reads a file", "beta writes a file", "gamma sorts numbers"]
FOLDERS = st.dictionaries(
    st.sampled_from(["a.py", "b.py", "b/c.py", "z.py"]), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3)
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(before=FOLDERS, after=FOLDERS)
def test_an_updated_graph_equals_one_that_was_extracted_from_nothing(before, after):
    old, new = ((chunks, references_of(chunks)) for chunks in map(chunks_of, (before, after)))

    updated, whole = update_graph(build_graph(*old), *new), build_graph(*new)

    assert updated.nodes.equals(whole.nodes)
    assert updated.triples.equals(whole.triples)


def test_only_files_that_changed_are_extracted_again(layout, monkeypatch):
    publish_files(layout, {"a.py": TEXTS[:1], "b.py": TEXTS[1:]})
    extracted: list[str] = []
    collect = FileEdges.collect

    def noting(edges):
        extracted.append(edges.unit.path)
        collect(edges)

    monkeypatch.setattr(FileEdges, "collect", noting)

    publish_files(layout, {"a.py": TEXTS[:1], "b.py": TEXTS[2:]})

    assert extracted == ["b.py"]


def test_after_a_failed_extraction_the_whole_graph_is_extracted_again(layout, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(build, "build_graph", fail_on_rows)
        assert publish_files(layout, {"a.py": TEXTS}).graph_problem

    publication = publish_files(layout, {"a.py": TEXTS, "b.py": TEXTS})

    assert publication.source.graph
    graph = graph_files.read(graph_files.mapped(layout, publication.generation), publication.source.graph)
    chunks = chunks_of({"a.py": TEXTS, "b.py": TEXTS})
    assert graph.triples.replace_schema_metadata(None).equals(build_graph(chunks, references_of(chunks)).triples)


def test_after_a_failed_extraction_the_same_rows_are_extracted_again(layout, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(build, "build_graph", fail_on_rows)
        publish_files(layout, {"a.py": TEXTS})
        assert publish_files(layout, {"a.py": TEXTS}).graph_problem

    publication = publish_files(layout, {"a.py": TEXTS})

    assert publication.graph_problem == ""
    assert publication.source.nodes > 0


def publish_files(layout: Layout, files: dict[str, list[str]]) -> publishing.Publication:
    chunks = chunks_of(files)
    return publish_rows(layout, KEY, chunks, vectors_of(chunks))


def fail_on_rows(chunks: pa.Table, references: pa.Table, *more: object) -> object:
    if chunks.num_rows:
        raise ValueError("no graph today")
    return build_graph(chunks, references)
