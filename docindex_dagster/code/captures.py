"""Running a language's query over a tree: from nodes with capture names to typed records.

The queries of all languages use the same captures:

- `@definition.KIND`: a definition. Plain `@definition` adds details to a definition that another pattern finds.
- `@name`, `@parameters`, `@return` (several are joined), `@body`, `@docstring`, `@owner` (the type a method belongs to,
  where that does not follow from nesting): parts of the definition of the same match.
- `@wrapper` and `@wrapped`: a node that belongs to the definition it wraps, such as `export …` or `template <…> …`.
- `@decorator`, `@comment`, `@comment.doc`: found wherever they stand, and given to definitions by position. Only the
  latter documents the definition below it.
- `@import`: the name of what is imported.

Where several patterns find one definition, the first in the file says its kind, and their details are joined.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from docindex_dagster.code.parse import query_for

if TYPE_CHECKING:
    from tree_sitter import Node, Tree


@dataclass(slots=True)
class Definition:
    """One definition as the query sees it."""

    kind: str
    name: "Node"
    start: int  # of the node with its wrappers, without comments and decorators before it
    end: int
    body: int | None = None  # where its body starts
    parameters: "Node | None" = None
    returns: "list[Node]" = field(default_factory=list)
    docstring: "Node | None" = None
    owner: "Node | None" = None

    @property
    def head_end(self) -> int:
        """Where what stands before both name and body ends."""
        return min(self.name.start_byte, self.end if self.body is None else self.body)

    def add(self, parts: "dict[str, list[Node]]") -> None:
        """Take over what one match captured, unless an earlier one did."""
        bodies = [node.start_byte for node in parts.get("body", ())]
        self.body = min(bodies if self.body is None else [*bodies, self.body], default=None)
        self.parameters = self.parameters or _first(parts, "parameters")
        self.returns = self.returns or parts.get("return", [])
        self.docstring = self.docstring or _first(parts, "docstring")
        self.owner = self.owner or _first(parts, "owner")


@dataclass(frozen=True, slots=True)
class Captures:
    """What one query finds in one file, each list in file order."""

    definitions: "list[Definition]"
    comments: "list[Node]"
    doc_comments: frozenset[int]  # the start bytes of those that document
    decorators: "list[Node]"
    imports: "list[Node]"


def run_query(tree: "Tree", language: str) -> Captures:
    """Run the query of a language over a whole tree. The language must have one."""
    from tree_sitter import QueryCursor

    matches = sorted(QueryCursor(query_for(language)).matches(tree.root_node), key=itemgetter(0))
    captures = [parts for _, parts in matches]
    doc_comments = _nodes(captures, "comment.doc")
    return Captures(
        definitions=_definitions(captures),
        comments=sorted([*_nodes(captures, "comment"), *doc_comments], key=attrgetter("start_byte")),
        doc_comments=frozenset(node.start_byte for node in doc_comments),
        decorators=_nodes(captures, "decorator"),
        imports=_nodes(captures, "import"),
    )


def _definitions(captures: "list[dict[str, list[Node]]]") -> list[Definition]:
    wrappers = {parts["wrapped"][0].id: parts["wrapper"][0] for parts in captures if "wrapper" in parts}
    found: dict[int, Definition] = {}
    for parts in captures:
        for capture, nodes in parts.items():
            if not capture.startswith("definition"):
                continue
            node = nodes[0]
            definition = found.get(node.id)
            if definition is None and "name" in parts:
                kind = capture.removeprefix("definition.")
                outer = _outermost(node, wrappers)
                definition = Definition(kind, parts["name"][0], outer.start_byte, outer.end_byte)
                found[node.id] = definition
            if definition is not None:
                definition.add(parts)
    return list(found.values())


def _outermost(node: "Node", wrappers: "dict[int, Node]") -> "Node":
    while node.id in wrappers:
        node = wrappers[node.id]
    return node


def _nodes(captures: "list[dict[str, list[Node]]]", name: str) -> "list[Node]":
    def each() -> "Iterator[Node]":
        for parts in captures:
            yield from parts.get(name, ())

    return sorted(each(), key=attrgetter("start_byte"))


def _first(parts: "dict[str, list[Node]]", name: str) -> "Node | None":
    return parts[name][0] if name in parts else None
