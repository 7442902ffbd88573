"""Running a language's query over a tree: from nodes with capture names to typed records.

The queries of all languages use the same captures:

- `@definition.KIND`: a definition. Plain `@definition` adds details to a definition that another pattern finds.
- `@name`, `@parameters`, `@return` (several of either are joined), `@body`, `@docstring`, `@owner` (the type a method
  belongs to, where that does not follow from nesting), `@scope` (like an owner, but functions in it are no methods;
  several are joined): parts of the definition of the same match. Where no node holds just the parameters,
  `@parameters` is the bracket before them.
- `@part`: a node beside the definition of the same match that belongs to it.
- `@docstring` in a match without a definition: stands in what is given to a definition by position.
- `@clauses`: what holds the definition of the same match as a clause. Clauses of one name that follow each other in it
  are one definition.
- `@wrapper` and `@wrapped`: a node that belongs to the definition it wraps, such as `export …` or `template <…> …`.
- `@decorator`, `@comment`, `@comment.doc`: found wherever they stand, and given to definitions by position. Only the
  latter documents the definition below it.
- `@import` and `@export`: the name of what is imported, or exported where the language says so in words; from the first
  to the last of those in one match.
- `@call`: the name of what is called, with what it is a member of where that is written as a path; with `@receiver` in
  the same match where that is a node of its own.

Where several patterns find one definition, the first in the file says its kind, and their details are joined.

Grammars put the comments and decorators of a definition in different places (beside it, around it, in the block before
it), so `find_leads` finds them by position: those directly above it. Each look-up takes constant time, since a hostile
file may hold a hundred thousand of them on one line.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from docindex_dagster.code.parsers import query_for

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    _Parts = dict[str, list[Node]]  # what one match captured
    _ByCapture = Mapping[str, list[_Parts]]

_DEFINITION = "definition"
_DEPTH_LIMIT = 1000  # nodes; over a chain of n calls, each in the one before it, a query takes time quadratic in n
_INDENT_LIMIT = 1000  # bytes
_TO_CODE = re.compile(rb"[ \t\f\r]*(?:\n(?P<indent>[ \t\f\r]*))?")  # on the same line or the next
_TERMINATOR = re.compile(rb"[ \t]*;")
_BLANKS = re.compile(rb"[ \t]*")


@dataclass(slots=True)
class Definition:
    """One definition as the query sees it."""

    kind: str
    name: "Node"
    start: int  # of the node with its wrappers and parts, without comments and decorators before it
    end: int
    body: int | None = None  # where its body starts
    parameters: "list[Node]" = field(default_factory=list)
    returns: "list[Node]" = field(default_factory=list)
    docstring: "Node | None" = None
    owner: "Node | None" = None
    scope: "list[Node]" = field(default_factory=list)
    clauses: int | None = None  # what holds it as a clause

    @property
    def head_end(self) -> int:
        """Where what stands before both name and body ends."""
        return min(self.name.start_byte, self.end if self.body is None else self.body)

    def add(self, parts: "_Parts") -> None:
        """Take over what one match captured, unless an earlier one did."""
        for node in parts.get("body", ()):
            start = node.start_byte
            self.body = start if self.body is None else min(start, self.body)
        for node in parts.get("part", ()):
            self.start = min(self.start, node.start_byte)
            self.end = max(self.end, node.end_byte)
        self.parameters = self.parameters or parts.get("parameters", [])
        self.returns = self.returns or parts.get("return", [])
        self.docstring = self.docstring or _first(parts, "docstring")
        self.owner = self.owner or _first(parts, "owner")
        self.scope = self.scope or parts.get("scope", [])
        self.clauses = parts["clauses"][0].id if "clauses" in parts else self.clauses

    def go_on(self, clause: "Definition") -> None:
        """Take over the next clause."""
        self.body = self.end if self.body is None else self.body
        self.end = clause.end
        self.parameters = self.parameters or clause.parameters
        self.returns = self.returns or clause.returns


@dataclass(frozen=True, slots=True)
class Captures:
    """What one query finds in one file, each list in file order."""

    definitions: "list[Definition]"
    comments: "list[Node]"
    doc_comments: frozenset[int]  # the start bytes of those that document
    decorators: "list[Node]"
    docstrings: "list[Node]"  # of no definition
    imports: list[tuple[int, int]]  # their first and last byte
    exports: list[tuple[int, int]]
    calls: "list[tuple[Node, Node | None]]"  # with their receivers


def run_query(tree: "Tree", language: str) -> Captures:
    """Run the query of a language over a whole tree. The language must have one."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query_for(language))
    cursor.set_max_start_depth(_DEPTH_LIMIT)
    found = _by_capture(parts for _, parts in sorted(cursor.matches(tree.root_node), key=itemgetter(0)))
    doc_comments = _nodes(found, "comment.doc")
    decorators = _nodes(found, "decorator")
    return Captures(
        definitions=_definitions(found),
        comments=sorted([*_nodes(found, "comment"), *doc_comments], key=attrgetter("start_byte")),
        doc_comments=frozenset(node.start_byte for node in doc_comments),
        decorators=decorators,
        docstrings=_nodes({"docstring": [parts for parts in found["docstring"] if not _defines(parts)]}, "docstring"),
        imports=_spans(found, "import"),
        exports=_spans(found, "export"),
        calls=_calls(found, decorators),
    )


