"""What the grammar of a language calls things: the types of nodes that can be followed, with the fields of their parts.

Each module of `languages/` gives one; how they are read is the same for all languages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.ir import Expression

if TYPE_CHECKING:
    import tree_sitter

    from docindex_dagster.callgraph.extract.expressions import Reader

    Node = tree_sitter.Node
else:
    Node = object  # the library is loaded only where a file is read

Read = Callable[["Node | None"], Expression]
"""Gives the expression of a part."""


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
    library: "Mapping[str, Callable[[Sequence[Node], Read], Expression | None]]" = field(default_factory=dict)
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
    listed: "Callable[[Node, Node | None], Iterable[Node]] | None" = None  # arguments, where not those in brackets
    special: "Mapping[str, Callable[[Node, Reader], Expression | None]]" = field(default_factory=dict)  # read first
    readers: Mapping[str, Callable[["Node", Read], Expression]] = field(default_factory=dict)  # what no rule above fits
    matching: "Callable[[Node, Reader], Expression] | None" = None  # what a name in a pattern is
    is_placed: bool = False  # what an expression is depends on where it stands


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
