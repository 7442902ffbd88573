"""Searches of a published index."""

from collections.abc import Callable
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import DamagedStoreError, DocindexError, QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search import candidates
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import RETRIEVING, Hit, Mode
from docindex_dagster.search.ranking import fuse
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

PYTHON = {
    "src/http/client.py": ["open_connection connects to a server", "sendRequest sends bytes over the socket"],
    "src/util.py": ["parse_date reads a calendar date from text"],
    "tests/test_util.py": ["test_parse_date checks dates"],
}
GO = {"cmd/it's.go": ["ParseDate reads a calendar date"]}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    for source, files, language in (("library/py", PYTHON, "python"), ("git/go", GO, "go")):
        chunks = chunks_of(files, source, language)
        publish_rows(layout, source, chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, query: str, **arguments) -> list[Hit]:
    return search(reader, query, StaticEmbedder, **arguments)


@pytest.mark.parametrize("mode", RETRIEVING)
def test_every_mode_finds_a_chunk_by_its_words(reader, mode):
    hits = find(reader, "connect to a server", mode=mode)

    assert (hits[0].source, hits[0].path, hits[0].start_line) == ("library/py", "src/http/client.py", 1)
    assert "connects to a server" in hits[0].text


@pytest.mark.parametrize("query", ["send request", "sendRequest", "SENDREQUEST", "sendRequest("])
def test_an_identifier_is_found_whole_and_by_its_parts(reader, query):
    assert find(reader, query, mode=Mode.BM25)[0].symbol_name == "sendRequest"


def test_a_path_is_found_by_its_parts(reader):
    assert find(reader, "http client", mode=Mode.BM25)[0].path == "src/http/client.py"


def test_hybrid_says_what_each_retriever_contributed(reader):
    hit = find(reader, "parse_date")[0]

    assert {signal.name for signal in hit.signals} >= {"bm25", "vector"}
    assert hit.score == pytest.approx(sum(signal.contribution for signal in hit.signals))


def test_hybrid_looks_for_words_while_it_compares_vectors(reader, monkeypatch):
    both = Barrier(2)

    def met(retrieve: Callable[..., candidates.Ranking]) -> Callable[..., candidates.Ranking]:
        def call(*arguments: object) -> candidates.Ranking:
            both.wait(timeout=5)
            return retrieve(*arguments)

        return call

    monkeypatch.setattr(candidates, "bm25", met(candidates.bm25))
    monkeypatch.setattr(candidates, "vector", met(candidates.vector))

    assert find(reader, "parse_date")


@pytest.mark.parametrize("broken", ["bm25", "vector"])
def test_hybrid_fails_where_one_of_its_retrievers_does(reader, monkeypatch, broken):
    def fail(*_: object) -> None:
        raise ValueError("the file is cut off")

    monkeypatch.setattr(candidates, broken, fail)

    with pytest.raises(DamagedStoreError, match="the file is cut off"):
        find(reader, "parse_date")


@pytest.mark.parametrize("mode", RETRIEVING)
@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        (Filters(sources=("git/go",)), {"cmd/it's.go"}),
        (Filters(languages=("python",)), set(PYTHON)),
        (Filters(source_types=("test",)), set()),
        (Filters(path_glob="src/**/*.py"), {"src/http/client.py", "src/util.py"}),
        (Filters(path_glob="src/*.py"), {"src/util.py"}),
        (Filters(path_glob="*.go"), {"cmd/it's.go"}),
        (Filters(path_glob="src/http"), {"src/http/client.py"}),
        (Filters(path_glob="src/http/"), {"src/http/client.py"}),
        (Filters(path_glob="./src/"), {"src/http/client.py", "src/util.py"}),
        (Filters(path_glob="http"), {"src/http/client.py"}),
        (Filters(path_glob="util.py"), {"src/util.py"}),
        (Filters(path_glob="src/util.py/"), set()),
        (Filters(path_glob="./http"), set()),
        (Filters(path_glob="cmd/it's.??"), {"cmd/it's.go"}),
        (Filters(sources=("library/py",), path_glob="*.go"), set()),
        (Filters(sources=("no'such",)), set()),
    ],
)
def test_every_hit_meets_every_filter(reader, mode, filters, paths):
    hits = find(reader, "date server socket connect checks reads", mode=mode, filters=filters, top_k=100)

    assert {hit.path for hit in hits} == paths


