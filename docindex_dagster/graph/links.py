"""The links between chunks: which one defines what another calls, inherits, uses or mentions.

A chunk is linked with those that define what it refers to, and they, less, with it. A walk along the links that begins
anew at what a search has found, again and again, arrives most often at what many of these chunks lead to: personalised
PageRank (Page, Brin, Motwani and Winograd, 1999).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.graph.source_graph import CONCEPT

if TYPE_CHECKING:
    from docindex_dagster.graph.open_graph import OpenGraph

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
# Raise the number when the same graph files give other links, also by how they are opened as one.
LINKS_VERSION = digest_parts("2", repr((_BINDS, _BACK, _MOST_SHARING)))

Numbers = NDArray[np.int64]  # of chunks, or of places in an array: shape (n,)
Weights = NDArray[np.float64]  # shape (n,)
_GOES_ON = 0.5  # else the walk begins anew
_STEPS = 12  # after which what still moves is less than a thousandth


@dataclass(frozen=True, eq=False)
class Links:
    """Chunks by number, and how strongly each is linked to each: a sparse matrix, a row after the other (CSR).

    Attributes:
        chunk_ids: an Arrow array of shape (chunks,).
        begins: where the links of each chunk begin, and where the last one ends: shape (chunks + 1,).
        targets: the number of the chunk that each link leads to: shape (links,).
        weights: how strong each link is, above 0: shape (links,).
    """

    chunk_ids: pa.Array
    begins: NDArray[np.int32]
    targets: NDArray[np.int32]
    weights: Weights

    def numbers(self, chunk_ids: Mapping[str, float]) -> dict[int, float]:
        """Values of chunks by their numbers, without those of chunks that have no links."""
        asked = pc.index_in(self.chunk_ids, pa.array([*chunk_ids], pa.string()))  # a table of the few: quick to make
        found = np.flatnonzero(asked.is_valid())
        values = [*chunk_ids.values()]
        return {number: values[asked[number].as_py()] for number in found.tolist()}

    def leaving(self, chunks: Numbers) -> tuple[Numbers, Numbers, Weights]:
        """The links that leave some chunks: the position of their chunk among these, their targets and weights."""
        begins, ends = (self.begins[at].astype(np.int64) for at in (chunks, chunks + 1))
        of, links = _spread(begins, ends - begins)
        return of, self.targets[links].astype(np.int64), self.weights[links]


class _Entries(NamedTuple):
    """What is not 0 in a sparse matrix: by its row, its column and its value, each of shape (entries,) (COO)."""

    row: Numbers
    column: Numbers
    value: Weights

    def taken(self, which: NDArray[np.bool_]) -> "_Entries":
        """Some of these."""
        return _Entries(self.row[which], self.column[which], self.value[which])


def links(graph: "OpenGraph") -> Links:
    """The links between all chunks in which something is defined or referred to."""
    defined_in, references_in = (table["chunk_id"].combine_chunks() for table in (graph.nodes, graph.edges))
    chunks = pc.unique(pa.concat_arrays([defined_in, references_in])).drop_null()
    nodes = len(defined_in)
    at, is_placed = _numbers(defined_in, chunks)
    home, defined = at[is_placed], np.flatnonzero(is_placed)
    strengths = _strengths(graph)
    binds = strengths > 0
    at, _ = _numbers(references_in, chunks)
    references = _summed(_Entries(at[binds], graph.objects[binds], strengths[binds]), nodes)
    sharing = np.bincount(references.column, minlength=nodes)
    share = 1 / np.maximum(sharing, 1)
    # Nothing defines a concept: it is at home wherever it is mentioned.
    is_concept = np.asarray(pc.equal(graph.nodes["type"], CONCEPT)) & (sharing <= _MOST_SHARING)
    mentions = references.taken(is_concept[references.column])
    homes = _Entries(
        np.concatenate([home, mentions.row]),
        np.concatenate([defined, mentions.column]),
        np.concatenate([np.ones(len(home)), mentions.value * share[mentions.column]]),
    )
    user, definer, node, strength = _met(references, homes, nodes)
    others = user != definer
    user, definer, node, strength = user[others], definer[others], node[others], strength[others]
    return links_of(
        chunks,
        np.concatenate([user, definer]),
        np.concatenate([definer, user]),
        np.concatenate([strength, _BACK * strength * share[node]]),
    )


def _met(references: _Entries, homes: _Entries, nodes: int) -> tuple[Numbers, Numbers, Numbers, Weights]:
    """Each reference with each home of its node: the chunk of either, the node, and the product of their values.

    Summed by the chunks, it is the product of one sparse matrix and the other, transposed.
    """
    by_node = np.argsort(homes.column, kind="stable")
    counts = np.bincount(homes.column, minlength=nodes)
    begins = np.cumsum(counts) - counts
    reference, home = _spread(begins[references.column], counts[references.column])
    home = by_node[home]
    strength = references.value[reference] * homes.value[home]
    return references.row[reference], homes.row[home], references.column[reference], strength


def _spread(begins: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """For ranges that begin somewhere and have so many places: the number of the range of each place, and the place."""
    of = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return of, np.arange(len(of)) + (begins - before)[of]


def _summed(entries: _Entries, columns: int) -> _Entries:
    """Entries in the order of their rows and columns, those of one place in the matrix as their sum."""
    places, of_each = np.unique(entries.row * columns + entries.column, return_inverse=True)
    value = np.bincount(of_each, entries.value, len(places)).astype(np.float64)  # integers, where there is none
    return _Entries(places // columns, places % columns, value)


def links_of(chunk_ids: pa.Array, start: Numbers, target: Numbers, weights: Weights) -> Links:
    """Links with weights above 0 that lead from one number of a chunk to another: those of a pair are one in sum."""
    summed = _summed(_Entries(start, target, weights), len(chunk_ids))
    begins = np.searchsorted(summed.row, np.arange(len(chunk_ids) + 1))
    return Links(chunk_ids, begins.astype(np.int32), summed.column.astype(np.int32), summed.value)


def _strengths(graph: "OpenGraph") -> Weights:
    """How much each edge binds, less where it was guessed: shape (edges,)."""
    predicates = graph.edges["predicate"].combine_chunks()
    of_each = np.array([_BINDS.get(name, 0.0) for name in predicates.dictionary.to_pylist()] or [0.0])
    strengths: Weights = of_each[predicates.indices.to_numpy()] * graph.edges["confidence"].to_numpy()
    return strengths


def _numbers(names: pa.Array, among: pa.Array) -> tuple[Numbers, NDArray[np.bool_]]:
    """The position of each name, 0 for one that is missing, and which are not: both of shape (names,)."""
    found = pc.index_in(names, among)
    return pc.fill_null(found, 0).to_numpy().astype(np.int64), np.asarray(pc.is_valid(names))


def walk(linked: Links, seeds: Mapping[str, float]) -> dict[str, float]:
    """How much of the walks that begin at some chunks arrives at each that is near: those, and what they lead to.

    Args:
        linked: the links of all chunks.
        seeds: how much begins at each chunk, of at least 0; only their proportions matter.

    Returns:
        Shares above 0, below 1 in sum. What only begins at a chunk does not count as arriving there.
    """
    whole = sum(seeds.values())
    known = linked.numbers(seeds) if whole else {}
    if not known:
        return {}
    begun = np.array([*known])
    near = np.union1d(begun, linked.leaving(begun)[1])
    begin = np.array([known.get(number, 0.0) for number in near.tolist()]) / whole
    start, target, weight = linked.leaving(near)
    end = np.searchsorted(near, target).clip(max=len(near) - 1)
    is_near = near[end] == target  # where a link leads further, it is not followed
    start, end, weight = start[is_near], end[is_near], weight[is_near]
    chance = weight / np.bincount(start, weight, len(near))[start]
    begin_again = (1 - _GOES_ON) * begin
    ranks = begin
    for _ in range(_STEPS):
        ranks = begin_again + _GOES_ON * np.bincount(end, ranks[start] * chance, len(near))
    reached = ranks - begin_again
    found = np.flatnonzero(reached > 0)
    return dict(zip(linked.chunk_ids.take(near[found]).to_pylist(), reached[found].tolist(), strict=True))
