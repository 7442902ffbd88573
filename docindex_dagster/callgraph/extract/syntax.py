"""What the grammar of a language calls things: the types of nodes that can be followed, with the fields of their parts.

Each module of `languages/` gives one; how they are read is the same for all languages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import Expressions

if TYPE_CHECKING:
    import tree_sitter

    Node = tree_sitter.Node
else:
    Node = object  # the library is loaded only where a file is read


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
