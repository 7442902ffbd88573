"""What an expression may stand for, and how that was found."""

from enum import IntEnum
from typing import NamedTuple

FUNCTION_TYPE = "func"  # as `types.py` writes it


class Kind(IntEnum):
    """Sorts of things that have members or can be called."""

    FUNCTION = 0
    CLASS = 1
    OBJECT = 2
    MODULE = 3
    EXTERNAL = 4  # of another source, the standard library, or built in
    EXTERNAL_OBJECT = 5
    COLLECTION = 6
    PARENT = 7  # what a class inherits
    LITERAL = 8  # an object that is written as one: a collection with names
    RECORD = 9  # the same without a name of its own: the scope in which it stands, and its expression


class How(IntEnum):
    """How a name was followed: the weakest step decides. The value orders them."""

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


# How much an edge is to be believed, and what it says of how it was found.
CONFIDENCE = {
    How.SCOPE: 1.0,
    How.FILE: 1.0,
    How.IMPORT: 1.0,
    How.PACKAGE: 0.95,
    How.RECEIVER: 0.95,
    How.INHERITED: 0.95,
    How.RETURNED: 0.9,
    How.ELEMENT: 0.85,
    How.ARGUMENT: 0.8,
    How.UNIQUE: 0.6,
}
NAMES = {
    How.SCOPE: "same scope",
    How.FILE: "same file",
    How.IMPORT: "imported name",
    How.PACKAGE: "same package",
    How.RECEIVER: "type of the receiver",
    How.INHERITED: "class hierarchy",
    How.RETURNED: "returned type",
    How.ELEMENT: "element of a collection",
    How.ARGUMENT: "argument of a caller",
    How.UNIQUE: "unique name",
}


class Value(NamedTuple):
    """One thing that an expression may stand for.

    A function, class or object is named by its path and the id of its definition; a module by its path; what is
    external by its dotted name. `held` are what a collection holds, or the arguments of a generic type; of a function,
    the object whose method it is.
    """

    kind: Kind
    path: str
    name: str
    how: How = How.SCOPE
    held: "tuple[Value, ...]" = ()

    def found(self, how: How) -> "Value":
        """The same, found by a step that may be weaker."""
        return self if how <= self.how else self._replace(how=how)


def is_known(value: Value) -> bool:
    """Whether something of the program is in a value."""
    return value.kind is not Kind.EXTERNAL_OBJECT or any(map(is_known, value.held))
