"""Walks from chunk to chunk."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.graph.links import Links, links, make_links, walk
from docindex_dagster.graph.open_graph import open_graphs
from docindex_dagster.graph.source_graph import Graph, Node, Triple, node_table, triple_table

SOURCE = "library/sample"


def linked(*triples: Triple) -> Links:
    """Return the links of functions, each in a chunk of its own name."""
    names = {end for triple in triples for end, kind in ((triple.subject, triple.subject_type),) if kind == "function"}
    names |= {triple.object for triple in triples if triple.object_type == "function"}
    nodes = [Node(name, "function", name, SOURCE, "a.py", f"chunk of {name}") for name in sorted(names)]
    nodes += [Node(name, "concept", name, SOURCE) for name in {t.object for t in triples if t.object_type == "concept"}]
    return links(open_graphs({SOURCE: Graph(node_table(nodes), triple_table(triples))}))


def edge(subject: str, predicate: str, target: str, kind: str = "function", confidence: float = 1.0) -> Triple:
    at = SOURCE, "a.py", f"chunk of {subject}", 1
    return Triple(subject, "function", predicate, target, kind, *at, confidence)


def reached(found: Links, *seeds: str) -> dict[str, float]:
    shares = walk(found, {f"chunk of {name}": 1.0 for name in seeds})
    return {name.removeprefix("chunk of "): share for name, share in shares.items()}


def test_a_walk_leads_to_what_is_called_and_to_who_calls():
    found = linked(edge("run", "calls", "stop"))

    assert {*reached(found, "run")} == {"run", "stop"}
    assert {*reached(found, "stop")} == {"run", "stop"}
    assert reached(linked(edge("run", "defines", "stop")), "run") == {}


def test_what_many_lead_to_counts_more():
    found = linked(edge("a", "calls", "both"), edge("b", "calls", "both"), edge("b", "calls", "other"))

    shares = reached(found, "a", "b")

    assert shares["both"] > shares["other"]


def test_a_surer_edge_leads_more_there():
    found = linked(edge("a", "calls", "sure"), edge("a", "calls", "guessed", confidence=0.5))

    shares = reached(found, "a")

    assert shares["sure"] == pytest.approx(2 * shares["guessed"], rel=0.2)


def test_a_concept_joins_the_chunks_that_mention_it():
    found = linked(edge("a", "mentions", "concept:x", "concept"), edge("b", "mentions", "concept:x", "concept"))

    assert "b" in reached(found, "a")


def test_a_concept_that_is_everywhere_joins_nothing():
    found = linked(*(edge(f"f{number}", "mentions", "concept:x", "concept") for number in range(50)))

    assert reached(found, "f1") == {}


def test_what_nothing_is_known_of_leads_nowhere():
    assert walk(linked(), {"chunk of a": 1.0}) == {}
    assert walk(linked(edge("a", "calls", "b")), {"chunk of a": 0.0}) == {}


@st.composite
def matrices(draw) -> np.ndarray:
    """Link weights between a few chunks, many of them zero."""
    size = draw(st.integers(1, 12))
    strengths = st.sampled_from([0.0, 0.0, 0.5, 1.0])
    weights = np.array(draw(st.lists(strengths, min_size=size**2, max_size=size**2))).reshape(size, size)
    np.fill_diagonal(weights, 0)
    return weights


def links_in(weights: np.ndarray) -> Links:
    """Return links between chunks whose ids are their numbers."""
    start, target = np.nonzero(weights)
    return make_links(pa.array([str(number) for number in range(len(weights))]), start, target, weights[start, target])


seeds_of_some = st.dictionaries(st.integers(0, 12).map(str), st.floats(0, 10), max_size=5)  # some are missing


@given(matrices(), seeds_of_some)
def test_shares_are_parts_of_one_whole_and_stay_near_the_seeds(weights, seeds):
    shares = walk(links_in(weights), seeds)

    seeds = {name: weight for name, weight in seeds.items() if int(name) < len(weights)}
    begun = [int(name) for name, weight in seeds.items()]
    near = {*begun, *np.flatnonzero(weights[begun].any(axis=0)).tolist()} if begun else set()
    assert all(share > 0 for share in shares.values())
    assert sum(shares.values()) < 1
    assert {int(name) for name in shares} <= near


def walked_in_full(weights: np.ndarray, seeds: dict[str, float]) -> dict[str, float]:
    """Walk the full matrix of the nearby chunks: the definition, without sparse rows."""
    begun = [int(name) for name in seeds if int(name) < len(weights)]
    if not begun or not sum(seeds.values()):
        return {}
    near = sorted({*begun, *np.flatnonzero(weights[begun].any(axis=0)).tolist()})
    part = weights[np.ix_(near, near)]
    leaving = part.sum(axis=1, keepdims=True)
    chances = np.divide(part, leaving, out=np.zeros_like(part), where=leaving > 0)
    begin = np.array([seeds.get(str(number), 0.0) for number in near]) / sum(seeds.values())
    ranks = begin
    for _ in range(12):
        ranks = 0.5 * begin + 0.5 * ranks @ chances
    return {str(number): share for number, share in zip(near, ranks - 0.5 * begin, strict=True) if share > 0}


@given(matrices(), seeds_of_some)
def test_a_walk_is_what_the_whole_matrix_gives(weights, seeds):
    found, expected = walk(links_in(weights), seeds), walked_in_full(weights, seeds)

    assert all(abs(found.get(name, 0.0) - expected.get(name, 0.0)) < 1e-12 for name in {*found, *expected})
