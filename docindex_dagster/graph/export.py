"""A graph, or what is near a node of it, for other programs: GraphML, JSON and Mermaid."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import orjson

from docindex_dagster.core.safe_text import escaped, escaped_in_xml, in_line
from docindex_dagster.graph.analysis import as_networkx
from docindex_dagster.graph.open_graph import OpenGraph

_MOST_IN_A_PICTURE = 400  # edges: Mermaid draws no more


class Format(StrEnum):
    """What a graph can be written as."""

    GRAPHML = "graphml"
    JSON = "json"
    MERMAID = "mermaid"
    SCIP = "scip"  # in `scip/exporting.py`, since it is of one source, and no text


def export(graph: OpenGraph, form: Format) -> Iterator[str]:
    """The text of a whole graph, in pieces."""
    if form is Format.JSON:
        yield escaped(orjson.dumps(_as_json(graph)).decode())
    elif form is Format.MERMAID:
        yield from _mermaid(graph)
    else:
        from networkx.readwrite.graphml import GraphMLWriter

        opened = as_networkx(graph)
        for _, attributes in opened.nodes(data=True):
            _without_nothing(attributes)
        for *_, attributes in opened.edges(data=True):
            _without_nothing(attributes)
        text = escaped_in_xml(str(GraphMLWriter(opened, prettyprint=False)))
        yield text.replace("><", ">\n<")  # values hold neither: in them, both are escaped
        yield "\n"


def _as_json(graph: OpenGraph) -> dict[str, Any]:
    """Nodes and links, as networkx and d3 read them."""
    links = graph.edges.to_pylist()
    for link in links:
        link["source_key"] = link["source"]
        link["source"], link["target"] = graph.ids[link.pop("subject")], graph.ids[link.pop("object")]
    nodes = graph.nodes.to_pylist()
    return {"directed": True, "multigraph": True, "nodes": nodes, "links": links}


def _without_nothing(attributes: dict[str, Any]) -> None:
    """GraphML has no null, and no numbers without a fixed type."""
    for name, value in [*attributes.items()]:
        if value is None:
            del attributes[name]
        elif not isinstance(value, str | int | float):
            attributes[name] = str(value)


def _mermaid(graph: OpenGraph) -> Iterator[str]:
    """A flowchart of the first edges; what lies outside the sources is left out."""
    yield "flowchart LR\n"
    drawn: set[int] = set()
    inside = [
        edge
        for edge in range(len(graph.subjects))
        if graph.types[int(graph.objects[edge])] not in {"external", "unresolved"}
        and graph.edges["predicate"][edge].as_py() != "defined_in"
    ]
    for edge in inside[:_MOST_IN_A_PICTURE]:
        for node in (int(graph.subjects[edge]), int(graph.objects[edge])):
            if node not in drawn:
                drawn.add(node)
                yield f'  n{node}["{_label(graph.ids[node])}"]\n'
        predicate = graph.edges["predicate"][edge].as_py()
        yield f"  n{int(graph.subjects[edge])} -->|{predicate}| n{int(graph.objects[edge])}\n"
    if len(inside) > _MOST_IN_A_PICTURE:
        yield f"  %% {len(inside) - _MOST_IN_A_PICTURE} further edges are left out\n"


def _label(identifier: str) -> str:
    name = in_line(identifier.partition("!")[2] or identifier)
    return "".join(_ESCAPES.get(character, character) for character in name)


_ESCAPES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;"}


def near(graph: OpenGraph, nodes: Iterable[int], depth: int) -> OpenGraph:
    """The part of a graph that lies within some edges of some nodes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = {*nodes}
    level = kept
    for _ in range(depth):
        edges = [edge for node in level for edge in (*graph.leaving(node), *graph.reaching(node))]
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
