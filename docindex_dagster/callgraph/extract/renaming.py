"""Statements with other names in them."""

from collections.abc import Container, Sequence
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
)


class Renaming(dict[Expression, Expression]):
    """By expression, the same with other names: made of the names to replace, and filled as it is asked."""

    def __missing__(self, whole: Expression) -> Expression:
        """Rename what the expression is made of."""
        parts = children(whole)
        if tuple([self[part] for part in parts]) == parts:
            self[whole] = whole
            return whole
        form: Any = type(whole)
        found: Expression = form(*[self._renamed(getattr(whole, name)) for name in form.__match_args__])
        self[whole] = found
        return found

    def _renamed(self, value: Any) -> Any:
        """A field of an expression."""
        if isinstance(value, tuple):
            return tuple([self._renamed(one) for one in value])
        return value if isinstance(value, str | int) else self[value]


_Statement = TypeVar("_Statement", bound=Statement)
_NAMELESS = frozenset({str, int, bool, TypeRef})


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


def renamed(statement: _Statement, names: Renaming) -> _Statement:
    """The statement with other names."""
    return tuple.__new__(type(statement), [_with_names(part, names) for part in statement])


def _with_names(part: Any, names: Renaming) -> Any:
    kind = type(part)
    if kind in _NAMELESS:
        return part
    if kind is Argument:
        value = names[part.value]
        return part if value is part.value else part._replace(value=value)
    return tuple([_with_names(one, names) for one in part]) if kind is tuple else names[part]


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
