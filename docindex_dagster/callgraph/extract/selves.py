"""Telling the object itself from other names where a language has no word for it, but a first parameter.

In Python `self` and `cls` are `this` in methods that begin their parameters with them, and in functions in those, but
not where a function assigns to them.
"""

from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph.extract.renaming import NamesIn, Renaming, expressions_of, renamed
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Assignment,
    Expression,
    Name,
    Parameter,
    Statement,
    scope_of,
)

_SELVES = frozenset({"self", "cls"})


def with_this(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements with `this` where the object itself, or its class, is meant."""
    first, others = _named(statements)
    classes = {scope.rpartition(".")[0] for scope, name in first.items() if name in _SELVES}

    def is_this(scope: str, name: str) -> bool:
        for around in _around(scope):
            if (around, name) in others:
                return around in classes and others[around, name] is UNKNOWN  # of a function without a name in it
            if first.get(around) == name:
                return True
        return False

    names_in = NamesIn(_SELVES)
    renamings: dict[tuple[str, ...], Renaming] = {}  # by the names that are `this`
    meant: dict[str, Renaming] = {}  # by scope
    for one in statements:
        scope = scope_of(one)
        if scope not in meant:
            selves = tuple(name for name in _SELVES if is_this(scope, name))
            meant[scope] = renamings.setdefault(selves, Renaming(dict.fromkeys(map(Name, selves), THIS)))
        has_this = meant[scope] and any(map(names_in.__getitem__, expressions_of(one)))
        yield renamed(one, meant[scope]) if has_this else one


def _named(statements: Iterable[Statement]) -> tuple[dict[str, str], dict[tuple[str, str], Expression]]:
    """The first parameters of functions, and what else has a name in them that such a parameter may have."""
    first: dict[str, str] = {}
    others: dict[tuple[str, str], Expression] = {}
    for one in statements:
        match one:
            case Parameter() if one.scope not in first:
                first[one.scope] = one.name
            case Parameter():
                others[one.scope, one.name] = one.value
            case Assignment(_, scope, Name(name), value) if name in _SELVES:
                others[scope, name] = value
    return first, others


def _around(scope: str) -> Iterable[str]:
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]
