"""The links between chunks: which one defines what another calls, inherits, uses or mentions.

A chunk is linked with those that define what it refers to, and they, less, with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.graph.triple import CONCEPT

if TYPE_CHECKING:
    from docindex_dagster.graph.opened import OpenGraph

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
LINKS_VERSION = digest_parts("1", repr((_BINDS, _BACK, _MOST_SHARING)))

Numbers = NDArray[np.int64]  # of chunks, or of places in an array: shape (n,)
Weights = NDArray[np.float64]  # shape (n,)


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
        counts = ends - begins
        of = np.repeat(np.arange(len(chunks)), counts)
        before = np.cumsum(counts) - counts
        links = np.arange(len(of)) + (begins - before)[of]
        return of, self.targets[links].astype(np.int64), self.weights[links]


def links(graph: "OpenGraph") -> Links:
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
    return links_of(chunks, csr_array((both.data[others], (both.row[others], both.col[others])), square))


def links_of(chunk_ids: pa.Array, matrix: Any) -> Links:
    """The links that a matrix of scipy holds, in CSR form and of shape (chunks, chunks), without negative values."""
    matrix.eliminate_zeros()
    return Links(chunk_ids, matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data)


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
