"""What is around a place in a file: definitions in definitions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from docindex_dagster.callgraph.ir import Definition, FileIR

TABLE = "table"
"""The kind of tables of Lua with functions in them, which are no symbols of the file."""
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


def is_class(definition: Definition) -> bool:
    """Whether a definition has members."""
    return definition.kind in CLASSES or definition.kind == "module"


def with_parents(namespace: str) -> Iterator[str]:
    """A namespace and those around it, the innermost first."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition(".")[0]


def beside(ir: FileIR) -> FileIR:
    """A file with its definitions each in the last one before it that has the name of its parent, by the id of that."""
    last: dict[str, str] = {}
    definitions = []
    for one in ir.definitions:
        if one.kind not in FUNCTIONS:
            last[one.qualified] = one.id
        definitions.append(one._replace(parent=last.get(one.parent, one.parent)))
    return replace(ir, definitions=tuple(definitions))
