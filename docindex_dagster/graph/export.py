"""Export of a graph, or the neighborhood of a node, to GraphML, JSON and Mermaid."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import orjson

from docindex_dagster.core.safe_text import escape_json, escape_xml, on_one_line
from docindex_dagster.graph.analysis import as_networkx
from docindex_dagster.graph.open_graph import OpenGraph

_MAX_MERMAID_EDGES = 400  # edges; Mermaid draws no more


class Format(StrEnum):
    """Export formats for graphs."""

    GRAPHML = "graphml"
    JSON = "json"
    MERMAID = "mermaid"
    SCIP = "scip"  # written by `scip/exporting.py`: it covers one source and is binary


def export(graph: OpenGraph, form: Format) -> Iterator[str]:
    """Yield the text of a graph in pieces."""
    if form is Format.JSON:
        yield escape_json(orjson.dumps(_as_json(graph)).decode())
    elif form is Format.MERMAID:
        yield from _mermaid(graph)
    else:
        from networkx.readwrite.graphml import GraphMLWriter

        opened = as_networkx(graph)
        for _, attributes in opened.nodes(data=True):
            _make_graphml_safe(attributes)
        for *_, attributes in opened.edges(data=True):
            _make_graphml_safe(attributes)
        text = escape_xml(str(GraphMLWriter(opened, prettyprint=False)))
        yield text.replace("><", ">\n<")  # safe, because values escape both characters
        yield "\n"


def _as_json(graph: OpenGraph) -> dict[str, Any]:
    """Return nodes and links in the format of networkx and d3."""
    links = graph.edges.to_pylist()
    for link in links:
        link["source_key"] = link["source"]
        link["source"], link["target"] = graph.ids[link.pop("subject")], graph.ids[link.pop("object")]
    nodes = graph.nodes.to_pylist()
    return {"directed": True, "multigraph": True, "nodes": nodes, "links": links}


def _make_graphml_safe(attributes: dict[str, Any]) -> None:
    """Remove nulls, which GraphML lacks, and turn values without a GraphML type into text."""
    for name, value in [*attributes.items()]:
        if value is None:
            del attributes[name]
        elif not isinstance(value, str | int | float):
            attributes[name] = str(value)


def _mermaid(graph: OpenGraph) -> Iterator[str]:
    """Yield a flowchart of the first edges, without nodes outside the sources."""
    yield "flowchart LR\n"
    drawn: set[int] = set()
    inside = [
        edge
        for edge in range(len(graph.subjects))
        if graph.types[int(graph.objects[edge])] not in {"external", "unresolved"}
        and graph.edges["predicate"][edge].as_py() != "defined_in"
    ]
    for edge in inside[:_MAX_MERMAID_EDGES]:
        for node in (int(graph.subjects[edge]), int(graph.objects[edge])):
            if node not in drawn:
                drawn.add(node)
                yield f'  n{node}["{_label(graph.ids[node])}"]\n'
        predicate = graph.edges["predicate"][edge].as_py()
        yield f"  n{int(graph.subjects[edge])} -->|{predicate}| n{int(graph.objects[edge])}\n"
    if len(inside) > _MAX_MERMAID_EDGES:
        yield f"  %% {len(inside) - _MAX_MERMAID_EDGES} more edges omitted\n"


def _label(identifier: str) -> str:
    name = on_one_line(identifier.partition("!")[2] or identifier)
    return "".join(_ESCAPES.get(character, character) for character in name)


_ESCAPES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;"}


def near(graph: OpenGraph, nodes: Iterable[int], depth: int) -> OpenGraph:
    """Return the subgraph within some number of edges of some nodes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = {*nodes}
    level = kept
    for _ in range(depth):
        edges = [edge for node in level for edge in (*graph.leaving(node), *graph.incoming_edges(node))]
        level = {int(end[edge]) for edge in edges for end in (graph.subjects, graph.objects)} - kept
        kept |= level
    numbers = np.array(sorted(kept), np.int64)
    inside = np.isin(graph.subjects, numbers) & np.isin(graph.objects, numbers)
    edges = graph.edges.filter(pa.array(inside))
    known = pa.array(numbers)
    for end in ("subject", "object"):
        position = pc.index_in(edges[end].cast(pa.int64()), known)
        edges = edges.set_column(edges.schema.get_field_index(end), end, position)
    return OpenGraph(graph.nodes.take(known), edges.combine_chunks())
