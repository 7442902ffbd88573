"""Abstract values: the points-to set of an expression, with how each value was found."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, NamedTuple

from docindex_dagster.callgraph.ir import Record

FUNCTION_TYPE = "func"  # as `ir.TypeRef` names it

Kind = Literal[
    "function",
    "class",
    "object",
    "module",
    "external",  # from another source, the standard library or built in
    "external object",
    "collection",
    "parent",  # the inherited members of a class
    "literal",  # an object literal: a collection with named fields
    "record",  # an object literal without a name
]
"""Kinds of values that have members or can be called."""
MOST_VALUES = 8


class Resolution(IntEnum):
    """How a name was resolved, ordered from strong to weak; the weakest step decides."""

    SCOPE = 0
    FILE = 1
    IMPORT = 2
    PACKAGE = 3
    RECEIVER = 4
    INHERITED = 5
    RETURNED = 6
    ELEMENT = 7
    ARGUMENT = 8
    UNIQUE = 9


# The confidence of an edge, and the description of how it was found.
CONFIDENCE = {
    Resolution.SCOPE: 1.0,
    Resolution.FILE: 1.0,
    Resolution.IMPORT: 1.0,
    Resolution.PACKAGE: 0.95,
    Resolution.RECEIVER: 0.95,
    Resolution.INHERITED: 0.95,
    Resolution.RETURNED: 0.9,
    Resolution.ELEMENT: 0.85,
    Resolution.ARGUMENT: 0.8,
    Resolution.UNIQUE: 0.6,
}
NAMES = {
    Resolution.SCOPE: "same scope",
    Resolution.FILE: "same file",
    Resolution.IMPORT: "imported name",
    Resolution.PACKAGE: "same package",
    Resolution.RECEIVER: "type of the receiver",
    Resolution.INHERITED: "class hierarchy",
    Resolution.RETURNED: "returned type",
    Resolution.ELEMENT: "element of a collection",
    Resolution.ARGUMENT: "argument of a caller",
    Resolution.UNIQUE: "unique name",
}


class Value(NamedTuple):
    """A possible value of an expression (an abstract object).

    A function, class or object is identified by its path and the id of its definition, a module by its path, a record
    by its scope, and an external value by its dotted name. `held` contains the elements of a collection, the arguments
    of a generic type, or the receiver of a method.
    """

    kind: Kind
    path: str
    name: str
    resolution: Resolution = Resolution.SCOPE
    held: "tuple[Value, ...]" = ()
    record: Record | None = None

    def found(self, resolution: Resolution) -> "Value":
        """Return the value with a resolution that may be weaker."""
        if resolution <= self.resolution:
            return self
        return Value(self.kind, self.path, self.name, resolution, self.held, self.record)

    def as_kind(self, kind: Kind) -> "Value":
        """Return a value of another kind with the same name."""
        return Value(kind, self.path, self.name, self.resolution, self.held, self.record)

    def holding(self, held: "Values") -> "Value":
        """Return the value with other type arguments, elements or receiver."""
        return Value(self.kind, self.path, self.name, self.resolution, held, self.record)

    def is_same(self, other: "Value") -> bool:
        """Return whether both values have the same name and path."""
        return self.name == other.name and self.path == other.path


Values = tuple[Value, ...]
NONE: Values = ()


def external(name: str, resolution: Resolution = Resolution.SCOPE, held: Values = ()) -> Value:
    """Return a value from outside the program, identified by its dotted name."""
    return Value("external", "", name, resolution, held)


def external_object(name: str, resolution: Resolution = Resolution.SCOPE, held: Values = ()) -> Value:
    """Return an object of a type from outside the program."""
    return Value("external object", "", name, resolution, held)


def collection(held: Values, resolution: Resolution = Resolution.SCOPE) -> Value:
    """Return a collection with its elements."""
    return Value("collection", "", "collection", resolution, held)


def is_file(value: Value) -> bool:
    """Return whether a value is the module of a file."""
    return value.kind == "module" and not value.name and not value.path.endswith("/")


def found_by(values: Iterable[Value], resolution: Resolution) -> list[Value]:
    """Return the values with a resolution that may be weaker."""
    return [value.found(resolution) for value in values]


def known(values: Iterable[Value]) -> list[Value]:
    """Return the values that are not external names."""
    return [value for value in values if value.kind != "external"]


def functions(values: Iterable[Value]) -> list[Value]:
    """Return the values that are functions."""
    return [value for value in values if value.kind == "function"]


def is_known(value: Value) -> bool:
    """Return whether a value is, or holds, something from the program."""
    return value.kind != "external object" or any(map(is_known, value.held))


def distinct(values: Iterable[Value]) -> Values:
    """Return each value once, with its strongest resolution; at most `MOST_VALUES`."""
    if isinstance(values, (list, tuple)) and len(values) <= 1:
        return tuple(values)
    found: dict[tuple[object, ...], Value] = {}
    for value in values:
        held = value.held if value.kind == "external object" else value.record
        key = (value.kind, value.path, value.name, held)
        known = found.get(key)
        if known is None:
            found[key] = value
            if len(found) >= MOST_VALUES:
                break
        elif value.kind == "collection" and value.held != known.held:
            found[key] = collection(distinct([*known.held, *value.held]), min(known.resolution, value.resolution))
        elif value.resolution < known.resolution:
            found[key] = value
    return tuple(found.values())
