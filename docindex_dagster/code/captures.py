"""Tree-sitter query runner: turns captured nodes into typed records.

The queries of all languages use the same captures:

- `@definition.KIND`: a definition. Plain `@definition` adds details to a definition that another pattern finds.
- `@name`, `@body`, `@docstring`: details of the definition in the same match.
- `@parameters`, `@return`: details of the definition in the same match; several captures are joined. If no node holds
  only the parameters, `@parameters` is the opening parenthesis.
- `@owner`: the type a method belongs to, if nesting does not show it.
- `@scope`: like `@owner`, but functions in it are not methods; several captures are joined.
- `@part`: a sibling node that belongs to the definition in the same match.
- `@docstring` in a match without a definition: assigned to a definition by position.
- `@clauses`: the node that holds the definition in the same match as a clause. Consecutive clauses with the same name
  form one definition.
- `@wrapper` and `@wrapped`: a node that belongs to the definition it wraps, such as `export …` or `template <…> …`.
- `@decorator`, `@comment`, `@comment.doc`: assigned to definitions by position. Only `@comment.doc` documents the
  definition below it.
- `@import` and `@export`: an imported name, or a name that the language exports explicitly. Several captures in one
  match span from the first to the last.
- `@call`: the called name, including its receiver if both are written as a path. `@receiver` in the same match captures
  a receiver that has a node of its own.

If several patterns match the same definition, the first one in the query file determines its kind, and their details
are merged.

Grammars attach the comments and decorators of a definition in different places (next to it, around it, in the block
before it). `find_leads` therefore finds them by position, directly above the definition. Each lookup takes constant
time, since a hostile file may hold a hundred thousand of them on one line.
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

    _Parts = dict[str, list[Node]]  # the nodes of one match, by capture name
    _ByCapture = Mapping[str, list[_Parts]]

_DEFINITION = "definition"
_DEPTH_LIMIT = 1000  # nodes; on a chain of n nested calls, a query takes time quadratic in n
_INDENT_LIMIT = 1000  # bytes
_TO_CODE = re.compile(rb"[ \t\f\r]*(?:\n(?P<indent>[ \t\f\r]*))?")  # on the same line or the next
_TERMINATOR = re.compile(rb"[ \t]*;")
_BLANKS = re.compile(rb"[ \t]*")


@dataclass(slots=True)
class Definition:
    """A definition as captured by the query."""

    kind: str
    name: "Node"
    start: int  # includes wrappers and parts, excludes leading comments and decorators
    end: int
    body: int | None = None  # the byte offset of its body
    parameters: "list[Node]" = field(default_factory=list)
    returns: "list[Node]" = field(default_factory=list)
    docstring: "Node | None" = None
    owner: "Node | None" = None
    scope: "list[Node]" = field(default_factory=list)
    clauses: int | None = None  # id of the node that holds it as a clause

    @property
    def head_end(self) -> int:
        """The end of the text that precedes both name and body."""
        return min(self.name.start_byte, self.end if self.body is None else self.body)

    def add(self, parts: "_Parts") -> None:
        """Add the captures of a match; details from earlier matches take precedence."""
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

    def add_clause(self, clause: "Definition") -> None:
        """Extend the definition with its next clause."""
        self.body = self.end if self.body is None else self.body
        self.end = clause.end
        self.parameters = self.parameters or clause.parameters
        self.returns = self.returns or clause.returns


@dataclass(frozen=True, slots=True)
class Captures:
    """The captures of a query in a file, each list in file order."""

    definitions: "list[Definition]"
    comments: "list[Node]"
    doc_comments: frozenset[int]  # start bytes of doc comments
    decorators: "list[Node]"
    docstrings: "list[Node]"  # only those not captured together with a definition
    imports: list[tuple[int, int]]  # byte spans
    exports: list[tuple[int, int]]
    calls: "list[tuple[Node, Node | None]]"  # with their receivers


def run_query(tree: "Tree", language: str) -> Captures:
    """Run the query of a language over a tree. The language must have a query."""
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
    """Group matches by capture name, in order; every match with a definition is listed under `definition`."""
    found: defaultdict[str, list[_Parts]] = defaultdict(list)
    for parts in matches:
        for name in parts:
            found[_DEFINITION if name.startswith(_DEFINITION) else name].append(parts)
    return found


def _spans(found: "_ByCapture", name: str) -> list[tuple[int, int]]:
    return sorted(_span(parts[name]) for parts in found[name])


def _calls(found: "_ByCapture", decorators: "list[Node]") -> "list[tuple[Node, Node | None]]":
    """Return the calls in file order, without names of definitions and decorators, which only look like calls."""
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
                before.add_clause(definition)
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
    """The comments and decorators of a file, indexed by position."""

    above: "dict[int, Node]"  # by start byte of the code that follows on the same or the next line
    trailing: "dict[int, Node]"  # trailing comments, by their start byte

    def before(self, start: int) -> "list[Node]":
        """Return the nodes directly above the code at a byte, in file order."""
        found: list[Node] = []
        while node := self.above.get(start):
            found.append(node)
            start = node.start_byte
        return found[::-1]

    def end_of_line(self, source: bytes, end: int) -> int:
        """Return the end of a definition, including its semicolon and trailing comment."""
        terminator = _TERMINATOR.match(source, end)
        if terminator:
            end = terminator.end()
        blanks = _BLANKS.match(source, end)
        comment = self.trailing.get(blanks.end() if blanks else end)
        return comment.end_byte if comment else end


def find_leads(captures: Captures, source: bytes) -> Leads:
    """Index the comments and decorators of a file by position."""
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
    """Return the start of the code directly below a node.

    A node that is indented deeper than the code below it belongs to the block that ends there.
    """
    end = node.end_byte
    if source[end - 1 : end] == b"\n":  # some grammars include the newline in the comment
        end -= 1
    match = _TO_CODE.match(source, end)
    if match is None or (match["indent"] is not None and node.start_point.column > len(match["indent"])):
        return None
    return match.end()
