"""Walks from chunk to chunk along the graph: from where a search has found something to what hangs together with it.

A chunk is linked with those that define what it calls, inherits, uses or mentions, and they, less, with it. A walk that
begins anew at what was found, again and again, arrives most often at what many of these chunks lead to: personalised
PageRank (Page, Brin, Motwani and Winograd, 1999).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.graph.opened import OpenGraph
from docindex_dagster.graph.triple import CONCEPT

# How much each edge binds. Where something stands, and what a file imports, is in none: as benchmarks/quality shows,
# what is in one file is better known from the file, and these edges drown the others.
_BINDS = {
    "calls": 1.0,
    "inherits": 0.9,
    "implements": 0.9,
    "decorates": 0.7,
    "uses": 0.6,
    "references": 0.5,
    "mentions": 0.5,
    "links_to": 0.5,
}
_BACK = 0.5  # from a definition to all chunks that use it, together, beside a step from one of them to it
_MOST_SHARING = 20  # chunks that mention a concept: one that is all over the place says nothing
_GOES_ON = 0.5  # else the walk begins anew
_STEPS = 12  # after which what still moves is less than a thousandth


@dataclass(frozen=True, eq=False)
class Links:
    """Chunks by number, and how strongly each is linked to each: a sparse matrix, from the row to the column."""

    chunk_ids: list[str]
    weights: Any  # scipy.sparse.csr_array, float64, shape (chunks, chunks), no negative values

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each chunk."""
        return {chunk_id: number for number, chunk_id in enumerate(self.chunk_ids)}


def links(graph: OpenGraph) -> Links:
    """The links between all chunks in which something is defined or referred to."""
    from scipy.sparse import csr_array, diags_array

    defined_in, references_in = (table["chunk_id"].combine_chunks() for table in (graph.nodes, graph.edges))
    chunks = pc.unique(pa.concat_arrays([defined_in, references_in])).drop_null()
    nodes = np.arange(len(defined_in))
    shape = len(chunks), len(nodes)

    at, is_placed = _numbers(defined_in, chunks)
    homes = csr_array((np.ones(is_placed.sum()), (at[is_placed], nodes[is_placed])), shape)
    strengths = _strengths(graph)
    binds = strengths > 0
    at, _ = _numbers(references_in, chunks)
    reference = csr_array((strengths[binds], (at[binds], graph.objects[binds])), shape)
    sharing = reference.count_nonzero(axis=0)
    share = diags_array(1 / np.maximum(sharing, 1))
    # Nothing defines a concept: it is at home wherever it is mentioned.
    is_concept = np.asarray(pc.equal(graph.nodes["type"], CONCEPT)) & (sharing <= _MOST_SHARING)
    homes = homes + reference @ share @ diags_array(is_concept.astype(float))

    both = (reference @ homes.T + _BACK * (homes @ share @ reference.T)).tocoo()
    others = both.row != both.col
    square = len(chunks), len(chunks)
    return Links(chunks.to_pylist(), csr_array((both.data[others], (both.row[others], both.col[others])), square))


def walk(linked: Links, seeds: Mapping[str, float]) -> dict[str, float]:
    """How much of the walks that begin at some chunks arrives at each that is near: those, and what they lead to.

    Args:
        linked: the links of all chunks.
        seeds: how much begins at each chunk, of at least 0; only their proportions matter.

    Returns:
        Shares above 0, below 1 in sum. What only begins at a chunk does not count as arriving there.
    """
    known = {linked.numbers[chunk_id]: weight for chunk_id, weight in seeds.items() if chunk_id in linked.numbers}
    whole = sum(seeds.values())
    if not known or not whole:
        return {}
    near = np.union1d([*known], linked.weights[[*known]].indices)
    begin = np.array([known.get(number, 0.0) for number in near.tolist()]) / whole
    part = linked.weights[near][:, near]
    leaving = part.sum(axis=1)
    begin_again = (1 - _GOES_ON) * begin
    ranks = begin
    for _ in range(_STEPS):
        going = np.divide(ranks, leaving, out=np.zeros_like(ranks), where=leaving > 0)
        ranks = begin_again + _GOES_ON * (going @ part)
    reached = ranks - begin_again
    return {linked.chunk_ids[near[at]]: float(reached[at]) for at in np.flatnonzero(reached > 0).tolist()}


def _strengths(graph: OpenGraph) -> NDArray[np.float64]:
    """How much each edge binds, less where it was guessed: shape (edges,)."""
    predicates = graph.edges["predicate"].combine_chunks()
    of_each = np.array([_BINDS.get(name, 0.0) for name in predicates.dictionary.to_pylist()] or [0.0])
    strengths: NDArray[np.float64] = of_each[predicates.indices.to_numpy()] * graph.edges["confidence"].to_numpy()
    return strengths


def _numbers(names: pa.Array, among: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The position of each name, 0 for one that is missing, and which are not: both of shape (names,)."""
    found = pc.index_in(names, among)
    return pc.fill_null(found, 0).to_numpy().astype(np.int64), np.asarray(pc.is_valid(names))
