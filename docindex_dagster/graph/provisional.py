"""The part of the previous graph of a source that holds for its new chunks, until their own graph is extracted."""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.schemas import COMMIT, NODES, TRIPLES
from docindex_dagster.graph.extraction import Extraction, version_of
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.graph.source_graph import CHUNKS_DIGITS, UNREADABLE, Graph, made_from
from docindex_dagster.graph.triple import OUTSIDE, outside_nodes

_NOTHING = Graph(NODES.empty_table(), TRIPLES.empty_table())


def provisional(previous: Extraction | None, chunks: pa.Table, plan: GraphPlan) -> Extraction:
    """Return the rows of the previous graph that hold for new chunks, and how many files are yet to be linked.

    These rows are of files whose chunks are the same. Their edges are those of the previous graph, but for edges to
    nodes of other files that changed or are gone. A file that lost an edge counts as one to be linked.

    Args:
        previous: what an earlier run made; of another plan, nothing is taken over.
        chunks: all of the source, as their stage gives them.
        plan: what goes into the graph; one that wants no graph gives an extraction that is complete.
    """
    version = version_of(chunks)
    if not plan.is_wanted:
        return Extraction(None, plan.fingerprint, version)
    files = _files(chunks)
    if previous is None or previous.graph is None or previous.plan != plan.fingerprint:
        return Extraction(_NOTHING, plan.fingerprint, version, unlinked=len(files))
    same = _unchanged(previous.graph.nodes, files)
    graph, cut = _restricted(previous.graph, same, chunks["chunk_id"])
    unlinked = len(files) - len(same) + len(cut)
    return Extraction(graph, plan.fingerprint, version, unlinked=unlinked, taken_from=previous.version)


def _files(chunks: pa.Table) -> dict[str, str]:
    """By path, what identifies the chunks of a file in what its node was made from."""
    columns = chunks.select(["path", "row_hash", "source_type"])
    columns = columns.filter(pc.not_equal(columns["source_type"], COMMIT))
    by_path: dict[str, list[str]] = {}
    for path, row_hash in zip(columns["path"].to_pylist(), columns["row_hash"].to_pylist(), strict=True):
        by_path.setdefault(path, []).append(row_hash)
    return {path: made_from(hashes, "") for path, hashes in by_path.items()}


def _unchanged(nodes: pa.Table, files: dict[str, str]) -> pa.Array:
    """The paths of files that have the chunks that their nodes were made from, and all their edges."""
    columns = nodes.select(["path", "made_from", "problem"]).filter(pc.equal(nodes["type"], "file"))
    has_edges = pc.starts_with(pc.fill_null(columns["problem"], UNREADABLE), UNREADABLE)
    columns = columns.filter(has_edges)
    now = pa.array([files.get(path) for path in columns["path"].to_pylist()], pa.string())
    is_same = pc.equal(pc.utf8_slice_codeunits(columns["made_from"], 0, CHUNKS_DIGITS), now)
    return columns["path"].filter(is_same).combine_chunks()


def _restricted(graph: Graph, paths: pa.Array, chunk_ids: pa.ChunkedArray) -> tuple[Graph, pa.Array]:
    """The graph of some of its files alone, and those of them that have edges to other files."""
    nodes = graph.nodes.filter(pc.is_in(graph.nodes["path"], paths))
    triples = graph.triples.filter(pc.is_in(graph.triples["path"], paths))
    is_whole = pc.is_in(triples["chunk_id"], chunk_ids)
    for end in ("subject", "object"):
        is_known = pc.or_(pc.is_in(triples[f"{end}_type"], pa.array(OUTSIDE)), pc.is_in(triples[end], nodes["node"]))
        is_whole = pc.and_(is_whole, is_known)
    cut = pc.unique(triples["path"].filter(pc.invert(is_whole)))
    triples = triples.filter(is_whole)
    return Graph(pa.concat_tables([nodes, outside_nodes(triples)]).combine_chunks(), triples.combine_chunks()), cut
