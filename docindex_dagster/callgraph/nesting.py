"""What is around a place in a file: definitions in definitions."""

from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.ir import Definition
from docindex_dagster.callgraph.languages.lua import TABLE

CLASSES = frozenset({"class", "enum", "impl", "interface", "struct", TABLE, "trait", "union"})
TYPES = CLASSES | {"type"}
FUNCTIONS = frozenset({"function", "method", "macro"})
_PROTOTYPE = ".prototype"


def around(definitions: Mapping[str, Definition], scope: str) -> Iterator[Definition]:
    """The definitions around a place, the innermost first."""
    while scope:
        definition = definitions.get(scope)
        if definition is not None:
            yield definition
            scope = definition.parent
        else:  # a literal or prototype
            scope = scope.rpartition(".")[0]


def holder(definitions: Mapping[str, Definition], scope: str) -> tuple[str, bool]:
    """The qualified name of the class, constructor or literal whose `this` a place has; whether it is a literal."""
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
