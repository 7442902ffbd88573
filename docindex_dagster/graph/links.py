"""Weighted links between chunks that define symbols and chunks that call, inherit, use or mention them.

A chunk links to the definitions it refers to and, more weakly, they link back to it. A random walk that restarts at
the search hits arrives most often at chunks that many hits link to: personalized PageRank (Page, Brin, Motwani and
Winograd, 1999).
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

# Weights of edges by predicate. Containment and imports have none: as benchmarks/quality shows, the file itself is
# better evidence of what belongs together, and these edges would drown out the others.
_PREDICATE_WEIGHTS = {
    "calls": 1.0,
    "inherits": 0.9,
    "implements": 0.9,
    "decorates": 0.7,
    "uses": 0.6,
    "references": 0.5,
    "mentions": 0.5,
    "links_to": 0.5,
}
# Total weight of the links from a definition back to its users, relative to one link to the definition.
_BACKLINK_WEIGHT = 0.5
_MAX_CONCEPT_CHUNKS = 20  # chunks that may mention a concept; a more common concept is not informative
# Increase the number when the same graph files yield different links, including through how they are opened.
LINKS_VERSION = digest_parts("2", repr((_PREDICATE_WEIGHTS, _BACKLINK_WEIGHT, _MAX_CONCEPT_CHUNKS)))

Numbers = NDArray[np.int64]  # of chunks, or positions in an array: shape (n,)
Weights = NDArray[np.float64]  # shape (n,)
_DAMPING = 0.5  # probability of following a link rather than restarting
_STEPS = 12  # by then, less than a thousandth is still moving


@dataclass(frozen=True, eq=False)
class Links:
    """Weighted links between numbered chunks: a sparse matrix in CSR format.

    Attributes:
        chunk_ids: An Arrow array of shape (chunks,).
        begins: Where the links of each chunk begin, and where the last ones end: shape (chunks + 1,).
        targets: The target chunk number of each link: shape (links,).
        weights: The weight of each link, above 0: shape (links,).
    """

    chunk_ids: pa.Array
    begins: NDArray[np.int32]
    targets: NDArray[np.int32]
    weights: Weights

    def numbers(self, chunk_ids: Mapping[str, float]) -> dict[int, float]:
        """Return the values by chunk number, without chunks that have no links."""
        positions = pc.index_in(self.chunk_ids, pa.array([*chunk_ids], pa.string()))  # hashes the few, which is fast
        found = np.flatnonzero(positions.is_valid())
        values = [*chunk_ids.values()]
        return {number: values[positions[number].as_py()] for number in found.tolist()}

    def leaving(self, chunks: Numbers) -> tuple[Numbers, Numbers, Weights]:
        """Return the links that leave some chunks: the position of their chunk in `chunks`, targets and weights."""
        begins, ends = (self.begins[at].astype(np.int64) for at in (chunks, chunks + 1))
        range_numbers, links = _expand_ranges(begins, ends - begins)
        return range_numbers, self.targets[links].astype(np.int64), self.weights[links]


class _Entries(NamedTuple):
    """Nonzero entries of a sparse matrix in COO format; each array has shape (entries,)."""

    row: Numbers
    column: Numbers
    value: Weights

    def select(self, which: NDArray[np.bool_]) -> "_Entries":
        """Return the entries that a mask selects."""
        return _Entries(self.row[which], self.column[which], self.value[which])


def links(graph: "OpenGraph") -> Links:
    """Return the links between all chunks that define or refer to something."""
    defined_in, references_in = (table["chunk_id"].combine_chunks() for table in (graph.nodes, graph.edges))
    chunks = pc.unique(pa.concat_arrays([defined_in, references_in])).drop_null()
    nodes = len(defined_in)
    at, is_placed = _positions(defined_in, chunks)
    home, defined = at[is_placed], np.flatnonzero(is_placed)
    strengths = _edge_weights(graph)
    has_weight = strengths > 0
    at, _ = _positions(references_in, chunks)
    references = _sum_duplicates(_Entries(at[has_weight], graph.objects[has_weight], strengths[has_weight]), nodes)
    sharing = np.bincount(references.column, minlength=nodes)
    share = 1 / np.maximum(sharing, 1)
    # No chunk defines a concept, so every chunk that mentions it counts as its home.
    is_concept = np.asarray(pc.equal(graph.nodes["type"], CONCEPT)) & (sharing <= _MAX_CONCEPT_CHUNKS)
    mentions = references.select(is_concept[references.column])
    homes = _Entries(
        np.concatenate([home, mentions.row]),
        np.concatenate([defined, mentions.column]),
        np.concatenate([np.ones(len(home)), mentions.value * share[mentions.column]]),
    )
    user, definer, node, strength = _join(references, homes, nodes)
    others = user != definer
    user, definer, node, strength = user[others], definer[others], node[others], strength[others]
    return make_links(
        chunks,
        np.concatenate([user, definer]),
        np.concatenate([definer, user]),
        np.concatenate([strength, _BACKLINK_WEIGHT * strength * share[node]]),
    )


def _join(references: _Entries, homes: _Entries, nodes: int) -> tuple[Numbers, Numbers, Numbers, Weights]:
    """Join references with the homes of their nodes: user chunk, home chunk, node, and product of the values.

    Summed per chunk pair, this is the product of one sparse matrix and the transpose of the other.
    """
    by_node = np.argsort(homes.column, kind="stable")
    counts = np.bincount(homes.column, minlength=nodes)
    begins = np.cumsum(counts) - counts
    reference, home = _expand_ranges(begins[references.column], counts[references.column])
    home = by_node[home]
    strength = references.value[reference] * homes.value[home]
    return references.row[reference], homes.row[home], references.column[reference], strength


def _expand_ranges(begins: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Expand ranges, given their begins and sizes: the range number of each position, and the position itself."""
    range_numbers = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return range_numbers, np.arange(len(range_numbers)) + (begins - before)[range_numbers]


