"""Telling the object itself from other names where a language has no word for it, but a first parameter.

In Python `self` and `cls` are `this` in methods that begin their parameters with them, and in functions in those, but
not where a function assigns to them.
"""

from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Assignment,
    Expression,
    Name,
    Parameter,
    Statement,
    expressions_of,
    rewritten,
    scope_of,
    walk,
    with_expressions,
)

_SELF, _CLASS = Name("self"), Name("cls")


def with_this(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements with `this` where the object itself, or its class, is meant."""
    first, others = _named(statements)
    classes = {scope.rpartition(".")[0] for scope, name in first.items() if _is_self(Name(name))}

    def is_this(scope: str, name: Expression) -> bool:
        for around in _around(scope):
            if (around, name) in others:
                return around in classes and others[around, name] is UNKNOWN  # of a function without a name in it
            if around in first and Name(first[around]) is name:
                return True
        return False

    mentions = _Mentions()
    for one in statements:
        if not any(map(mentions.__getitem__, expressions_of(one))):
            yield one
            continue
        scope = scope_of(one)
        meant = {name: THIS for name in (_SELF, _CLASS) if is_this(scope, name)}
        yield with_expressions(one, lambda whole, meant=meant: rewritten(whole, lambda leaf: meant.get(leaf, leaf)))  # type: ignore[misc]


def _named(statements: Iterable[Statement]) -> tuple[dict[str, str], dict[tuple[str, Expression], Expression]]:
    """The first parameters of functions, and what else has a name in them that such a parameter may have."""
    first: dict[str, str] = {}
    others: dict[tuple[str, Expression], Expression] = {}
    for one in statements:
        if isinstance(one, Parameter) and one.scope not in first:
            first[one.scope] = one.name
        elif isinstance(one, Parameter):
            others[one.scope, Name(one.name)] = one.value
        elif isinstance(one, Assignment) and _is_self(one.target):
            others[one.scope, one.target] = one.value
    return first, others


def _is_self(expression: Expression) -> bool:
    return expression is _SELF or expression is _CLASS


class _Mentions(dict[Expression, bool]):
    """By expression, whether a name is in it that may be the object itself."""

    def __missing__(self, whole: Expression) -> bool:
        """Look for one."""
        found = self[whole] = any(map(_is_self, walk(whole)))
        return found


def _around(scope: str) -> Iterable[str]:
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]
