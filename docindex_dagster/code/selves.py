"""Telling the object itself from other names where a language has no word for it, but a first parameter.

In Python `self` and `cls` are `this` in methods that begin their parameters with them, and in functions in those, but
not where a function assigns to them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN

if TYPE_CHECKING:
    from docindex_dagster.code.facts import Fact

_SELF = re.compile(r"(?<![\w.#:&\"])(self|cls)(?![\w=\"])")
_NAMES = frozenset({"self", "cls"})
_APART = frozenset({"import", "reexport", "export", "namespace", "receiver"})


def with_this(facts: Sequence["Fact"]) -> Iterator["Fact"]:  # noqa: C901 one walk
    """The facts with `this` where the object itself, or its class, is meant."""
    first: dict[str, str] = {}
    others: dict[tuple[str, str], str] = {}
    for fact in facts:
        if fact.kind == "parameter" and fact.scope not in first:
            first[fact.scope] = fact.name
        elif fact.name in _NAMES and fact.kind in {"bind", "parameter"}:
            others[fact.scope, fact.name] = fact.value
    classes = {scope.rpartition(".")[0] for scope, name in first.items() if name in _NAMES}

    def is_this(scope: str, name: str) -> bool:
        for around in _around(scope):
            if (around, name) in others:
                return around in classes and others[around, name] == UNKNOWN  # of a function without a name in it
            if first.get(around) == name:
                return True
        return False

    for fact in facts:
        written = f"{fact.name} {fact.value}"
        if fact.kind in _APART or ("self" not in written and "cls" not in written):
            yield fact
            continue

        def meant(match: re.Match[str], scope: str = fact.scope) -> str:
            return "this" if is_this(scope, match[1]) else match[1]

        name = fact.name if fact.kind == "parameter" else _SELF.sub(meant, fact.name)
        yield fact._replace(name=name, value=_SELF.sub(meant, fact.value))


def _around(scope: str) -> Iterable[str]:
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]
