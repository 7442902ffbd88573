"""Nodes and triples of a source, made from its chunks alone.

Node ids: a file is its path; a symbol `path::qualified.name`; a section `path#Heading > Subheading`; a module that is
imported `module:NAME`, as it is written: to which file it leads is for resolution to say.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.schemas import COMMIT, NODES, TRIPLES

# Raise it when the same chunks give another graph.
GRAPH_VERSION = "2"
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
_MODULE = "module"


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
    source: str | None
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

    The chunks are sorted by path. Rows are sorted by path too, and the nodes of modules come last.
    """
    return _assembled(_extract(chunks))


def update_graph(previous: Graph, chunks: pa.Table, is_new: pa.ChunkedArray) -> Graph:
    """The same graph as `build_graph(chunks)`, with the rows of files that have no new chunk taken from `previous`.

    Args:
        previous: the graph of what the source held before.
        chunks: what it holds now.
        is_new: one boolean a chunk: it was not held before in this form.
    """
    is_touched = pc.is_in(chunks["path"], pc.unique(chunks["path"].filter(is_new)))
    untouched = pc.unique(chunks["path"].filter(pc.invert(is_touched)))
    kept = Graph(*(table.filter(pc.is_in(table["path"], untouched)) for table in (previous.nodes, previous.triples)))
    return _assembled(kept, _extract(chunks.filter(is_touched)))


def _extract(chunks: pa.Table) -> Graph:
    """What each file says, one file independent of the others; without the nodes of modules, which files share."""
    nodes: list[_Node] = []
    triples: list[_Triple] = []
    for path, rows in groupby(_rows(chunks), key=itemgetter("path")):
        in_file, edges = _file(path, list(rows))
        nodes += in_file
        triples += edges
    return Graph(_table(nodes, NODES), _table(triples, TRIPLES))


def _file(path: str, rows: list[dict[str, Any]]) -> tuple[Iterable[_Node], Iterable[_Triple]]:
    nodes = {path: _node(rows[0], path, "file", path)}
    triples: dict[tuple[str, str, str], _Triple] = {}
    for row in rows:
        for symbol in row["symbols"] or ():
            name = f"{path}::{symbol['qualified_name']}"
            nodes.setdefault(name, _node(row, name, symbol["kind"], symbol["name"]))
    for row in rows:
        for node, triple in (*_symbols(row, nodes), *_sections(row)):
            nodes.setdefault(node.node, node)
            triples.setdefault((triple.subject, triple.predicate, triple.object), triple)
        for triple in _imports(row):
            triples.setdefault((triple.subject, triple.predicate, triple.object), triple)
    return nodes.values(), triples.values()


def _assembled(*parts: Graph) -> Graph:
    """Parts without a common file as one graph, sorted by path, with a node for each module that is imported."""
    nodes, triples = (
        _by_path(pa.concat_tables(tables))
        for tables in zip(*((part.nodes, part.triples) for part in parts), strict=True)
    )
    modules = pc.unique(triples["object"].filter(pc.equal(triples["object_type"], _MODULE))).sort()
    source = triples["source"][0].as_py() if len(modules) else None
    names = pc.utf8_slice_codeunits(modules, len(_module_node("")))
    of_modules = [
        _Node(node, _MODULE, name, source, None, None)
        for node, name in zip(modules.to_pylist(), names.to_pylist(), strict=True)
    ]
    return Graph(pa.concat_tables([nodes, _table(of_modules, NODES)]).combine_chunks(), triples.combine_chunks())


def _by_path(table: pa.Table) -> pa.Table:
    """Sorted by path, the rows of a file in the order in which they were found."""
    order = pa.table({"path": table["path"], "position": np.arange(table.num_rows)})
    return table.take(pc.sort_indices(order, sort_keys=[("path", "ascending"), ("position", "ascending")]))


def _rows(chunks: pa.Table) -> Iterator[dict[str, Any]]:
    of_files = chunks.select(_NEEDED).filter(pc.not_equal(chunks["source_type"], COMMIT))
    for batch in of_files.to_batches(max_chunksize=4096):
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


def _imports(row: dict[str, Any]) -> Iterator[_Triple]:
    """The file imports modules; its first chunk is the evidence, since imports are known for the file as a whole."""
    if row["chunk_index"]:
        return
    for module in row["imports"] or ():
        node = _Node(_module_node(module), _MODULE, module, row["source"], None, None)
        yield _triple(row, (row["path"], "file"), "imports", node, row["start_line"], resolution=_AS_WRITTEN)


def _module_node(name: str) -> str:
    return f"module:{name}"


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


def _table(items: Sequence[_Node] | Sequence[_Triple], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([getattr(item, field.name) for item in items], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
