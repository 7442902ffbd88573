"""Expression node types of a language, and the reader of expressions in a syntax tree.

`Expressions` maps the node types of a language to kinds of expressions; a `Reader` holds the state for a file. Nodes
that do not resolve to a name (arithmetic, anonymous functions) and oversized expressions are unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Expression, children

if TYPE_CHECKING:
    import tree_sitter

    Node = tree_sitter.Node
else:
    Node = object  # tree-sitter is imported only when a file is read

_DEPTH = 30
_MOST_NODES = 64  # of an expression
_POSITIONS = {"0": 0, "1": 1, "-1": -1}
_SHALLOW = 10  # depth up to which a short expression cannot exceed the depth limit
_SHORT = 100  # bytes; shorter expressions often repeat, so they are cached

Captured = Mapping[str, list[Node]]
"""The nodes of a query match, by capture."""
Read = Callable[[Node | None], Expression]
"""Returns the expression of a child node."""
Rule = Callable[[Node, "Reader", int], Expression]
"""Returns the expression of a node at a depth."""


class _Sizes(dict[Expression, int]):
    """The number of nodes, by expression."""

    def __missing__(self, expression: Expression) -> int:
        """Count the nodes."""
        size = self[expression] = 1 + sum([self[part] for part in children(expression)])
        return size


@dataclass(frozen=True, slots=True)
class Lambdas:
    """Anonymous functions in calls, and the arguments that library methods pass to them."""

    functions: frozenset[str]  # node types
    between: frozenset[str]  # node types between the call and the function
    same: frozenset[str] = frozenset()  # methods that pass their receiver
    items: frozenset[str] = frozenset()  # methods that pass the elements of their receiver


@dataclass(frozen=True, slots=True, eq=False)
class Expressions:
    """The node types of expressions.

    A mapping's values name fields. Without a field, "" means the first named child, a number for a position; "-1"
    is the last.
    """

    names: frozenset[str]
    members: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the object, the name
    calls: Mapping[str, str] = field(default_factory=dict)  # the callee
    indexed: Mapping[str, str] = field(default_factory=dict)  # calls of an element; the field of the index
    methods: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # calls with fields for object and method
    new: Mapping[str, str] = field(default_factory=dict)  # the type
    items: Mapping[str, str] = field(default_factory=dict)  # the collection
    through: Mapping[str, str] = field(default_factory=dict)  # wrappers around an expression
    either: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # one of two expressions
    casts: Mapping[str, str] = field(default_factory=dict)  # the type
    collections: Mapping[str, str] = field(default_factory=dict)  # the field of an element's value, or ""
    keys: Mapping[str, str] = field(default_factory=dict)  # the field of the key of an element or subscript
    labels: Mapping[str, str] = field(default_factory=dict)  # the field of an unquoted name
    adjacent: frozenset[str] = frozenset()  # nodes that belong to the adjacent argument
    written: frozenset[str] = frozenset()  # functions defined as elements of a collection, with a `name`
    sequences: frozenset[str] = frozenset()  # sequences whose value is the last part
    bare: frozenset[str] = frozenset()  # names that may be calls
    named: Mapping[str, bool] = field(default_factory=dict)  # methods that take a method name; whether they call it
    library: Mapping[str, Callable[[Sequence[Node], Read], Expression | None]] = field(default_factory=dict)
    # Results of library functions from their arguments, by name; None means an ordinary call.
    lambdas: frozenset[str] = frozenset()  # functions whose body is their result
    values: frozenset[str] = frozenset()  # arguments that are not functions
    spreads: frozenset[str] = frozenset()  # elements that spread a collection
    attributes: frozenset[str] = frozenset()  # names of attributes of the object
    literals: Mapping[str, str] = field(default_factory=dict)  # the name of the type
    composites: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the type, the elements
    branches: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the node of the cases, the value of each
    blocks: frozenset[str] = frozenset()  # blocks whose value is their only expression
    listing: Mapping[str, str] = field(default_factory=dict)  # macros that return a collection, by node type
    words: Mapping[str, str] = field(default_factory=dict)  # node types or names that are aliases of a name
    lambda_calls: Lambdas | None = None
    listed: Callable[[Node, Node | None], Iterable[Node]] | None = None  # arguments, if not those in parentheses
    special: "Mapping[str, Callable[[Node, Reader], Expression | None]]" = field(default_factory=dict)  # tried first
    readers: Mapping[str, Callable[[Node, Read], Expression]] = field(default_factory=dict)  # custom rules
    matching: "Callable[[Node, Reader], Expression] | None" = None  # resolves a name in a pattern
    is_placed: bool = False  # the meaning of an expression depends on its position


@dataclass(slots=True, eq=False)
class Reader:
    """Reader of the expressions in a file, with its caches."""

    syntax: Expressions
    rules: Mapping[str, Rule]  # by node type
    constants: Mapping[str, Expression]  # node types with a constant expression
    leaves: frozenset[str]  # node types determined by their text alone
    texts: dict[tuple[str, bytes | None], Expression] = field(default_factory=dict)  # by type and text
    arguments: dict[tuple[int, str, bytes | None], tuple[Argument, ...]] = field(default_factory=dict)
    known: dict[int, Expression] = field(default_factory=dict)  # parts of the current expression, by node id
    sizes: _Sizes = field(default_factory=_Sizes)
    depth: int = 0

    def expression(self, node: Node | None) -> Expression:
        """Return the expression of a node; `UNKNOWN` if it cannot be resolved or is too large."""
        if self.depth == 0 and self.known:
            self.known.clear()
        found = self.part(node, self.depth)
        return found if self.sizes[found] <= _MOST_NODES else UNKNOWN

    def part(self, node: Node | None, depth: int) -> Expression:
        """Return the expression of a child node; leaves and short expressions are cached by text."""
        if node is None or depth > _DEPTH:
            return UNKNOWN
        kind = node.type
        rule = self.rules.get(kind)
        if rule is None:
            return self.constants.get(kind, UNKNOWN)
        # `is_cacheable`, inlined since this runs for most nodes.
        if kind not in self.leaves and (
            depth > _SHALLOW or self.syntax.is_placed or node.end_byte - node.start_byte > _SHORT
        ):
            return rule(node, self, depth)
        key = (kind, node.text)
        known = self.texts.get(key)
        if known is None:
            known = self.texts[key] = rule(node, self, depth)
        return known

    def is_cacheable(self, node: Node) -> bool:
        """Return whether a node is short and means the same wherever its text occurs in the file."""
        return not self.syntax.is_placed and node.end_byte - node.start_byte <= _SHORT


def part_of(node: Node, name: str) -> Node | None:
    """Return the child of a field; for "" the first named child, for a number the named child at that position."""
    if name and name not in _POSITIONS:
        return node.child_by_field_name(name)
    at = _POSITIONS.get(name, 0)
    if at < 1 and node.named_child_count:  # fast path: no comment at the start or end
        child = node.named_child(node.named_child_count - 1 if at else 0)
        if child is not None and not child.is_extra:
            return child
    parts = parts_of(node)
    return parts[at] if -len(parts) <= at < len(parts) else None


def parts_of(node: Node | None) -> list[Node]:
    """Return the named children, without comments."""
    return [child for child in node.named_children if not child.is_extra] if node is not None else []


def captured(parts: Mapping[str, list[Node]], capture: str) -> Node | None:
    """Return the first node of a capture, if there is one."""
    nodes = parts.get(capture)
    return nodes[0] if nodes else None


def text_of(node: Node | None) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def nodes_around(node: Node) -> Iterator[Node]:
    """Yield the ancestors of a node, innermost first."""
    around = node.parent
    while around is not None:
        yield around
        around = around.parent


def outside(node: Node, kinds: AbstractSet[str]) -> Node | None:
    """Return the innermost ancestor whose type is not among `kinds`."""
    return next((around for around in nodes_around(node) if around.type not in kinds), None)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Node types that determine the visibility of variables."""

    around: frozenset[str]  # blocks that limit visibility
    statements: frozenset[str]  # a variable is visible after the end of its statement
    assignments: frozenset[str]  # assignments without a declaration
    after: Mapping[str, str] = field(default_factory=dict)  # by block type: the field after which variables are visible
    conditions: frozenset[str] = frozenset()  # conditions in which a name is visible after the value next to it


@dataclass(frozen=True, slots=True)
class Syntax:
    """Syntax of a language: its queries and node types."""

    queries: tuple[str, ...]  # files in `languages/`, without `.scm`
    expressions: Expressions
    # The node types of all functions, of anonymous ones, and of nodes that name an anonymous function.
    functions: frozenset[str] = frozenset()
    anonymous: frozenset[str] = frozenset()
    naming: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()  # function types, whose parameter names are not variables
    blocks: Blocks | None = None  # block scoping; None if variables are visible in the entire function
    has_selves: bool = False  # the receiver is the first parameter
    nests_namespaces: bool = False  # each namespace declared in a file is nested in the previous one
    stores_paths: bool = False  # a path refers to a name declared elsewhere, in a class or namespace
