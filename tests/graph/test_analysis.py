"""What a graph is like as a whole."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from networkx import Graph, connected_components

from docindex_dagster.graph.analysis import components

COUNT = 12
EDGES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=30)


@given(EDGES)
def test_nodes_have_the_same_label_where_edges_join_them_in_any_direction(edges):
    subjects, objects = np.array(edges, np.int64).reshape(-1, 2).T
    expected: Graph[int] = Graph(edges)
    expected.add_nodes_from(range(COUNT))

    labels = components(COUNT, subjects, objects).tolist()

    assert all(labels[node] == min(part) for part in connected_components(expected) for node in part)
