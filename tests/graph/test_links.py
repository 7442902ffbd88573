"""Links between chunks as a product of sparse matrices: references times definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.graph.links import Links, links
from docindex_dagster.graph.open_graph import open_graphs
from docindex_dagster.graph.source_graph import Graph, Node, Triple, node_table, triple_table

SOURCE = "library/sample"
FUNCTIONS = tuple("abcdef")
CONCEPTS = ("x", "y")
STRENGTH = {"calls": 1.0, "uses": 0.6, "mentions": 0.5}

calls = st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from(["calls", "uses"]), st.sampled_from(FUNCTIONS)).filter(
    lambda edge: edge[0] != edge[2]
)
mentions = st.tuples(st.sampled_from(FUNCTIONS), st.just("mentions"), st.sampled_from(CONCEPTS))
edges = st.dictionaries(calls | mentions, st.sampled_from([0.25, 1.0]), max_size=20)  # with their confidence


def linked(found: dict[tuple[str, str, str], float]) -> Links:
    """Return the links of functions, each in a chunk of its own name."""
    nodes = [Node(name, "function", name, SOURCE, "a.py", name) for name in FUNCTIONS]
    nodes += [Node(name, "concept", name, SOURCE) for name in CONCEPTS]
    triples = [
        Triple(subject, "function", predicate, target, kind, SOURCE, "a.py", subject, 1, confidence)
        for (subject, predicate, target), confidence in found.items()
        for kind in ["concept" if target in CONCEPTS else "function"]
    ]
    return links(open_graphs({SOURCE: Graph(node_table(nodes), triple_table(triples))}))


def dense(found: Links) -> np.ndarray:
    """Return the weights from function to function, in name order."""
    weights = np.zeros((len(FUNCTIONS), len(FUNCTIONS)))
    chunks = found.chunk_ids.to_pylist()
    for name in chunks:
        begin, end = found.begins[chunks.index(name)], found.begins[chunks.index(name) + 1]
        for target, weight in zip(found.targets[begin:end], found.weights[begin:end], strict=True):
            weights[FUNCTIONS.index(name), FUNCTIONS.index(chunks[target])] += weight
    return weights


@given(edges)
def test_they_are_the_product_of_what_refers_and_what_defines(found):
    names = (*FUNCTIONS, *CONCEPTS)
    references = np.zeros((len(FUNCTIONS), len(names)))
    for (subject, predicate, target), confidence in found.items():
        references[FUNCTIONS.index(subject), names.index(target)] += STRENGTH[predicate] * confidence
    share = 1 / np.maximum(np.count_nonzero(references, axis=0), 1)
    homes = np.eye(len(FUNCTIONS), len(names))
    homes[:, len(FUNCTIONS) :] = (references * share)[:, len(FUNCTIONS) :]

    expected = references @ homes.T + 0.5 * (homes * share) @ references.T
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(dense(linked(found)), expected, atol=1e-12)


@given(edges)
def test_a_pair_is_linked_once_and_rows_are_in_order(found):
    product = linked(found)

    rows = np.repeat(np.arange(len(product.chunk_ids)), np.diff(product.begins))
    pairs = [*zip(rows.tolist(), product.targets.tolist(), strict=True)]
    assert pairs == sorted(set(pairs))
    assert (product.weights > 0).all()
