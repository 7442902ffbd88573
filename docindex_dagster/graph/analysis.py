"""What a graph is like as a whole: how much is in it, how much is resolved, its hubs, parts and cycles."""

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
    """Counts over a graph."""

    nodes: dict[str, int]  # by type
    edges: dict[str, int]  # by predicate
    calls: dict[str, int]  # to symbols, to what is external, and unresolved
    resolved: float  # the share of calls that are not unresolved; 1 where there are none
    hubs: list[tuple[str, int]]  # the symbols that most others call, with their number
    components: int  # parts of the code and documents that no edge joins


def statistics(graph: OpenGraph) -> Statistics:
    """Count what there is."""
    types = graph.nodes["type"].combine_chunks().dictionary_encode()
    codes, kinds = types.indices.to_numpy(), types.dictionary.to_pylist()
    is_inside = np.array([kind not in {EXTERNAL, UNRESOLVED} for kind in kinds], bool)[codes]
    called = graph.objects[graph.chosen({"calls"})]
    calls = _calls(np.bincount(codes[called], minlength=len(kinds)).tolist(), kinds)
    return Statistics(
        nodes=_ranked(graph.nodes["type"]),
        edges={row["values"]: row["counts"] for row in pc.value_counts(graph.edges["predicate"]).to_pylist()},
        calls=calls,
        resolved=1 - calls.get(UNRESOLVED, 0) / max(1, len(called)),
        hubs=_hubs(graph, called[is_inside[called]]),
        components=_components(graph, is_inside),
    )


def _ranked(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs, the most frequent first."""
    found = pc.value_counts(column).to_pylist()
    return {row["values"]: row["counts"] for row in sorted(found, key=lambda row: -row["counts"])}


def _calls(reached: Sequence[int], kinds: Sequence[str]) -> dict[str, int]:
    """How many calls reach symbols, what is external, and what is unresolved, by how many reach each type of node."""
    found: Counter[str] = Counter()
    for kind, count in zip(kinds, reached, strict=True):
        found[kind if kind in {EXTERNAL, UNRESOLVED} else "symbols"] += count
    return {kind: count for kind, count in found.items() if count}


def _hubs(graph: OpenGraph, called: Numbers) -> list[tuple[str, int]]:
    """The symbols that are called most, with their callers; of equal ones those that are called first."""
    nodes, firsts, counts = np.unique(called, return_index=True, return_counts=True)
    best = np.lexsort((firsts, -counts))[:_HUBS]
    names = graph.nodes["id"].take(pa.array(nodes[best])).to_pylist()
    return list(zip(names, counts[best].tolist(), strict=True))


def _components(graph: OpenGraph, is_inside: NDArray[np.bool_]) -> int:
    """The number of components of the nodes that lie inside of sources, by a mask of shape (nodes,)."""
    kept = is_inside[graph.subjects] & is_inside[graph.objects]
    labels = components(len(is_inside), graph.subjects[kept], graph.objects[kept])
    return len(np.unique(labels[is_inside]))


def components(count: int, subjects: Numbers, objects: Numbers) -> Numbers:
    """The weakly connected component of each node, which is the lowest node in it: an array of shape (count,).

    It is found as by Shiloach and Vishkin (1982). scipy has such a function, too, and takes 140 MB.

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
