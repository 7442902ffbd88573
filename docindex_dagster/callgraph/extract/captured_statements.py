"""Statements captured by the queries of a language, in file order, before their scope is determined.

This module also determines the arguments of anonymous functions and the visibility of declarations, since both depend
on the surrounding nodes.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from docindex_dagster.callgraph.extract.callees import passed
from docindex_dagster.callgraph.extract.expressions import Reader, Syntax, captured, part_of, parts_of
from docindex_dagster.callgraph.extract.renaming import Region, Renaming, region_of, renamed
from docindex_dagster.callgraph.extract.statements import MANY, ONE, Mark
from docindex_dagster.callgraph.extract.variables import bound
from docindex_dagster.callgraph.ir import BLOCK, UNKNOWN, Assignment, Expression, Name, Parameter, Return, Statement
from docindex_dagster.code.parsers import parse

if TYPE_CHECKING:
    from tree_sitter import Node, Query, Tree

    Captured = Mapping[str, list[Node]]

_NESTED_LIMIT = 4  # nested macros
_BLANKED = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))
_DEPTH_LIMIT = 100
_FIRST = frozenset({"decorator", "initial", "outer"})  # captures that affect others at the same position
_VARIABLES = frozenset({"bind", "parameter", "assigned"})


class Language(NamedTuple):
    """A supported language: its name, its syntax and the query for its statements."""

    name: str
    syntax: Syntax
    query: "Query"


class PositionedCapture(NamedTuple):
    """A statement or mark at a position, whose scope is not known yet."""

    start: int
    end: int
    line: int
    found: Statement | Mark
    region: Region | None = None  # where a declaration is visible
    until: int = 0  # for an argument of an anonymous function: the end of this function


def find_places(tree: "Tree", language: Language, reader: Reader) -> Iterable[PositionedCapture]:
    """Return all matches of the query in file order, including those in code that the grammar does not parse."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(language.query)
    cursor.set_max_start_depth(_DEPTH_LIMIT)
    first: list[PositionedCapture] = []
    others: list[PositionedCapture] = []
    ignored: list[Node] = []
    current: Tree | None = tree
    for _ in range(_NESTED_LIMIT):
        if current is None:
            break
        unread: list[Node] = []
        for _, parts in sorted(cursor.matches(current.root_node), key=itemgetter(0)):  # by pattern index
            capture, position = _main_captures(tuple(parts))
            if capture in ONE:
                if found := _place(capture, parts, parts[position][0], language.syntax, reader):
                    (first if capture in _FIRST else others).append(found)
            elif capture in MANY:
                others += _several(capture, parts, language.syntax, reader)
            elif capture:
                (unread if capture == "again" else ignored).append(parts[capture][0])
        current = _parse_unread(unread, tree, language.name) if unread else None
    places = sorted(first + others, key=itemgetter(0))
    return _renamed([*_without_ignored(places, ignored)] if ignored else places, language.syntax)


def _without_ignored(places: list[PositionedCapture], ignored: "list[Node]") -> Iterator[PositionedCapture]:
    """Yield the places outside the ignored nodes."""
    spans = sorted((node.start_byte, node.end_byte) for node in ignored)
    ends = [*accumulate((end for _, end in spans), max)]
    for place in places:
        at = bisect_right(spans, place.start, key=itemgetter(0))
        if at == 0 or ends[at - 1] <= place.start:
            yield place


def _parse_unread(nodes: "Sequence[Node]", tree: "Tree", language: str) -> "Tree | None":
    """Parse code that the grammar leaves unparsed, such as macro arguments, at the same offsets."""
    nodes = [node for node in nodes if node.text and node.text[:1] in b"(["]
    if not nodes:
        return None
    source = tree.root_node.text or b""
    first = tree.root_node.start_byte
    text = bytearray(source.translate(_BLANKED))
    for node in nodes:
        start, end = node.start_byte - first, node.end_byte - first
        text[start:end] = source[start:end]
        text[end : end + 1] = b";"
    return parse(b" " * first + bytes(text), language)


def _several(capture: str, parts: "Captured", syntax: Syntax, reader: Reader) -> Iterator[PositionedCapture]:
    for node, statement in MANY[capture](parts[capture][0], reader):
        if found := _in_named_function(node, statement, syntax, reader):
            yield PositionedCapture(node.start_byte, node.end_byte, node.start_point[0] + 1, found)


