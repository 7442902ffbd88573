"""Nesting of definitions: the classes and functions that enclose a scope."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from docindex_dagster.callgraph.ir import Definition, FileIR

TABLE = "table"
"""The kind of Lua tables that contain functions; they are not symbols of the file."""
CLASSES = frozenset({"class", "enum", "impl", "interface", "struct", TABLE, "trait", "union"})
TYPES = CLASSES | {"type"}
FUNCTIONS = frozenset({"function", "method", "macro"})
_PROTOTYPE = ".prototype"


def around(definitions: Mapping[str, Definition], scope: str) -> Iterator[Definition]:
    """Yield the definitions that enclose a scope, innermost first."""
    while scope:
        definition = definitions.get(scope)
        if definition is not None:
            yield definition
            scope = definition.parent
        else:  # a literal or prototype
            scope = scope.rpartition(".")[0]


def holder(definitions: Mapping[str, Definition], scope: str) -> tuple[str, bool]:
    """Return the qualified name of the class, constructor or literal of `this`, and whether it is a literal."""
    outermost = ""
    for one in around(definitions, scope):
        if one.kind in CLASSES:
            return one.qualified, False
        if one.kind not in FUNCTIONS:
            continue
        outermost = one.qualified
        if one.parent and one.parent not in definitions and not one.parent.endswith(".this"):
            return one.parent.removesuffix(_PROTOTYPE), not one.parent.endswith(_PROTOTYPE)
        outer = definitions.get(one.parent)
        if one.kind == "method" and outer is not None and outer.kind in FUNCTIONS:
            return one.parent, True
    return outermost, False


def is_class(definition: Definition) -> bool:
    """Return whether a definition is a class or module, which have members."""
    return definition.kind in CLASSES or definition.kind == "module"


def with_parents(namespace: str) -> Iterator[str]:
    """Yield a namespace and its enclosing namespaces, innermost first."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition(".")[0]


def assign_parents(ir: FileIR) -> FileIR:
    """Set the parent of each definition to the id of the last preceding definition with the parent's name."""
    last: dict[str, str] = {}
    definitions = []
    for one in ir.definitions:
        if one.kind not in FUNCTIONS:
            last[one.qualified] = one.id
        definitions.append(one._replace(parent=last.get(one.parent, one.parent)))
    return replace(ir, definitions=tuple(definitions))
