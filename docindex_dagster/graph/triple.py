"""Nodes and triples while they are made, and the tables that they become."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.schemas import NODES, TRIPLES

FROM_PARSE = "parse"
"""How an edge was found that the source text says: nothing was guessed."""

EXTERNAL, UNRESOLVED = "external", "unresolved"
PACKAGE, MENTION, LINK = "package", "mention", "link"
CONCEPT = "concept"
ANCHOR, LABEL = ANCHORS = "anchor", "label"
"""The types of nodes that stand for names of places, until graphs are opened: in one file, in all files of a source."""

SHARED = (EXTERNAL, CONCEPT)
"""The types of nodes that belong to no source."""

OUTSIDE = (EXTERNAL, UNRESOLVED, PACKAGE, MENTION, LINK, CONCEPT)
"""The types of nodes that no file of the source defines."""


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
    """Nodes as a table."""
    return _table(nodes, NODES)


def triple_table(triples: Sequence[Triple]) -> pa.Table:
    """Triples as a table."""
    return _table(triples, TRIPLES)


def outside_nodes(triples: pa.Table) -> pa.Table:
    """The nodes to which triples of one source lead and that no file of it defines, sorted by name."""
    ends = (triples.select([end, f"{end}_type"]).rename_columns(["node", "type"]) for end in ("object", "subject"))
    outside = pa.concat_tables([table.filter(pc.is_in(table["type"], pa.array(OUTSIDE))) for table in ends])
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