def _sum_duplicates(entries: _Entries, columns: int) -> _Entries:
    """Sort entries by row and column, and sum duplicates."""
    places, of_each = np.unique(entries.row * columns + entries.column, return_inverse=True)
    value = np.bincount(of_each, entries.value, len(places)).astype(np.float64)  # bincount gives integers if empty
    return _Entries(places // columns, places % columns, value)


def make_links(chunk_ids: pa.Array, start: Numbers, target: Numbers, weights: Weights) -> Links:
    """Return links between chunk numbers, with weights above 0; the weights of duplicate links are summed."""
    summed = _sum_duplicates(_Entries(start, target, weights), len(chunk_ids))
    begins = np.searchsorted(summed.row, np.arange(len(chunk_ids) + 1))
    return Links(chunk_ids, begins.astype(np.int32), summed.column.astype(np.int32), summed.value)


def _edge_weights(graph: "OpenGraph") -> Weights:
    """Return the weight of each edge, reduced by its confidence: shape (edges,)."""
    predicates = graph.edges["predicate"].combine_chunks()
    of_each = np.array([_PREDICATE_WEIGHTS.get(name, 0.0) for name in predicates.dictionary.to_pylist()] or [0.0])
    strengths: Weights = of_each[predicates.indices.to_numpy()] * graph.edges["confidence"].to_numpy()
    return strengths


def _positions(names: pa.Array, among: pa.Array) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the position of each name, 0 if it is null, and which names are not null; both of shape (names,)."""
    found = pc.index_in(names, among)
    return pc.fill_null(found, 0).to_numpy().astype(np.int64), np.asarray(pc.is_valid(names))


def walk(linked: Links, seeds: Mapping[str, float]) -> dict[str, float]:
    """Return the share of random walks from seed chunks that arrive at each chunk: seeds and the chunks they link to.

    Args:
        linked: The links of all chunks.
        seeds: The weight of each seed chunk, at least 0; only proportions matter.

    Returns:
        Shares above 0, with a sum below 1. Starting at a chunk does not count as arriving there.
    """
    total = sum(seeds.values())
    known = linked.numbers(seeds) if total else {}
    if not known:
        return {}
    seeded = np.array([*known])
    near = np.union1d(seeded, linked.leaving(seeded)[1])
    begin = np.array([known.get(number, 0.0) for number in near.tolist()]) / total
    start, target, weight = linked.leaving(near)
    end = np.searchsorted(near, target).clip(max=len(near) - 1)
    is_near = near[end] == target  # links that lead further away are not followed
    start, end, weight = start[is_near], end[is_near], weight[is_near]
    chance = weight / np.bincount(start, weight, len(near))[start]
    restart = (1 - _DAMPING) * begin
    ranks = begin
    for _ in range(_STEPS):
        ranks = restart + _DAMPING * np.bincount(end, ranks[start] * chance, len(near))
    reached = ranks - restart
    found = np.flatnonzero(reached > 0)
    return dict(zip(linked.chunk_ids.take(near[found]).to_pylist(), reached[found].tolist(), strict=True))
