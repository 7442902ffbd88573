"""The rules that every graph keeps."""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.graph.source_graph import Graph

PROVED = "edges_have_their_chunk"
GRAPH_RULES = {PROVED: "No edge of the graph is without the chunk that proves it."}


def verify_graph(graph: Graph, chunks: pa.Table) -> None:
    """Check the graph of a source against its chunks.

    Raises:
        VerificationError: a rule is broken.
    """
    if strays := stray_edges(graph, chunks):
        raise VerificationError("knowledge_graph", {PROVED: strays})


def stray_edges(graph: Graph, chunks: pa.Table) -> str:
    """An empty string when every edge is proved by a chunk and joins known nodes, else what is wrong."""
    unproved = pc.invert(pc.is_in(graph.triples["chunk_id"], chunks["chunk_id"]))
    for column in ("subject", "object"):
        unproved = pc.or_(unproved, pc.invert(pc.is_in(graph.triples[column], graph.nodes["node"])))
    strays = graph.triples.filter(unproved)
    if not strays.num_rows:
        return ""
    first = strays.slice(0, 1).select(["subject", "predicate", "object"]).to_pylist()[0]
    return f"{strays.num_rows} edges without their chunk or node, first {' '.join(first.values())}"
