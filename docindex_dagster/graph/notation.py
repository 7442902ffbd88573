"""Expressions in the notation of `code/expressions.py`, taken apart."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal as OneOf
from weakref import WeakValueDictionary

Wanted = OneOf["", "function", "type"]
ANY = -1  # argument


class _OneObject(type):
    """Equal expressions are one object, so that they are compared and hashed as fast as can be."""

    def __call__(cls, *parts: object) -> object:
        key = (cls, *parts)
        known = _EXPRESSIONS.get(key)
        if known is not None:
            return known
        with _MAKING:
            return _EXPRESSIONS.get(key) or _EXPRESSIONS.setdefault(key, super().__call__(*parts))


_EXPRESSIONS: WeakValueDictionary[tuple[object, ...], object] = WeakValueDictionary()
_MAKING = Lock()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Name(metaclass=_OneObject):
    """A name as it is written, with a mark where it can only be a function or a type."""

    name: str
    wanted: Wanted = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Member(metaclass=_OneObject):
    """What an object, class or module has under a name."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Called(metaclass=_OneObject):
    """What a call gives."""

    of: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Made(metaclass=_OneObject):
    """A class of which an object is made; called, it is the object."""

    of: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Item(metaclass=_OneObject):
    """What a collection holds."""

    of: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Typed(metaclass=_OneObject):
    """Something of a declared type, as `types.py` writes it."""

    type: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Literal(metaclass=_OneObject):
    """A literal of a type of the language."""

    type: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Either(metaclass=_OneObject):
    """One of some."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Collection(metaclass=_OneObject):
    """A collection of some."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Record(metaclass=_OneObject):
    """A collection with names; what has none stands there whole."""

    text: str
    parts: "tuple[tuple[str, Expression], ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Written(metaclass=_OneObject):
    """A function that is written as an element of a collection."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Given(metaclass=_OneObject):
    """What a function gives, at a position, to the function that is one of its arguments.

    Of what is given to a function that is any of them, the position counts from 1; 0 is the object that it is in.
    """

    of: "Expression"
    argument: int
    position: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module(metaclass=_OneObject):
    """A module, by its name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Bare(metaclass=_OneObject):
    """A variable, or what a function of that name returns."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Within(metaclass=_OneObject):
    """A name where members of some objects, the innermost first, need no object."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unknown(metaclass=_OneObject):
    """What cannot be followed."""


Expression = (
    Name
    | Member
    | Called
    | Made
    | Item
    | Typed
    | Literal
    | Either
    | Collection
    | Record
    | Written
    | Given
    | Module
    | Bare
    | Within
    | Unknown
)

_UNKNOWN = Unknown()


@lru_cache(maxsize=100_000)
def parse(text: str) -> Expression:
    """The parts of an expression; what is not in the notation is unknown."""
    if text.startswith(":"):
        return Typed(text[1:]) if len(text) > 1 else _UNKNOWN
    if text.isidentifier():
        return Name(text)
    found, at = _expression(text, 0)
    return found if at == len(text) else _UNKNOWN


@lru_cache(maxsize=100_000)
def type_named(name: str) -> Expression:
    """A type by its dotted name."""
    first, *others = name.split(".")
    found: Expression = Name(first, "type")
    for other in others:
        found = Member(found, other)
    return found


def _expression(text: str, at: int) -> tuple[Expression, int]:
    found, at = _primary(text, at)
    while at < len(text):
        if text.startswith("()", at):
            found, at = Called(found), at + 2
        elif text.startswith("[]", at):
            found, at = Item(found), at + 2
        elif text[at] == "@":
            found, at = Made(found), at + 1
        elif text.startswith("^*", at):
            found, at = Given(found, ANY, int(text[at + 2 : at + 3] or 0)), at + 3
        elif text[at] == "^" and text[at + 1 : at + 3].isdigit():
            found, at = Given(found, int(text[at + 1]), int(text[at + 2])), at + 3
        elif text[at] == "'" and isinstance(found, Name):
            found, at = Bare(found.name), at + 1
        elif text[at] == ";":
            name, at = _name(text, at + 1)
            found = Within(found, name)
        elif text[at] == ".":
            name, at = _name(text, at + 1)
            found = Member(found, name)
        else:
            break
    return found, at


def _primary(text: str, at: int) -> tuple[Expression, int]:  # noqa: PLR0911 one a form
    first = text[at : at + 1]
    if first == "(":
        parts, at = _parts(text, at + 1, ")")
        return Either(tuple(part for _, part in parts)), at
    if first == "{":
        parts, end = _parts(text, at + 1, "}")
        if any(name for name, _ in parts):
            return Record(text[at:end], parts), end
        return Collection(tuple(part for _, part in parts)), end
    if first == '"':
        end = text.find('"', at + 1)
        return (Module(text[at + 1 : end]), end + 1) if end > 0 else (_UNKNOWN, len(text))
    if first == "&":
        name, end = _name(text, at + 1)
        return Written(name), end
    if first == ":":
        end = _end_of_type(text, at + 1)
        return Typed(text[at + 1 : end]), end
    name, end = _name(text, at)
    if name.startswith("#"):
        return Literal(name[1:]), end
    return (Name(name), end) if name and name != "?" else (_UNKNOWN, max(end, at + 1))


def _parts(text: str, at: int, close: str) -> tuple[tuple[tuple[str, Expression], ...], int]:
    """The parts up to a bracket, with their names."""
    parts = []
    while at < len(text) and text[at] != close:
        name = _PART_NAME.match(text, at)
        part, at = _expression(text, name.end() if name else at)
        parts.append((name[1] if name else "", part))
        at += text[at : at + 1] in {",", "|"}
    return tuple(parts), at + 1


_NAME_END = re.compile(r"[.(){}|,@\[\]^'=;]")
_PART_NAME = re.compile(r"(#?[^\W\d]\w*[?!]?)=")


def _name(text: str, at: int) -> tuple[str, int]:
    end = _NAME_END.search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop], stop


def _end_of_type(text: str, at: int) -> int:
    """Where a type ends, whose arguments may hold commas."""
    depth = 0
    for index in range(at, len(text)):
        character = text[index]
        depth += (character == "<") - (character == ">")
        if depth == 0 and character in "(){}|,@^;[]":
            return index
    return len(text)


def written(expression: Expression) -> str:
    """A name or path as it is written; "" for anything else."""
    match expression:
        case Name(name):
            return name
        case Member(of, name):
            before = written(of)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


def arguments_of(written: str) -> Iterator[str]:
    """The arguments of a generic type."""
    inside = written.partition("<")[2][:-1]
    if not inside:
        return
    depth, start = 0, 0
    for at, character in enumerate(inside):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            yield inside[start:at]
            start = at + 1
    yield inside[start:]
