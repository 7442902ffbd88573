"""What a graph is like as a whole: how much is in it, how much is resolved, its hubs, parts and cycles."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from docindex_dagster.graph.links import Numbers
from docindex_dagster.graph.opened import OpenGraph
from docindex_dagster.graph.triple import EXTERNAL, UNRESOLVED

if TYPE_CHECKING:
    from networkx import MultiDiGraph

_HUBS = 10


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts over a graph."""

    nodes: dict[str, int]  # by type
    edges: dict[str, int]  # by predicate
    calls: dict[str, int]  # to symbols, to what is external, and unresolved
    resolved: float  # the share of calls that are not unresolved; 1 where there are none
    hubs: list[tuple[str, int]]  # the symbols that most others call, with their number
    components: int  # parts of the code and documents that no edge joins


def statistics(graph: OpenGraph) -> Statistics:
    """Count what there is."""
    calls = np.flatnonzero(graph.chosen({"calls"}))
    reached = [graph.types[node] for node in graph.objects[calls].tolist()]
    kinds = Counter(kind if kind in {EXTERNAL, UNRESOLVED} else "symbols" for kind in reached)
    callers = Counter(
        node
        for node, kind in zip(graph.objects[calls].tolist(), reached, strict=True)
        if kind not in {EXTERNAL, UNRESOLVED}
    )
    return Statistics(
        nodes=dict(Counter(graph.types).most_common()),
        edges={row["values"]: row["counts"] for row in pc.value_counts(graph.edges["predicate"]).to_pylist()},
        calls=dict(kinds),
        resolved=1 - kinds[UNRESOLVED] / max(1, len(calls)),
        hubs=[(graph.ids[node], count) for node, count in callers.most_common(_HUBS)],
        components=_components(graph),
    )


def _components(graph: OpenGraph) -> int:
    inside = np.array([kind not in {EXTERNAL, UNRESOLVED} for kind in graph.types], bool)
    kept = inside[graph.subjects] & inside[graph.objects]
    labels = components(len(inside), graph.subjects[kept], graph.objects[kept])
    return len(np.unique(labels[inside]))


def components(count: int, subjects: Numbers, objects: Numbers) -> Numbers:
    """The weakly connected component of each node, which is the lowest node in it: an array of shape (count,).

    It is found as by Shiloach and Vishkin (1982). scipy has such a function, too, and takes longer to load than this to
    run.

    Args:
        count: of nodes.
        subjects: where the edges begin: shape (edges,).
        objects: where they end: shape (edges,).
    """
    labels = np.arange(count)
    while (labels[subjects] != labels[objects]).any():
        ends = labels[subjects], labels[objects]
        np.minimum.at(labels, np.maximum(*ends), np.minimum(*ends))
        while (labels[labels] != labels).any():
            labels = labels[labels]
    return labels


def module_cycles(graph: OpenGraph) -> list[list[str]]:
    """The groups of files that import each other, directly or through others; each group sorted, the largest first."""
    from networkx import DiGraph, strongly_connected_components

    files: DiGraph[str] = DiGraph()
    for edge in np.flatnonzero(graph.chosen({"imports"})).tolist():
        importer, imported = int(graph.subjects[edge]), int(graph.objects[edge])
        if graph.types[importer] == graph.types[imported] == "file":
            files.add_edge(graph.ids[importer], graph.ids[imported])
    found = [sorted(group) for group in strongly_connected_components(files) if len(group) > 1]
    return sorted(found, key=lambda group: (-len(group), group))


def as_networkx(graph: OpenGraph) -> "MultiDiGraph[str]":
    """The graph for networkx: nodes by their names, edges by their predicates."""
    from networkx import MultiDiGraph

    opened: MultiDiGraph[str] = MultiDiGraph()
    opened.add_nodes_from((row["id"], row) for row in graph.nodes.to_pylist())
    for row in graph.edges.to_pylist():
        subject, target = graph.ids[row.pop("subject")], graph.ids[row.pop("object")]
        opened.add_edge(subject, target, key=row["predicate"], **row)
    return opened
