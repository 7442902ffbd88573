"""What an expression is made of, as far as names can be followed: one notation for all languages.

    order.items[]       a member; what a collection holds
    open()  Order@()    what a function returns; a new object, where the language says `new`
    :list<Order>        something of a declared type
    #str                a literal, by its type
    {add,sub}           a collection of these
    {run=go,stop=&stop} one with names; `&stop` is a function that is written in it
    take^01             what a function gives, at place 1, to the function that is its argument 0; 9 is a block
    "./lib/store"       a module
    total'              a variable, or what a function of that name returns
    (first|second)      one of these
    this  super         whose method it is, and what that inherits
    add^*1              what a function that is given to add is given first; add^*0 is the object that it is in
    (order|cart);add    add, where members of these need no object

What follows no name (arithmetic, a function without one) is `?`, and so is what is too long.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "?"
SEPARATOR = "\x1f"  # between expressions
ROOT = "\\"  # the namespace around all others, where a language writes it
LONGEST = 200  # characters
_DEPTH = 30
_PLACES = {"0": 0, "1": 1, "-1": -1}
_SHALLOW = 10  # where what is short is not too deep in itself
_SHORT = 100  # bytes of an expression that others may repeat

Read = Callable[["Node | None"], str]
"""Gives the notation of a part of an expression."""

Rule = Callable[["Node", "Shapes", int], str]
"""Gives the notation of a node that stands so deep in an expression."""


@dataclass(frozen=True, slots=True)
class Given:
    """How functions without a name stand in a call, and what the library gives them."""

    functions: frozenset[str]  # types of nodes
    between: frozenset[str]  # types of nodes between the call and the function
    same: frozenset[str] = frozenset()  # methods that give their object
    items: frozenset[str] = frozenset()  # methods that give what their object holds


@dataclass(slots=True)
class Opened:
    """A file that is being read, and the expression in it that is, by functions that read parts of it anew."""

    texts: dict[tuple[str, bytes | None], str] = field(default_factory=dict)  # expressions by type and text
    arguments: dict[tuple[int, str, bytes | None], str] = field(default_factory=dict)  # by their number at most too
    known: dict[int, str] = field(default_factory=dict)  # parts of the expression by the ids of nodes
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The types of nodes of a grammar that can be followed, with the fields that hold their parts.

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
    either: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    casts: Mapping[str, str] = field(default_factory=dict)  # the type
    collections: Mapping[str, str] = field(default_factory=dict)  # by the field of an element's value, or ""
    keys: Mapping[str, str] = field(default_factory=dict)  # the field of the name of an element or of an item
    labels: Mapping[str, str] = field(default_factory=dict)  # the field of a name that is written without quotes
    beside: frozenset[str] = frozenset()  # what is a part of the argument beside it
    written: frozenset[str] = frozenset()  # functions that are written as elements of a collection, with a `name`
    sequences: frozenset[str] = frozenset()  # what stands for its last part
    bare: frozenset[str] = frozenset()  # names that may be calls
    modules: frozenset[str] = frozenset()  # functions that give the module that they are given the name of
    named: Mapping[str, str] = field(default_factory=dict)  # calls of what their first argument names, and what follows
    lambdas: frozenset[str] = frozenset()  # functions whose body is what they give
    values: frozenset[str] = frozenset()  # what may be given that is no function
    spreads: frozenset[str] = frozenset()  # elements that stand for all elements of a collection
    attributes: frozenset[str] = frozenset()  # names of attributes of the object
    literals: Mapping[str, str] = field(default_factory=dict)  # the name of the type
    composites: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the type, the elements
    received: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # an item where a sign is before the part
    typed: frozenset[str] = frozenset()  # functions that give something of the type that they are given first
    holding: frozenset[str] = frozenset()  # functions that give something that holds what they are given
    branches: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # what holds the cases, the value of each
    blocks: frozenset[str] = frozenset()  # that stand for an expression, where they hold nothing else
    listing: Mapping[str, str] = field(default_factory=dict)  # macros that give a collection, by the type of node
    joined: frozenset[str] = frozenset()  # functions that give a collection with more elements
    copies: frozenset[str] = frozenset()  # functions that give what they are given, or a collection of the same
    elements: frozenset[str] = frozenset()  # functions that give a collection of the elements of what they are given
    collecting: frozenset[str] = frozenset()  # functions that give a collection of what they are given
    words: Mapping[str, str] = field(default_factory=dict)  # types of nodes, or names, that stand for another name
    given: Given | None = None
    special: Mapping[str, Callable[["Node", "Shapes"], str]] = field(default_factory=dict)  # read first; "" for no more
    readers: Mapping[str, Callable[["Node", Read], str]] = field(default_factory=dict)  # what no rule above fits
    is_placed: bool = False  # what an expression is depends on where it stands
    rules: Mapping[str, Rule] = field(default_factory=dict)  # by the types of nodes; `expression_rules` makes them
    leaves: frozenset[str] = frozenset()  # types of nodes that are read at a glance
    opened: Opened = field(default_factory=Opened)


def expression(node: "Node | None", shapes: Shapes) -> str:
    """The notation of a node; `?` where it cannot be followed."""
    text = read(node, shapes, shapes.opened.depth)
    return text if len(text) <= LONGEST else UNKNOWN


def may_be_repeated(node: "Node", shapes: Shapes) -> bool:
    """Whether others in the file may have the text of a node, and then also mean the same."""
    return not shapes.is_placed and node.end_byte - node.start_byte <= _SHORT


def read(node: "Node | None", shapes: Shapes, depth: int) -> str:
    """The notation of a node; once a file of those that are short and have the same text."""
    if node is None or depth > _DEPTH:
        return UNKNOWN
    kind = node.type
    rule = shapes.rules.get(kind)
    if rule is None:
        return UNKNOWN
    if depth > _SHALLOW or kind in shapes.leaves or not may_be_repeated(node, shapes):
        return rule(node, shapes, depth)
    texts, key = shapes.opened.texts, (kind, node.text)
    known = texts.get(key)
    if known is None:
        known = texts[key] = rule(node, shapes, depth)
    return known


def part_of(node: "Node", name: str) -> "Node | None":
    """The child of a field; of "" the first that has a name, of a number the one at that place."""
    if name and name not in _PLACES:
        return node.child_by_field_name(name)
    place = _PLACES.get(name, 0)
    if place < 1 and node.named_child_count:  # most have no comments before or behind
        child = node.named_child(node.named_child_count - 1 if place else 0)
        if child is not None and not child.is_extra:
            return child
    children = node.named_children
    if any(child.is_extra for child in children):
        children = [child for child in children if not child.is_extra]
    return children[place] if -len(children) <= place < len(children) else None


def text_of(node: "Node | None") -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
