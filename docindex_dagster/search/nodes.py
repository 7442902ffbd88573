"""What the graph calls a place that a user typed as other commands print it: a path with a line, a chunk, a section."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.references import Reference, parse
from docindex_dagster.search.lookup import look_up
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.graph.opened import OpenGraph


def node_name(
    reader: Reader, graph: "OpenGraph", text: str, readings: Sequence[Reference] = (), usual: Sequence[str] = ()
) -> str:
    """Return the name of the node at an indexed place; of what is no such place, the name that the graph looks for.

    Args:
        reader: the index that the graph is of.
        graph: what is asked.
        text: what the user typed.
        readings: what it may mean; none for all that `core.references` reads in it.
        usual: the sources of a text that names none.

    Raises:
        QueryError: the place is in several sources.
    """
    if text in graph.numbers:
        return text
    for reading in readings or parse(text, reader.generation.sources):
        if not reading.path and not reading.id:
            if reading.source:
                return f"{reading.source}!{reading.symbol}"
            continue
        try:
            _, rows = look_up(reader, [reading], usual=usual)
        except QueryError:
            continue
        by_source = {row["source"]: [one for one in rows if one["source"] == row["source"]] for row in rows}
        nodes = [node for of_source in by_source.values() if (node := _node(graph, reading, of_source))]
        if len(nodes) > 1:
            raise QueryError(f"{text!r} is in several sources; name one of {', '.join(sorted(nodes))}")
        if nodes:
            return nodes[0]
    return text


def _node(graph: "OpenGraph", reading: Reference, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost node of the graph around what a reading names in a file; empty where there is none."""
    first = rows[0]
    file = f"{first['source']}!{first['path']}"
    if reading == Reference(reading.path, reading.source):
        return file if file in graph.numbers else ""
    names = [f"{file}{mark}{reading.symbol}" for mark in ("::", "#") if reading.symbol]
    symbols = [symbol for row in rows for symbol in row["symbols"] or () if not symbol.get("is_local")]
    if reading.symbol:
        qualified = (symbol["qualified_name"] for symbol in symbols)
        names += [f"{file}::{name}" for name in qualified if name.endswith(f".{reading.symbol}")]
    if reading.lines:
        start, end = sorted(reading.lines)
        around = [one for one in symbols if one["start_line"] <= start and end <= one["end_line"]]
        around.sort(key=lambda one: one["end_line"] - one["start_line"])
        names += [f"{file}::{symbol['qualified_name']}" for symbol in around]
    names += [f"{file}::{row['qualified_name']}" for row in rows if _is_all(reading, row) and row["qualified_name"]]
    titles = graph.section_at(first["source"], first["path"], reading.lines[0] if reading.lines else first["end_line"])
    return next((name for name in (*names, titles, file) if name in graph.numbers), "")


def _is_all(reading: Reference, row: Mapping[str, Any]) -> bool:
    """Whether a chunk was named itself, or its lines."""
    return reading.lines is None or reading.lines == (row["start_line"], row["end_line"])
