"""Graph of one source: its nodes and triples, their tables, and the rules they satisfy.

Readers of a graph can import this module without loading the code that builds one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.tabling import TIME_OUT
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import NODES, TRIPLES

# Increase it when the same chunks and references yield a different graph.
GRAPH_VERSION = "18"

FROM_PARSE = "parse"
"""The resolution of an edge that the source text states directly."""

EXTERNAL, UNRESOLVED = "external", "unresolved"
PACKAGE, MENTION, LINK = "package", "mention", "link"
CONCEPT = "concept"
ANCHOR, LABEL = ANCHORS = "anchor", "label"
"""Node types that stand for named locations until graphs are opened: in one file, and in all files of a source."""

SHARED = (EXTERNAL, CONCEPT)
"""Node types that belong to no source."""

OUTSIDE_TYPES = (EXTERNAL, UNRESOLVED, PACKAGE, MENTION, LINK, CONCEPT)
"""Node types that no file of the source defines."""
NODES_TABLE, TRIPLES_TABLE = "graph_nodes", "graph_triples"
"""Names of the tables that store the nodes and triples of a graph."""
UNREADABLE = "configuration: "
"""Prefix of the problem of an unreadable file that configures imports; the edges of the file itself are complete."""
CHUNKS_DIGITS = 32
"""Length of the prefix of `made_from` that identifies the chunks of a file."""
EDGES_PROVED = "edges_have_their_chunk"
GRAPH_RULES = {EDGES_PROVED: "Every edge of the graph has the chunk that proves it."}


class Node(NamedTuple):
    """A row of NODES."""

    node: str
    type: str
    name: str
    source: str
    path: str | None = None
    chunk_id: str | None = None
    made_from: str | None = None
    offers: Sequence[int] | None = None
    fingerprints: Sequence[int] | None = None
    depends: Sequence[int] | None = None
    problem: str | None = None
    unread: str | None = None


class Triple(NamedTuple):
    """A row of TRIPLES."""

    subject: str
    subject_type: str
    predicate: str
    object: str
    object_type: str
    source: str
    path: str
    chunk_id: str
    line: int
    confidence: float = 1.0
    resolution: str = FROM_PARSE


def node_table(nodes: Sequence[Node]) -> pa.Table:
    """Return nodes as a table."""
    return _table(nodes, NODES)


def triple_table(triples: Sequence[Triple]) -> pa.Table:
    """Return triples as a table."""
    return _table(triples, TRIPLES)


def outside_nodes(triples: pa.Table) -> pa.Table:
    """Return the endpoints of one source's triples that no file of the source defines, sorted by name."""
    ends = (triples.select([end, f"{end}_type"]).rename_columns(["node", "type"]) for end in ("object", "subject"))
    outside = pa.concat_tables([table.filter(pc.is_in(table["type"], pa.array(OUTSIDE_TYPES))) for table in ends])
    outside = outside.group_by(["node", "type"]).aggregate([]).sort_by("node")
    names = pc.replace_substring_regex(outside["node"], "^[^:]*:", "", max_replacements=1)
    columns = {
        "node": outside["node"],
        "type": outside["type"],
        "name": pc.if_else(pc.equal(names, ""), outside["node"], names),
        "source": pa.repeat(triples["source"][0] if outside.num_rows else "", outside.num_rows),
    }
    filled = [columns.get(field.name, pa.nulls(outside.num_rows, field.type)) for field in NODES]
    return pa.Table.from_arrays(filled, schema=NODES)


def _table(rows: Sequence[Node] | Sequence[Triple], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def made_from(row_hashes: Iterable[str], references: str) -> str:
    """Identify the inputs of a file: its chunks, then the version of its references."""
    return digest_parts(*row_hashes) + references


@dataclass(frozen=True, slots=True)
class Graph:
    """Contribution of one source to the graph: tables with the schemas NODES and TRIPLES."""

    nodes: pa.Table
    triples: pa.Table

    @property
    def is_settled(self) -> bool:
        """Whether the same chunks would yield the same graph again: no file timed out."""
        return not any(problem.startswith(TIME_OUT) for problem in self.problems.values())

    @property
    def problems(self) -> dict[str, str]:
        """Why some files have only the edges to their definitions, by path."""
        return {path: problem for path, problem in self._raw_problems().items() if not problem.startswith(UNREADABLE)}

    @property
    def unreadable(self) -> dict[str, str]:
        """Why configurations of imports cannot be read, by path."""
        return {
            path: problem.removeprefix(UNREADABLE)
            for path, problem in self._raw_problems().items()
            if problem.startswith(UNREADABLE)
        }

    def _raw_problems(self) -> dict[str, str]:
        rows = self.nodes.filter(pc.is_valid(self.nodes["problem"]))
        return dict(zip(rows["path"].to_pylist(), rows["problem"].to_pylist(), strict=True))

    @property
    def files(self) -> int:
        """Number of files."""
        return pc.sum(pc.equal(self.nodes["type"], "file"), min_count=0).as_py() or 0


def verify_graph(graph: Graph, chunks: pa.Table) -> None:
    """Check the graph of a source against its chunks.

    Raises:
        VerificationError: The graph breaks a rule.
    """
    if strays := stray_edges(graph, chunks):
        raise VerificationError("knowledge_graph", {EDGES_PROVED: strays})


def stray_edges(graph: Graph, chunks: pa.Table) -> str:
    """Return what is wrong with edges that lack their chunk or a node, or "" if every edge has all three."""
    unproved = pc.invert(pc.is_in(graph.triples["chunk_id"], chunks["chunk_id"]))
    for column in ("subject", "object"):
        unproved = pc.or_(unproved, pc.invert(pc.is_in(graph.triples[column], graph.nodes["node"])))
    strays = graph.triples.filter(unproved)
    if not strays.num_rows:
        return ""
    first = strays.slice(0, 1).select(["subject", "predicate", "object"]).to_pylist()[0]
    return f"{strays.num_rows} edges without their chunk or node, first {' '.join(first.values())}"
