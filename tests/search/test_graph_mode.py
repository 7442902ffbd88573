"""Graph search: it adds neighbors of the matches and boosts chunks that many matches link to."""

from dataclasses import replace

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.candidates import boost_by_graph
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Hit, Mode, Scored, Signal
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader, open_reader
from tests.search.farm import ALIKE, CALLEE, CALLER, QUERY, indexed


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    return open_reader(Layout(indexed(tmp_path_factory.mktemp("with_graph")).home))


@pytest.fixture(scope="module")
def without_graph(tmp_path_factory) -> Reader:
    project = indexed(tmp_path_factory.mktemp("without_graph"), "[graph]\nenabled = false\n")
    return open_reader(Layout(project.home))


def find(reader: Reader, **arguments) -> list[Hit]:
    return search(reader, QUERY, StaticEmbedder, **arguments)


def paths(hits: list[Hit]) -> list[str]:
    return [hit.path for hit in hits]


def test_what_a_match_calls_is_found_though_no_retriever_finds_it(reader):
    assert CALLEE not in paths(find(reader, mode=Mode.VECTOR, top_k=75))

    found = {hit.path: hit for hit in find(reader, mode=Mode.GRAPH)}

    assert {CALLER, CALLEE} <= {*found}
    assert ALIKE not in found
    signals = {signal.name: signal for signal in found[CALLEE].signals}
    assert signals["graph"].rank == 1
    assert signals["vector"].rank is None
    assert found[CALLEE].score == pytest.approx(sum(signal.contribution for signal in found[CALLEE].signals))


def test_what_is_found_by_the_graph_meets_the_filters(reader):
    assert paths(find(reader, mode=Mode.GRAPH, filters=Filters(path_glob="machines/gear.py"))) == [CALLEE]
    assert CALLEE not in paths(find(reader, mode=Mode.GRAPH, filters=Filters(path_glob="farm/*"), top_k=1000))


def test_the_boost_finds_nothing_further_and_is_bounded(reader):
    weight = 0.2
    plain = find(reader, top_k=1000)
    boosted = find(reader, top_k=1000, weights=replace(WEIGHTS, graph=weight))

    assert {*paths(boosted)} == {*paths(plain)}
    best = max(sum(signal.contribution for signal in hit.signals if signal.rank is not None) for hit in plain)
    gains = [signal.contribution for hit in boosted for signal in hit.signals if signal.name == "graph"]
    assert gains
    assert all(0 < gain <= weight * best + 1e-9 for gain in gains)


def test_the_boost_lifts_what_is_called_and_not_what_stands_beside_it(reader):
    ids = {hit.path: hit.chunk_id for mode in (Mode.GRAPH, Mode.BM25) for hit in find(reader, mode=mode)}
    ids |= {hit.path: hit.chunk_id for hit in search(reader, "slip", StaticEmbedder, mode=Mode.BM25)}
    scores = {CALLER: 3.0, ALIKE: 1.1, CALLEE: 1.0}
    found = [Scored.of(ids[path], (Signal("bm25", score),)) for path, score in scores.items()]

    order = [item.chunk_id for item in boost_by_graph(reader, found, 0.1)]

    assert order == [ids[CALLER], ids[CALLEE], ids[ALIKE]]


def test_without_a_graph_its_mode_is_refused_and_other_modes_are_as_ever(without_graph):
    with pytest.raises(QueryError, match=r"no.* graph\. Set graph\.enabled"):
        find(without_graph, mode=Mode.GRAPH)

    boosted = find(without_graph, weights=replace(WEIGHTS, graph=0.2))

    assert boosted == find(without_graph)
    assert boosted
