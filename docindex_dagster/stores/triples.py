"""Nodes and triples of a source, made from its chunks alone.

Node ids: a file is its path; a symbol `path::qualified.name`; a section `path#Heading > Subheading`; a module that is
imported `module:NAME`, as it is written: to which file it leads is for resolution to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pyarrow as pa

from docindex_dagster.schemas import NODES, TRIPLES

_NEEDED = (
    "chunk_id",
    "source",
    "path",
    "start_line",
    "source_type",
    "symbols",
    "imports",
    "heading_path",
    "chunk_index",
)
_FROM_PARSE = "parse"  # read off the source text: nothing was guessed
_AS_WRITTEN = "as written"


@dataclass(frozen=True, slots=True)
class Graph:
    """What one source adds to the graph: tables of the schemas NODES and TRIPLES."""

    nodes: pa.Table
    triples: pa.Table


@dataclass(frozen=True, slots=True)
class _Node:
    node: str
    type: str
    name: str
    source: str
    path: str | None
    chunk_id: str | None


@dataclass(frozen=True, slots=True)
class _Triple:
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
    resolution: str = _FROM_PARSE


def build_graph(chunks: pa.Table) -> Graph:
    """The edges `defines`, `contains`, `imports` and `has_section`, each with the first chunk that proves it.

    The chunks are sorted by path.
    """
    nodes: dict[str, _Node] = {}
    triples: dict[tuple[str, str, str], _Triple] = {}
    for path, rows in groupby(_rows(chunks), key=itemgetter("path")):
        of_file = list(rows)
        nodes[path] = _node(of_file[0], path, "file", path)
        for row in of_file:
            for symbol in row["symbols"] or ():
                name = f"{path}::{symbol['qualified_name']}"
                nodes.setdefault(name, _node(row, name, symbol["kind"], symbol["name"]))
        for row in of_file:
            for node, triple in (*_symbols(row, nodes), *_imports(row), *_sections(row)):
                nodes.setdefault(node.node, node)
                triples.setdefault((triple.subject, triple.predicate, triple.object), triple)
    return Graph(_table(nodes.values(), NODES), _table(triples.values(), TRIPLES))


def _rows(chunks: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in chunks.select(_NEEDED).to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def _symbols(row: dict[str, Any], known: dict[str, _Node]) -> Iterator[tuple[_Node, _Triple]]:
    """The file defines each symbol; an enclosing symbol contains it."""
    for symbol in row["symbols"] or ():
        node = known[f"{row['path']}::{symbol['qualified_name']}"]
        line = symbol["start_line"]
        yield node, _triple(row, (row["path"], "file"), "defines", node, line)
        parent = f"{row['path']}::{symbol['parent']}"
        if symbol["parent"] and parent in known:
            yield node, _triple(row, (parent, known[parent].type), "contains", node, line)


def _imports(row: dict[str, Any]) -> Iterator[tuple[_Node, _Triple]]:
    """The file imports modules; its first chunk is the evidence, since imports are known for the file as a whole."""
    if row["chunk_index"]:
        return
    for module in row["imports"] or ():
        node = _Node(f"module:{module}", "module", module, row["source"], None, None)
        triple = _triple(row, (row["path"], "file"), "imports", node, row["start_line"], resolution=_AS_WRITTEN)
        yield node, triple


def _sections(row: dict[str, Any]) -> Iterator[tuple[_Node, _Triple]]:
    """The file, or the section around it, has each section of a heading path."""
    headings = row["heading_path"] or ()
    ids = [row["path"], *(f"{row['path']}#{' > '.join(headings[: depth + 1])}" for depth in range(len(headings)))]
    for (parent, child), heading in zip(pairwise(ids), headings, strict=True):
        node = _node(row, child, "section", heading)
        kind = "file" if parent == row["path"] else "section"
        yield node, _triple(row, (parent, kind), "has_section", node, row["start_line"])


def _node(row: dict[str, Any], node: str, kind: str, name: str) -> _Node:
    return _Node(node, kind, name, row["source"], row["path"], row["chunk_id"])


def _triple(
    row: dict[str, Any],
    subject: tuple[str, str],
    predicate: str,
    target: _Node,
    line: int,
    *,
    resolution: str = _FROM_PARSE,
) -> _Triple:
    """An edge from `subject`, a node and its type, to `target`, proved by the chunk `row`."""
    name, kind = subject
    return _Triple(
        subject=name,
        subject_type=kind,
        predicate=predicate,
        object=target.node,
        object_type=target.type,
        source=row["source"],
        path=row["path"],
        chunk_id=row["chunk_id"],
        line=line,
        resolution=resolution,
    )


def _table(items: Any, schema: pa.Schema) -> pa.Table:
    items = list(items)
    columns = [pa.array([getattr(item, field.name) for item in items], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
