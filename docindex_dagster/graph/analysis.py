"""Statistics of a graph: its size, share of resolved calls, hubs, components and import cycles."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.graph.links import Numbers
from docindex_dagster.graph.open_graph import OpenGraph
from docindex_dagster.graph.source_graph import EXTERNAL, UNRESOLVED

if TYPE_CHECKING:
    from networkx import MultiDiGraph

_HUBS = 10


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a graph."""

    nodes: dict[str, int]  # by type
    edges: dict[str, int]  # by predicate
    calls: dict[str, int]  # to symbols, to external names, and unresolved
    resolved: float  # share of calls that are resolved; 1 if there are no calls
    hubs: list[tuple[str, int]]  # most called symbols, with their number of callers
    components: int  # connected components of the code and documents


def statistics(graph: OpenGraph) -> Statistics:
    """Compute the statistics of a graph."""
    types = graph.nodes["type"].combine_chunks().dictionary_encode()
    codes, kinds = types.indices.to_numpy(), types.dictionary.to_pylist()
    is_inside = np.array([kind not in {EXTERNAL, UNRESOLVED} for kind in kinds], bool)[codes]
    called = graph.objects[graph.chosen({"calls"})]
    calls = _calls(np.bincount(codes[called], minlength=len(kinds)).tolist(), kinds)
    return Statistics(
        nodes=_count_values(graph.nodes["type"]),
        edges={row["values"]: row["counts"] for row in pc.value_counts(graph.edges["predicate"]).to_pylist()},
        calls=calls,
        resolved=1 - calls.get(UNRESOLVED, 0) / max(1, len(called)),
        hubs=_hubs(graph, called[is_inside[called]]),
        components=_components(graph, is_inside),
    )


def _count_values(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the values of a column, most frequent first."""
    found = pc.value_counts(column).to_pylist()
    return {row["values"]: row["counts"] for row in sorted(found, key=lambda row: -row["counts"])}


def _calls(reached: Sequence[int], kinds: Sequence[str]) -> dict[str, int]:
    """Count calls to symbols, external names and unresolved names, from the counts per node type."""
    found: Counter[str] = Counter()
    for kind, count in zip(kinds, reached, strict=True):
        found[kind if kind in {EXTERNAL, UNRESOLVED} else "symbols"] += count
    return {kind: count for kind, count in found.items() if count}


def _hubs(graph: OpenGraph, called: Numbers) -> list[tuple[str, int]]:
    """Return the most called symbols with their call counts; ties go to the symbol called first."""
    nodes, firsts, counts = np.unique(called, return_index=True, return_counts=True)
    best = np.lexsort((firsts, -counts))[:_HUBS]
    names = graph.nodes["id"].take(pa.array(nodes[best])).to_pylist()
    return list(zip(names, counts[best].tolist(), strict=True))


def _components(graph: OpenGraph, is_inside: NDArray[np.bool_]) -> int:
    """Count the components of the nodes inside sources, which a mask of shape (nodes,) selects."""
    kept = is_inside[graph.subjects] & is_inside[graph.objects]
    labels = components(len(is_inside), graph.subjects[kept], graph.objects[kept])
    return len(np.unique(labels[is_inside]))


def components(count: int, subjects: Numbers, objects: Numbers) -> Numbers:
    """Return the weakly connected component of each node, labeled by its lowest node: an array of shape (count,).

    The algorithm follows Shiloach and Vishkin (1982). scipy has one, too, but takes 140 MB.

    Args:
        count: The number of nodes.
        subjects: The subjects of the edges: shape (edges,).
        objects: The objects of the edges: shape (edges,).
    """
    labels = np.arange(count)
    while (labels[subjects] != labels[objects]).any():
        ends = labels[subjects], labels[objects]
        np.minimum.at(labels, np.maximum(*ends), np.minimum(*ends))
        while (labels[labels] != labels).any():
            labels = labels[labels]
    return labels


def module_cycles(graph: OpenGraph) -> list[list[str]]:
    """Return the groups of files that import each other, directly or indirectly: sorted, largest group first."""
    from networkx import DiGraph, strongly_connected_components

    files: DiGraph[str] = DiGraph()
    for edge in np.flatnonzero(graph.chosen({"imports"})).tolist():
        importer, imported = int(graph.subjects[edge]), int(graph.objects[edge])
        if graph.types[importer] == graph.types[imported] == "file":
            files.add_edge(graph.ids[importer], graph.ids[imported])
    found = [sorted(group) for group in strongly_connected_components(files) if len(group) > 1]
    return sorted(found, key=lambda group: (-len(group), group))


def as_networkx(graph: OpenGraph) -> "MultiDiGraph[str]":
    """Return the graph as a networkx graph, with node names and edge predicates as keys."""
    from networkx import MultiDiGraph

    opened: MultiDiGraph[str] = MultiDiGraph()
    opened.add_nodes_from((row["id"], row) for row in graph.nodes.to_pylist())
    for row in graph.edges.to_pylist():
        subject, target = graph.ids[row.pop("subject")], graph.ids[row.pop("object")]
        opened.add_edge(subject, target, key=row["predicate"], **row)
    return opened
