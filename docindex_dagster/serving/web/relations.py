"""What is around some lines of a file: the symbol they are of, who calls it, what it calls, and what resembles them."""

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

_MOST_SYMBOLS = 12  # of the marked lines that are named
_MOST_LIKE = 6


@dataclass(frozen=True, slots=True)
class Relations:
    """What is around some lines."""

    symbol: str | None
    symbols: tuple[str, ...]  # all that the lines hold
    callers: tuple[Neighbour, ...]
    callees: tuple[Neighbour, ...]
    elsewhere: tuple[str, ...]  # names that are called, and are not in the index
    alike: tuple[Hit, ...]
    unlinked_files: str = ""  # how many files are not linked yet, as a sentence


_NOTHING = Relations(None, (), (), (), (), ())


def around(
    settings: Settings, reader: Reader, file: FileText, lines: tuple[int, int] | None, symbol: str = ""
) -> Relations:
    """What is around lines of a file, or around one of its symbols."""
    if lines is None:
        return _NOTHING
    names = symbols_at(file.definitions, *lines)
    chosen = symbol if symbol in {one.name for one in file.definitions} else next(iter(names), None)
    alike = _alike(reader, file, lines[0])
    if chosen is None:
        return Relations(None, names, (), (), (), alike)
    node = f"{file.source}!{file.path}{SYMBOL_MARK}{chosen}"
    graph = View(settings, reader, is_local=False).graph(())
    if node not in graph.numbers:
        return Relations(chosen, names, (), (), (), alike, graph.unlinked_files)
    calling = _neighbours(queries.callers(graph, node), _caller)
    called = _neighbours(queries.callees(graph, node), _callee)
    known = tuple(one for one in called if one.href)
    elsewhere = tuple(sorted({one.name for one in called if not one.href}))
    return Relations(chosen, names, calling, known, elsewhere, alike, graph.unlinked_files)


def symbols_at(definitions: Sequence[Definition], start: int, end: int) -> tuple[str, ...]:
    """The symbols that lines are of: those that begin in them, else the innermost one around."""
    symbols = [one for one in definitions if one.kind is not None]
    begun = [one.name for one in symbols if start <= one.start_line <= end]
    if begun:
        return tuple(dict.fromkeys(begun))[:_MOST_SYMBOLS]
    around_it = [one for one in symbols if one.start_line <= start <= one.end_line]
    return (max(around_it, key=lambda one: (one.start_line, -one.end_line)).name,) if around_it else ()


def lines_of(definitions: Sequence[Definition], symbol: str) -> tuple[int, int] | None:
    """The lines of a symbol or heading of a file."""
    return next(((one.start_line, one.end_line) for one in definitions if one.name == symbol), None)


def _neighbours(steps: Iterable[Step], made: Callable[[Step], Neighbour]) -> tuple[Neighbour, ...]:
    """One for each symbol, in the order of the first calls."""
    found: dict[str, Neighbour] = {}
    counts: dict[str, int] = {}
    for step in steps:
        one = made(step)
        key = f"{one.path} {one.name}"
        found.setdefault(key, one)
        counts[key] = counts.get(key, 0) + 1
    return tuple(replace(one, calls=counts[key]) for key, one in found.items())


def _caller(step: Step) -> Neighbour:
    """Who calls, and the line of the call."""
    _, path, name = _parts(step.subject)
    href = links.to_file(step.source, step.path, step.line, symbol=name) if step.line else None
    return Neighbour(name or path, step.path, step.place, href, step.resolution, step.confidence >= 1, 1)


def _callee(step: Step) -> Neighbour:
    """What is called, and where it is defined."""
    source, path, name = _parts(step.object)
    is_here = bool(source and name) and step.type not in {"external", "unresolved"}
    href = links.to_file(source, path, symbol=name) if is_here else None
    label = name or path.rpartition(":")[2]
    return Neighbour(label, path if is_here else "", path, href, step.resolution, step.confidence >= 1, 1)


def _parts(node: str) -> tuple[str, str, str]:
    """The source, the path and the qualified name of a node; those that it has."""
    source, mark, rest = node.partition("!")
    source, rest = (source, rest) if mark else ("", node)
    path, mark, name = rest.partition(SYMBOL_MARK)
    return source, path, name.partition("~")[0] if mark else ""


def _alike(reader: Reader, file: FileText, line: int) -> tuple[Hit, ...]:
    """What resembles the chunk at a line, in other files."""
    chunk = next((span.chunk_id for span in file.chunks if span.start_line <= line <= span.end_line), None)
    if chunk is None:
        return ()
    try:
        return tuple(similar(reader, chunk, filters=Filters(), top_k=_MOST_LIKE))
    except QueryError:
        return ()
