"""Analysis of the graph as a whole."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from networkx import Graph, connected_components

from docindex_dagster.graph.analysis import components, statistics
from docindex_dagster.graph.open_graph import OpenGraph, open_graphs
from tests.graph.samples import KEY, graph_of

COUNT = 12
EDGES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=30)


@given(EDGES)
def test_nodes_have_the_same_label_where_edges_join_them_in_any_direction(edges):
    subjects, objects = np.array(edges, np.int64).reshape(-1, 2).T
    expected: Graph[int] = Graph(edges)
    expected.add_nodes_from(range(COUNT))

    labels = components(COUNT, subjects, objects).tolist()

    assert all(labels[node] == min(part) for part in connected_components(expected) for node in part)


# Functions that call each other, themselves, an imported name and an undefined name.
SAMPLE = {
    "a.py": "import os\n\n\ndef one():\n    one()\n    two()\n    os.getcwd()\n    nowhere()\n\n\n"
    "def two():\n    one()\n",
    "b.py": "from a import one, two\n\n\ndef three():\n    two()\n    one()\n    len([])\n",
    "c.md": "# Words\n\nCall `one` or `three`, see [the code](a.py).\n",
    "d.md": "# Alone\n\nNothing to see.\n",
}


def counted(graph: OpenGraph) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Count calls by kind of target and per hub, call by call."""
    kinds, hubs = Counter[str](), Counter[str]()
    for row in graph.edges.to_pylist():
        if row["predicate"] == "calls":
            kind = graph.types[row["object"]]
            kinds[kind if kind in {"external", "unresolved"} else "symbols"] += 1
            hubs.update([graph.ids[row["object"]]] if kind not in {"external", "unresolved"} else [])
    return dict(kinds), hubs.most_common(10)


def test_columns_are_counted_as_their_rows_are():
    graph = open_graphs({KEY: graph_of(SAMPLE)})

    found = statistics(graph)

    assert (found.calls, found.hubs) == counted(graph)
    assert set(found.calls) == {"symbols", "external", "unresolved"}
    assert found.nodes == dict(Counter(graph.types))
    assert [*found.nodes.values()] == sorted(found.nodes.values(), reverse=True)


def test_a_graph_without_what_proves_its_edges_has_the_same_statistics():
    graph = graph_of(SAMPLE)

    alone = open_graphs({KEY: graph}, evidence=())

    assert alone.edges.column_names == ["subject", "predicate", "object", "source"]
    assert statistics(alone) == statistics(open_graphs({KEY: graph}))


def test_there_are_statistics_of_no_graph():
    found = statistics(open_graphs({}))

    assert (found.calls, found.hubs, found.components, found.resolved) == ({}, [], 0, 1.0)
