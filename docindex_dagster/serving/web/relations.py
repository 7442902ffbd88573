"""Code related to some lines of a file: their symbol, its callers and callees, and similar chunks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import queries
from docindex_dagster.graph.lookup import SYMBOL_MARK
from docindex_dagster.graph.queries import Step
from docindex_dagster.operations.view import View
from docindex_dagster.render.html import links
from docindex_dagster.render.html.pictures import Neighbour
from docindex_dagster.search.file_text import Definition, FileText
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Hit
from docindex_dagster.search.similar import similar
from docindex_dagster.stores.reader import Reader

_MAX_SYMBOLS = 12  # listed for the marked lines
_MAX_ALIKE = 6


@dataclass(frozen=True, slots=True)
class Relations:
    """The code related to some lines."""

    symbol: str | None
    symbols: tuple[str, ...]  # all symbols in the lines
    callers: tuple[Neighbour, ...]
    callees: tuple[Neighbour, ...]
    elsewhere: tuple[str, ...]  # called names that are not in the index
    alike: tuple[Hit, ...]
    unlinked_files: str = ""  # a sentence with the number of files that are not linked yet


_NOTHING = Relations(None, (), (), (), (), ())


def around(
    settings: Settings, reader: Reader, file: FileText, lines: tuple[int, int] | None, symbol: str = ""
) -> Relations:
    """Return the code related to lines of a file, or to one of its symbols."""
    if lines is None:
        return _NOTHING
    names = symbols_at(file.definitions, *lines)
    chosen = symbol if symbol in {definition.name for definition in file.definitions} else next(iter(names), None)
    alike = _alike(reader, file, lines[0])
    if chosen is None:
        return Relations(None, names, (), (), (), alike)
    node = f"{file.source}!{file.path}{SYMBOL_MARK}{chosen}"
    graph = View(settings, reader, is_local=False).graph(())
    if node not in graph.numbers:
        return Relations(chosen, names, (), (), (), alike, graph.unlinked_files)
    callers = _neighbours(queries.callers(graph, node), _caller)
    callees = _neighbours(queries.callees(graph, node), _callee)
    known = tuple(callee for callee in callees if callee.href)
    elsewhere = tuple(sorted({callee.name for callee in callees if not callee.href}))
    return Relations(chosen, names, callers, known, elsewhere, alike, graph.unlinked_files)


def symbols_at(definitions: Sequence[Definition], start: int, end: int) -> tuple[str, ...]:
    """Return the symbols of some lines: those that start within them, else the innermost one around them."""
    symbols = [definition for definition in definitions if definition.kind is not None]
    started = [symbol.name for symbol in symbols if start <= symbol.start_line <= end]
    if started:
        return tuple(dict.fromkeys(started))[:_MAX_SYMBOLS]
    enclosing = [symbol for symbol in symbols if symbol.start_line <= start <= symbol.end_line]
    return (max(enclosing, key=lambda symbol: (symbol.start_line, -symbol.end_line)).name,) if enclosing else ()


def lines_of(definitions: Sequence[Definition], symbol: str) -> tuple[int, int] | None:
    """Return the lines of a symbol or heading in a file; None if it does not exist."""
    return next(((found.start_line, found.end_line) for found in definitions if found.name == symbol), None)


def _neighbours(steps: Iterable[Step], convert: Callable[[Step], Neighbour]) -> tuple[Neighbour, ...]:
    """Return one neighbor per symbol, in the order of the first calls."""
    found: dict[str, Neighbour] = {}
    counts: dict[str, int] = {}
    for step in steps:
        neighbour = convert(step)
        key = f"{neighbour.path} {neighbour.name}"
        found.setdefault(key, neighbour)
        counts[key] = counts.get(key, 0) + 1
    return tuple(replace(neighbour, calls=counts[key]) for key, neighbour in found.items())


def _caller(step: Step) -> Neighbour:
    """Return the caller, linked to the line of the call."""
    _, path, name = _parts(step.subject)
    href = links.to_file(step.source, step.path, step.line, symbol=name) if step.line else None
    return Neighbour(name or path, step.path, step.place, href, step.resolution, step.confidence >= 1, 1)


def _callee(step: Step) -> Neighbour:
    """Return the callee, linked to its definition."""
    source, path, name = _parts(step.object)
    is_here = bool(source and name) and step.type not in {"external", "unresolved"}
    href = links.to_file(source, path, symbol=name) if is_here else None
    label = name or path.rpartition(":")[2]
    return Neighbour(label, path if is_here else "", path, href, step.resolution, step.confidence >= 1, 1)


def _parts(node: str) -> tuple[str, str, str]:
    """Return the source, path and qualified name of a node; empty where it has none."""
    source, mark, rest = node.partition("!")
    source, rest = (source, rest) if mark else ("", node)
    path, mark, name = rest.partition(SYMBOL_MARK)
    return source, path, name.partition("~")[0] if mark else ""


def _alike(reader: Reader, file: FileText, line: int) -> tuple[Hit, ...]:
    """Return chunks in other files that are similar to the chunk at a line."""
    chunk = next((span.chunk_id for span in file.chunks if span.start_line <= line <= span.end_line), None)
    if chunk is None:
        return ()
    try:
        return tuple(similar(reader, chunk, filters=Filters(), top_k=_MAX_ALIKE))
    except QueryError:
        return ()
