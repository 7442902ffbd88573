"""Statements with other names in them."""

from collections.abc import Container, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from docindex_dagster.callgraph.ir import (
    UNKNOWN,
    Argument,
    Assignment,
    CallSite,
    Expression,
    Fill,
    Generic,
    Name,
    Statement,
    TypeRef,
    children,
    rewritten,
)

Names = Mapping[Expression, Expression]
"""What is written in place of names."""


_Statement = TypeVar("_Statement", bound=Statement)


def expressions_of(statement: Statement) -> Sequence[Expression]:
    """The expressions of a statement."""
    if isinstance(statement, CallSite):
        given = statement.arguments
        return [statement.callee, *[argument.value for argument in given]] if given else (statement.callee,)
    match statement:
        case Assignment():
            return statement.target, statement.value
        case Fill():
            return [argument.value for argument in statement.arguments]
        case Generic():
            return (statement.bound,)
        case _:
            return (getattr(statement, "value", UNKNOWN),)


def renamed(statement: _Statement, names: Names) -> _Statement:
    """The statement with other names."""
    return tuple.__new__(type(statement), [_with_names(part, names) for part in statement])


def _with_names(part: Any, names: Names) -> Any:
    match part:
        case str() | int() | TypeRef():
            return part
        case Argument(value):
            return part._replace(value=_with_names(value, names))
        case tuple():
            return tuple([_with_names(one, names) for one in part])
        case _:
            return rewritten(part, lambda leaf: names.get(leaf, leaf))


class NamesIn(dict[Expression, tuple[str, ...]]):
    """By expression, the names in it that are among some."""

    def __init__(self, names: Container[str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, whole: Expression) -> tuple[str, ...]:
        """Look for them."""
        if isinstance(whole, Name):
            found: tuple[str, ...] = (whole.text,) if whole.text in self._names else ()
        else:
            inner = [self[part] for part in children(whole)]
            found = inner[0] if len(inner) == 1 else tuple(chain.from_iterable(inner))
        self[whole] = found
        return found