def _by_capture(matches: "Iterable[_Parts]") -> "defaultdict[str, list[_Parts]]":
    """The matches that have a capture, in their order; all that define are under `definition`."""
    found: defaultdict[str, list[_Parts]] = defaultdict(list)
    for parts in matches:
        for name in parts:
            found[_DEFINITION if name.startswith(_DEFINITION) else name].append(parts)
    return found


def _spans(found: "_ByCapture", name: str) -> list[tuple[int, int]]:
    return sorted(_span(parts[name]) for parts in found[name])


def _calls(found: "_ByCapture", decorators: "list[Node]") -> "list[tuple[Node, Node | None]]":
    """In file order, without what only looks like a call: names of definitions, and what stands in a decorator."""
    names = {node.start_byte for parts in found["name"] for node in parts["name"]}
    starts = [node.start_byte for node in decorators]

    def is_call(start: int) -> bool:
        before = bisect_right(starts, start)
        in_decorator = before > 0 and start < decorators[before - 1].end_byte
        return start not in names and not in_decorator

    distinct = {parts["call"][0].id: parts for parts in found["call"]}
    calls = [(parts["call"][0].start_byte, parts) for parts in distinct.values()]
    calls.sort(key=itemgetter(0))
    return [(parts["call"][0], _first(parts, "receiver")) for start, parts in calls if is_call(start)]


def _definitions(found: "_ByCapture") -> list[Definition]:
    wrappers = {parts["wrapped"][0].id: parts["wrapper"][0] for parts in found["wrapper"]}
    definitions: dict[int, Definition] = {}
    for parts in found[_DEFINITION]:
        for capture, nodes in parts.items():
            if not capture.startswith(_DEFINITION):
                continue
            node = nodes[0]
            definition = definitions.get(node.id)
            if definition is None and "name" in parts:
                kind = capture.removeprefix(f"{_DEFINITION}.")
                outer = _outermost(node, wrappers)
                definition = Definition(kind, parts["name"][0], outer.start_byte, outer.end_byte)
                definitions[node.id] = definition
            if definition is not None:
                definition.add(parts)
    return list(_joined(definitions.values()))


def _joined(definitions: "Iterable[Definition]") -> "Iterator[Definition]":
    last: dict[int, Definition] = {}
    for definition in sorted(definitions, key=attrgetter("start")):
        if definition.clauses is not None:
            before = last.get(definition.clauses)
            if before and before.name.text == definition.name.text:
                before.go_on(definition)
                continue
            last[definition.clauses] = definition
        yield definition


def _defines(parts: "_Parts") -> bool:
    return any(capture.startswith(_DEFINITION) for capture in parts)


def _outermost(node: "Node", wrappers: "dict[int, Node]") -> "Node":
    while node.id in wrappers:
        node = wrappers[node.id]
    return node


def _nodes(found: "_ByCapture", name: str) -> "list[Node]":
    return sorted((node for parts in found[name] for node in parts[name]), key=attrgetter("start_byte"))


def _span(nodes: "list[Node]") -> tuple[int, int]:
    return min(node.start_byte for node in nodes), max(node.end_byte for node in nodes)


def _first(parts: "_Parts", name: str) -> "Node | None":
    return parts[name][0] if name in parts else None


@dataclass(frozen=True, slots=True)
class Leads:
    """The comments and decorators of a file, by the place that they stand at."""

    above: "dict[int, Node]"  # by the byte of what follows on the same line or the next
    trailing: "dict[int, Node]"  # comments behind code on its line, by their start

    def before(self, start: int) -> "list[Node]":
        """Those directly above what starts at a byte, in file order."""
        found: list[Node] = []
        while node := self.above.get(start):
            found.append(node)
            start = node.start_byte
        return found[::-1]

    def end_of_line(self, source: bytes, end: int) -> int:
        """Where a definition that ends at a byte ends together with its semicolon and the comment behind it."""
        terminator = _TERMINATOR.match(source, end)
        if terminator:
            end = terminator.end()
        blanks = _BLANKS.match(source, end)
        comment = self.trailing.get(blanks.end() if blanks else end)
        return comment.end_byte if comment else end


def find_leads(captures: Captures, source: bytes) -> Leads:
    """Place the comments and decorators of a file."""
    comments: list[Node] = []
    trailing: dict[int, Node] = {}
    for node in captures.comments:
        if _begins_line(source, node.start_byte):
            comments.append(node)
        else:
            trailing[node.start_byte] = node
    above = {start: node for node in [*captures.decorators, *comments] if (start := _code_below(source, node))}
    return Leads(above, trailing)


def _begins_line(source: bytes, start: int) -> bool:
    before = source[max(0, start - _INDENT_LIMIT) : start]
    return not before[before.rfind(b"\n") + 1 :].strip() and (b"\n" in before or start <= _INDENT_LIMIT)


def _code_below(source: bytes, node: "Node") -> int | None:
    """Where the code starts that a node stands above. What is indented deeper belongs to a block that ends with it."""
    end = node.end_byte
    if source[end - 1 : end] == b"\n":  # some grammars count the line end to the comment
        end -= 1
    match = _TO_CODE.match(source, end)
    if match is None or (match["indent"] is not None and node.start_point.column > len(match["indent"])):
        return None
    return match.end()
