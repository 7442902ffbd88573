"""Combined graph of all sources: numbered nodes, and the edges that leave and reach each.

References between sources are resolved here: external names that another source defines, and mentions in documents.
So the graph of one source never depends on the run of another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.schemas import NODES, TRIPLES
from docindex_dagster.graph.cross_references import resolve_document_references, resolve_external_names
from docindex_dagster.graph.failures import unread_files
from docindex_dagster.graph.source_graph import SHARED, Graph

_Numbers = NDArray[np.int64]  # shape (n,)
EVIDENCE = ("path", "chunk_id", "line", "confidence", "resolution")
"""Columns that prove an edge."""
# Columns needed to resolve the endpoints of an edge.
_ENDPOINT_COLUMNS = ("subject", "subject_type", "predicate", "object", "object_type", "source")


@dataclass(frozen=True, eq=False)
class OpenGraph:
    """Graph for traversal.

    A node is a number; its name is `SOURCE!NODE`, so that names from different sources do not clash. External names
    and concepts belong to no source and have no prefix.
    """

    nodes: pa.Table  # id, and the columns of NODES that describe a node
    edges: pa.Table  # subject and object as numbers, predicate, source, and the evidence columns
    unlinked_files: str = ""  # a sentence on how many files are not linked yet; "" if all are

    @cached_property
    def ids(self) -> list[str]:
        """Names of all nodes."""
        found: list[str] = self.nodes["id"].to_pylist()
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Node numbers by name."""
        return {name: number for number, name in enumerate(self.ids)}

    @cached_property
    def types(self) -> list[str]:
        """Types of all nodes."""
        found: list[str] = self.nodes["type"].to_pylist()
        return found

    @cached_property
    def unread_files(self) -> str:
        """How many files no answer covers, and why; "" for none."""
        return unread_files(self.nodes)

    @cached_property
    def has_several_sources(self) -> bool:
        """Whether there are edges of more than one source."""
        return len(pc.unique(self.edges["source"])) > 1

    @cached_property
    def subjects(self) -> _Numbers:
        """Subject of each edge: shape (edges,)."""
        return self._column("subject")

    @cached_property
    def objects(self) -> _Numbers:
        """Object of each edge: shape (edges,)."""
        return self._column("object")

    def _column(self, name: str) -> _Numbers:
        values: _Numbers = self.edges[name].to_numpy().astype(np.int64)
        return values

    def chosen(self, predicates: Iterable[str]) -> NDArray[np.bool_]:
        """Return a mask of the edges with one of some predicates: booleans of shape (edges,)."""
        mask = pc.is_in(self.edges["predicate"], pa.array(list(predicates), pa.string()))
        found: NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
        return found

    def section_at(self, source: str, path: str, line: int) -> str:
        """Return the name of the document section that contains a line, or "" if there is none."""
        mask = self.chosen({"has_section"})
        for column, value in (("source", source), ("path", path)):
            mask &= pc.equal(self.edges[column], value).to_numpy(zero_copy_only=False)
        edges = np.flatnonzero(mask & (pc.fill_null(self.edges["line"], 0).to_numpy() <= line))
        if not len(edges):
            return ""
        lines = self.edges["line"].take(pa.array(edges)).to_numpy()
        return self.ids[int(self.objects[edges[np.argmax(lines)]])]

    @cached_property
    def _leaving(self) -> tuple[_Numbers, _Numbers]:
        return _grouped(self.subjects, len(self.ids))

    @cached_property
    def _reaching(self) -> tuple[_Numbers, _Numbers]:
        return _grouped(self.objects, len(self.ids))

    def leaving(self, node: int) -> _Numbers:
        """Return the numbers of the edges that leave a node: shape (leaving,)."""
        begins, order = self._leaving
        return order[begins[node] : begins[node + 1]]

    def incoming_edges(self, node: int) -> _Numbers:
        """Return the numbers of the edges that reach a node: shape (reaching,)."""
        begins, order = self._reaching
        return order[begins[node] : begins[node + 1]]


def open_graphs(graphs: Mapping[str, Graph], evidence: Sequence[str] = EVIDENCE) -> OpenGraph:
    """Combine the graphs of some sources, by key, with all or some of the columns that prove edges."""
    columns = [*_ENDPOINT_COLUMNS, *evidence]
    tables = [graph.triples.select(columns) for graph in graphs.values()] or [TRIPLES.empty_table().select(columns)]
    nodes = _deduplicate(
        pa.concat_tables([_nodes(graph.nodes) for graph in graphs.values()] or [_nodes(NODES.empty_table())])
    )
    triples = pa.concat_tables([_with_node_names(table) for table in tables])
    if len(graphs) > 1:
        nodes, triples = resolve_external_names(nodes, triples)
    nodes, triples = resolve_document_references(nodes, triples)
    known = nodes["id"].combine_chunks()
    edges = pa.table(
        {
            "subject": pc.index_in(triples["subject"], known),
            "predicate": triples["predicate"].combine_chunks().dictionary_encode(),
            "object": pc.index_in(triples["object"], known),
            "source": triples["source"],
            **{name: triples[name] for name in evidence},
        }
    )
    return OpenGraph(nodes.combine_chunks(), edges.combine_chunks())


def _nodes(table: pa.Table) -> pa.Table:
    names = _node_names(table, "node", "type")
    columns = table.select(["type", "name", "source", "path", "chunk_id", "node"]).add_column(0, "id", names)
    for name in ("problem", "unread"):  # indexes written by earlier versions may lack these columns
        values = table[name] if name in table.column_names else pa.nulls(table.num_rows, pa.string())
        columns = columns.append_column(name, values)
    return columns


def _deduplicate(nodes: pa.Table) -> pa.Table:
    """Return nodes without duplicates of shared ones."""
    first = pc.index_in(pc.unique(nodes["id"]), nodes["id"])
    return nodes.take(first)


def _with_node_names(table: pa.Table) -> pa.Table:
    """Return triples whose endpoints are names of nodes."""
    for end in ("subject", "object"):
        names = _node_names(table, end, f"{end}_type")
        table = table.set_column(table.schema.get_field_index(end), end, names)
    return table.replace_schema_metadata(None)


def _node_names(table: pa.Table, node: str, kind: str) -> pa.ChunkedArray:
    """Return the names of nodes, unique across sources."""
    own = pc.binary_join_element_wise(table["source"], table[node], "!")
    return pc.if_else(pc.is_in(table[kind], pa.array(SHARED)), table[node], own)


def _grouped(ends: _Numbers, count: int) -> tuple[_Numbers, _Numbers]:
    """Group edges by node: where each group begins, shape (count + 1,), and the edges in order, shape (edges,)."""
    order = np.argsort(ends, kind="stable")
    begins = np.searchsorted(ends[order], np.arange(count + 1))
    return begins, order


def rows_of(table: pa.Table, numbers: Sequence[int] | _Numbers) -> list[dict[str, object]]:
    """Return some rows of a table as dictionaries."""
    found: list[dict[str, object]] = table.take(pa.array(numbers, pa.int64())).to_pylist()
    return found