@pytest.mark.parametrize(
    "query",
    [
        "foo::bar(",
        '"unbalanced',
        "x:y AND",
        "🙂",
        "a" * 10_000,
        "parse " * 2000,
        "it's",
        "<T>",
        "-foo",
        "* ?",
        "\udcff",
        "a\0b",
    ],
)
@pytest.mark.parametrize("mode", [*RETRIEVING, Mode.LITERAL])
def test_no_query_is_a_syntax_error(reader, query, mode):
    assert isinstance(find(reader, query, mode=mode), list)


@pytest.mark.parametrize("query", ["", "  \n\t"])
def test_an_empty_query_is_refused_in_one_line(reader, query):
    with pytest.raises(QueryError, match="empty"):
        find(reader, query)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60), glob=st.none() | st.text(max_size=12), name=st.none() | st.text(max_size=8))
def test_any_text_is_answered_or_refused_by_a_typed_error(reader, query, glob, name):
    filters = Filters(sources=(name,) if name else (), path_glob=glob)
    try:
        find(reader, query, filters=filters)
    except DocindexError as error:
        lines = str(error).splitlines()
    else:
        lines = []

    assert len(lines) <= 1


def test_the_same_query_is_answered_the_same(reader):
    assert find(reader, "reads a date") == find(reader, "reads a date")


def test_fusion_puts_what_two_retrievers_found_above_what_one_found():
    rankings = {"bm25": [("a", 9.0), ("b", 8.0)], "vector": [("b", 0.9), ("c", 0.8)]}

    fused = fuse(rankings, {"bm25": 0.5, "vector": 0.5}, limit=2, weights=Weights(score=1))

    assert [item.chunk_id for item in fused] == ["b", "a", "c"]


def test_the_constant_of_reciprocal_ranks_is_a_weight():
    rankings = {"bm25": [("a", 9.0), ("b", 8.0)], "vector": [("b", 0.9), ("c", 0.8)]}
    first, second = (
        {item.chunk_id: item.score for item in fuse(rankings, {"bm25": 1, "vector": 0}, 2, Weights(score=0, rrf_k=k))}
        for k in (1.0, 60.0)
    )

    assert first["b"] / first["a"] == pytest.approx(2 / 3)
    assert second["b"] / second["a"] == pytest.approx(61 / 62)


@pytest.mark.parametrize("reference", ["src/util.py:1", "src/util.py", "library/py::src/util.py::0"])
def test_a_chunk_is_found_by_its_place(reader, reference):
    (row,) = find_chunks(reader, reference)

    assert row["symbol_name"] == "parse_date"
    assert find_chunks(reader, row["chunk_id"]) == [row]


@pytest.mark.parametrize(
    "glob", ["x" * 20_000, "*a" * 300, "[", "\\", "(((", "a{1000000}", "*-????-??-??.md", "**/*_????????.sql"]
)
@pytest.mark.parametrize("mode", [*RETRIEVING, Mode.LITERAL])
def test_no_glob_is_more_than_a_one_line_error(reader, mode, glob):
    try:
        hits = find(reader, "reads", mode=mode, filters=Filters(path_glob=glob))
    except QueryError as error:
        hits = []
        lines = str(error).splitlines()
        assert len(lines) == 1

    assert hits == []


def test_a_place_that_is_not_indexed_is_a_typed_error(reader):
    with pytest.raises(QueryError, match="docindex why"):
        find_chunks(reader, "src/nosuch.py:99")
    with pytest.raises(QueryError, match=r"src/util.py is at line 99: the last indexed line is \d$"):
        find_chunks(reader, "src/util.py:99")


def test_the_same_globs_are_too_complex_in_every_mode(reader):
    for mode in RETRIEVING:
        with pytest.raises(QueryError, match="too complex"):
            find(reader, "reads", mode=mode, filters=Filters(path_glob="**/*_????????.sql"))


def test_a_reference_with_a_number_beyond_all_bounds_is_a_typed_error(reader):
    with pytest.raises(QueryError, match="docindex why"):
        find_chunks(reader, "a::b::" + "9" * 5000)


def test_a_model_that_fails_is_not_taken_for_a_damaged_store(reader):
    class Broken(StaticEmbedder):
        def embed_query(self, text):
            raise RuntimeError(f"no memory for {text}")

    with pytest.raises(RuntimeError, match="no memory"):
        search(reader, "reads", Broken)
