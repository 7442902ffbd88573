"""What the grammar of a language calls things, and the reader of the expressions in a syntax tree.

`Expressions` says which types of nodes these are in a language, and a `Reader` holds what is known of one file. What
follows no name (arithmetic, a function without one) is unknown, and so is what is too large.
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
    Node = object  # the library is loaded only where a file is read

_DEPTH = 30
_MOST_NODES = 64  # of an expression
_PLACES = {"0": 0, "1": 1, "-1": -1}
_SHALLOW = 10  # where what is short is not too deep in itself
_SHORT = 100  # bytes of an expression that others may repeat

Captured = Mapping[str, list[Node]]
"""What one match of a query captured."""
Read = Callable[[Node | None], Expression]
"""Gives the expression of a part."""
Rule = Callable[[Node, "Reader", int], Expression]
"""Gives the expression of a node that stands so deep in another one."""


class _Sizes(dict[Expression, int]):
    """By expression, of how many it is made."""

    def __missing__(self, whole: Expression) -> int:
        """Count them."""
        found = self[whole] = 1 + sum([self[part] for part in children(whole)])
        return found


@dataclass(frozen=True, slots=True)
class Lambdas:
    """How functions without a name stand in a call, and what the library gives them."""

    functions: frozenset[str]  # types of nodes
    between: frozenset[str]  # types of nodes between the call and the function
    same: frozenset[str] = frozenset()  # methods that give their object
    items: frozenset[str] = frozenset()  # methods that give what their object holds


@dataclass(frozen=True, slots=True, eq=False)
class Expressions:
    """The types of nodes that are expressions.

    A part that has no field is the first named child, written as "", or that with a number, the last being "-1".
    """

    names: frozenset[str]
    members: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the object, the name
    calls: Mapping[str, str] = field(default_factory=dict)  # what is called
    indexed: Mapping[str, str] = field(default_factory=dict)  # calls of an item, by the field that says of which
    methods: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # calls that name object and method themselves
    new: Mapping[str, str] = field(default_factory=dict)  # the type
    items: Mapping[str, str] = field(default_factory=dict)  # the collection
    through: Mapping[str, str] = field(default_factory=dict)  # what stands for a part of itself
    either: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # either of two parts
    casts: Mapping[str, str] = field(default_factory=dict)  # the type
    collections: Mapping[str, str] = field(default_factory=dict)  # by the field of an element's value, or ""
    keys: Mapping[str, str] = field(default_factory=dict)  # the field of the name of an element or of an item
    labels: Mapping[str, str] = field(default_factory=dict)  # the field of a name that is written without quotes
    beside: frozenset[str] = frozenset()  # what is a part of the argument beside it
    written: frozenset[str] = frozenset()  # functions that are written as elements of a collection, with a `name`
    sequences: frozenset[str] = frozenset()  # what stands for its last part
    bare: frozenset[str] = frozenset()  # names that may be calls
    named: Mapping[str, bool] = field(default_factory=dict)  # calls of what their first argument names; whether it runs
    library: Mapping[str, Callable[[Sequence[Node], Read], Expression | None]] = field(default_factory=dict)
    # What functions give by what they are given, by their names; of None what any call does.
    lambdas: frozenset[str] = frozenset()  # functions whose body is what they give
    values: frozenset[str] = frozenset()  # what may be given that is no function
    spreads: frozenset[str] = frozenset()  # elements that stand for all elements of a collection
    attributes: frozenset[str] = frozenset()  # names of attributes of the object
    literals: Mapping[str, str] = field(default_factory=dict)  # the name of the type
    composites: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the type, the elements
    branches: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # what holds the cases, the value of each
    blocks: frozenset[str] = frozenset()  # that stand for an expression, where they hold nothing else
    listing: Mapping[str, str] = field(default_factory=dict)  # macros that give a collection, by the type of node
    words: Mapping[str, str] = field(default_factory=dict)  # types of nodes, or names, that stand for another name
    given: Lambdas | None = None
    listed: Callable[[Node, Node | None], Iterable[Node]] | None = None  # arguments, where not those in brackets
    special: "Mapping[str, Callable[[Node, Reader], Expression | None]]" = field(default_factory=dict)  # read first
    readers: Mapping[str, Callable[[Node, Read], Expression]] = field(default_factory=dict)  # what no rule above fits
    matching: "Callable[[Node, Reader], Expression] | None" = None  # what a name in a pattern is
    is_placed: bool = False  # what an expression is depends on where it stands


@dataclass(slots=True, eq=False)
class Reader:
    """A file that is being read, and the expression in it that is, by functions that read parts of it anew."""

    syntax: Expressions
    rules: Mapping[str, Rule]  # by the types of nodes
    constants: Mapping[str, Expression]  # what nodes of a type always are
    leaves: frozenset[str]  # types of nodes whose text alone says what they are
    texts: dict[tuple[str, bytes | None], Expression] = field(default_factory=dict)  # by type and text
    arguments: dict[tuple[int, str, bytes | None], tuple[Argument, ...]] = field(default_factory=dict)
    known: dict[int, Expression] = field(default_factory=dict)  # parts of the expression by the ids of nodes
    sizes: _Sizes = field(default_factory=_Sizes)
    depth: int = 0

    def expression(self, node: Node | None) -> Expression:
        """What a node is; unknown where it cannot be followed, or is too large."""
        if self.depth == 0 and self.known:
            self.known.clear()
        found = self.part(node, self.depth)
        return found if self.sizes[found] <= _MOST_NODES else UNKNOWN

    def part(self, node: Node | None, depth: int) -> Expression:
        """What a part of an expression is; read once a file of leaves, and of what is short, with the same text."""
        if node is None or depth > _DEPTH:
            return UNKNOWN
        kind = node.type
        rule = self.rules.get(kind)
        if rule is None:
            return self.constants.get(kind, UNKNOWN)
        # As `may_be_repeated` says: this is asked of most nodes.
        if kind not in self.leaves and (
            depth > _SHALLOW or self.syntax.is_placed or node.end_byte - node.start_byte > _SHORT
        ):
            return rule(node, self, depth)
        key = (kind, node.text)
        known = self.texts.get(key)
        if known is None:
            known = self.texts[key] = rule(node, self, depth)
        return known

    def may_be_repeated(self, node: Node) -> bool:
        """Whether others in the file may have the text of a node, and then also mean the same."""
        return not self.syntax.is_placed and node.end_byte - node.start_byte <= _SHORT


def part_of(node: Node, name: str) -> Node | None:
    """The child of a field; of "" the first that has a name, of a number the one at that place."""
    if name and name not in _PLACES:
        return node.child_by_field_name(name)
    place = _PLACES.get(name, 0)
    if place < 1 and node.named_child_count:  # most have no comments before or behind
        child = node.named_child(node.named_child_count - 1 if place else 0)
        if child is not None and not child.is_extra:
            return child
    parts = parts_of(node)
    return parts[place] if -len(parts) <= place < len(parts) else None


def parts_of(node: Node | None) -> list[Node]:
    """The children that have a name, without comments."""
    return [child for child in node.named_children if not child.is_extra] if node is not None else []


def captured(parts: Mapping[str, list[Node]], capture: str) -> Node | None:
    """The first node of a capture, if it has one."""
    nodes = parts.get(capture)
    return nodes[0] if nodes else None


def text_of(node: Node | None) -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def nodes_around(node: Node) -> Iterator[Node]:
    """The nodes around one, the innermost first."""
    around = node.parent
    while around is not None:
        yield around
        around = around.parent


def outside(node: Node, kinds: AbstractSet[str]) -> Node | None:
    """The first node around one that is of none of some types."""
    return next((around for around in nodes_around(node) if around.type not in kinds), None)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where variables are seen: the types of nodes around declarations, and of those after whose end they are seen."""

    around: frozenset[str]
    statements: frozenset[str]
    assignments: frozenset[str]  # that declare nothing
    after: Mapping[str, str] = field(default_factory=dict)  # by type of block: the field after which they are seen
    conditions: frozenset[str] = frozenset()  # in which a name is seen after the value that is beside it


@dataclass(frozen=True, slots=True)
class Syntax:
    """How the statements of one language are read."""

    queries: tuple[str, ...]  # the files of `languages/`, without `.scm`
    expressions: Expressions
    # The nodes of all functions, of those that have no name of their own, and of what gives these one.
    functions: frozenset[str] = frozenset()
    anonymous: frozenset[str] = frozenset()
    naming: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()  # of functions, which say names of parameters that nothing has
    blocks: Blocks | None = None  # where variables are seen; None where in all of the function
    has_selves: bool = False  # the object itself is a first parameter
    nests_namespaces: bool = False  # each namespace that a file names is in the one before
    stores_paths: bool = False  # what has a path is declared elsewhere, in a class or namespace