def _place(capture: str, parts: "Captured", node: "Node", syntax: Syntax, reader: Reader) -> PositionedCapture | None:
    found = ONE[capture](parts, reader)
    start, end, line = node.start_byte, node.end_byte, node.start_point[0] + 1
    if isinstance(found, Parameter | Return):
        if isinstance(found, Return) and node.type in syntax.anonymous:
            start -= 1  # so that the return precedes the function it returns
        found = _in_named_function(node, found, syntax, reader)
    if found is None:
        return None
    region, until = None, 0
    if capture in _VARIABLES:
        if syntax.blocks is not None:
            region = region_of(syntax.blocks, parts[capture][0], captured(parts, "bind.within"))
        if "bind.given" in parts:
            until = _end_of_function(parts["bind.given"][0], reader)
    # Hot path: this is three times faster than calling the class.
    return tuple.__new__(PositionedCapture, (start, end, line, found, region, until))


@lru_cache(maxsize=1_000)
def _main_captures(captures: tuple[str, ...]) -> tuple[str, str]:
    """Return the capture that determines the kind of statement, and the one that determines its position."""
    capture = next((capture for capture in (*MANY, *ONE, "again", "ignored") if capture in captures), "")
    return capture, f"{capture}.within" if f"{capture}.within" in captures else capture


def _end_of_function(argument: "Node", reader: Reader) -> int:
    """Return the end of the anonymous function that receives an argument."""
    functions = reader.syntax.lambda_calls.functions if reader.syntax.lambda_calls is not None else frozenset()
    node: Node | None = argument
    while node is not None and node.type not in functions:
        node = node.parent
    return node.end_byte if node is not None else 0


def _renamed(places: list[PositionedCapture], syntax: Syntax) -> Iterable[PositionedCapture]:
    """Rename arguments that several anonymous functions have in common, so that each name is unique."""
    uses = Counter(one.found.target for one in places if one.until and isinstance(one.found, Assignment))
    mark = "~" if syntax.blocks is None else "~~"  # "~" is used for block variables
    return _numbered(places, uses, mark) if len(uses) < uses.total() else places


def _numbered(places: list[PositionedCapture], uses: Counter[Expression], mark: str) -> Iterator[PositionedCapture]:
    around: list[tuple[int, Name, Name]] = []
    seen: Counter[Name] = Counter()
    for place in places:
        around = [one for one in around if one[0] > place.start]
        found = place.found
        if place.until and isinstance(found, Assignment) and isinstance(found.target, Name) and uses[found.target] > 1:
            seen[found.target] += 1
            around.append((place.until, found.target, Name(f"{found.target.text}{mark}{seen[found.target]}")))
            yield place._replace(found=found._replace(target=around[-1][2]))
        elif around and not isinstance(found, Mark):
            yield place._replace(found=renamed(found, Renaming({old: new for _, old, new in around})))
        else:
            yield place


def _in_named_function(node: "Node", found: Statement, syntax: Syntax, reader: Reader) -> Statement | None:
    """Turn parameters of an anonymous function into variables of the enclosing one, and drop its returns."""
    if not isinstance(found, Parameter | Return) or not syntax.functions:
        return found
    within, around = node, node.parent
    while around is not None and around.type not in syntax.functions:
        within, around = around, around.parent
    if around is None or around.type not in syntax.anonymous:
        return found
    outer = around.parent
    while outer is not None and outer.type in reader.syntax.through:
        outer = outer.parent
    if outer is not None and outer.type in syntax.naming:
        return found
    if isinstance(found, Return) or around.type in syntax.types:
        return None
    value = found.value if found.value is not UNKNOWN else _passed_value(within, node, around, reader)
    return bound(Name(found.name), value)


def _passed_value(within: "Node", node: "Node", function: "Node", reader: Reader) -> Expression:
    """Return the value passed to an anonymous function by the function it is an argument of."""
    arguments, calls = function.parent, reader.syntax.calls
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    if call is None or call.type not in calls:
        return UNKNOWN
    while node.parent is not None and within.id not in {node.parent.id, node.id}:
        node = node.parent
    called = reader.expression(part_of(call, calls[call.type]))
    at, position = _index_of(parts_of(arguments), function), _index_of(parts_of(within), node)
    return passed(call, called, at, position, reader) if at != BLOCK else UNKNOWN


def _index_of(nodes: "Sequence[Node]", node: "Node") -> int:
    return next((at for at, one in enumerate(nodes) if one.id == node.id), 0)
