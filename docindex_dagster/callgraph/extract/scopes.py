"""The scope of each statement: the innermost definition around the place where it stands, with some exceptions.

What decorates a definition stands outside of it, the default of a parameter runs where its function is defined, and the
value of a property belongs to what is around it.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from docindex_dagster.callgraph.extract.places import Place
from docindex_dagster.callgraph.extract.shadows import Placed
from docindex_dagster.callgraph.extract.statements import Mark
from docindex_dagster.callgraph.ir import (
    FILE,
    THIS,
    UNKNOWN,
    Assignment,
    Base,
    CallSite,
    Decorator,
    Export,
    Import,
    Name,
    NameOrCall,
    Parameter,
    Statement,
    head,
    path_of,
)
from docindex_dagster.code.symbols import Symbol

_SCOPES = frozenset(
    {
        "class",
        "enum",
        "function",
        "impl",
        "interface",
        "macro",
        "method",
        "module",
        "property",
        "struct",
        "trait",
        "type",
        "union",
    }
)
"""The kinds of symbol in which names have a meaning of their own."""
_PLACED = (CallSite, Import, Assignment, Parameter, Base)  # what has a scope behind its kind, and a place at its end
CALLABLE = frozenset({"function", "method"})


@dataclass(slots=True)
class Marked:
    """What marks say: the ids of methods, and the namespaces of the file."""

    properties: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    def add(self, mark: Mark, scope: str) -> None:
        """Note what is said of a scope."""
        if mark.kind == "property":
            self.properties.append(scope)
        elif mark.kind == "hidden":
            self.hidden.append(scope)
        elif mark.kind == "namespace":
            self.namespaces.append(mark.name)


def with_scopes(
    places: Iterable[Place], symbols: Sequence[Symbol], ids: Sequence[str], marked: Marked
) -> Iterator[Placed]:
    """The statements, each with its scope; what marks say goes to `marked`."""
    scoping = _Scoping(_Around(_scopes(symbols, ids)))
    for place in places:
        scope = scoping.scope_at(place)
        if isinstance(place.found, Mark):
            scoping.see(place, place.found)
            marked.add(place.found, scoping.around.outer if place.start < scoping.decorated else scope)
        elif (found := scoping.scoped(place, place.found, scope)) is not None:
            yield found


@dataclass(slots=True)
class _Scoping:
    """A walk through the places of a file."""

    around: "_Around"
    variables: set[tuple[str, str]] = field(default_factory=set)
    # Where the last decorator, the last value of a property and the last default of a parameter end.
    decorated: int = 0
    initial: int = 0
    outside: int = 0

    def scope_at(self, place: Place) -> str:
        """The scope of a place."""
        around = self.around
        if place.start >= around.until:
            around.go_to(place.start)
        symbol = around.symbol
        is_property = symbol is not None and symbol.kind == "property"
        return around.outer if is_property and self._is_outside(place, symbol) else around.scope

    def _is_outside(self, place: Place, symbol: Symbol | None) -> bool:
        """Whether a place in a property is not in one of its functions."""
        is_itself = isinstance(place.found, Assignment) and symbol and place.found.target is Name(symbol.name)
        return place.start < self.initial or bool(is_itself)

    def see(self, place: Place, mark: Mark) -> None:
        """Note where what a mark is about ends."""
        if mark.kind == "initial":
            self.initial = place.end
        elif mark.kind == "outer":
            self.outside = place.end

    def scoped(self, place: Place, found: Statement, scope: str) -> Placed | None:
        """The statement of a place; none of a name that is no call, or of a function that is just defined."""
        start, line, outer = place.start, place.line, self.around.outer
        is_outside, region = start < self.decorated, place.region
        if isinstance(found, CallSite):
            scope = outer if start < self.outside else scope
            if isinstance(found.callee, NameOrCall):  # a name alone is a call where it is no variable
                if (scope, found.callee.text) in self.variables:
                    return None
                found = found._replace(callee=Name(found.callee.text))
        elif isinstance(found, Assignment):
            if isinstance(found.target, Name):
                self.variables.add((scope, found.target.text))
            is_defined = _defines(found, self.around.symbol)
            if is_defined and not is_outside and head(found.target) is not THIS:
                return None
            is_outside = is_outside or is_defined
        elif isinstance(found, Parameter):
            self.variables.add((scope, found.name))
        elif isinstance(found, Decorator):
            self.decorated = place.end
            return Placed(Decorator(outer, scope, found.value, line, start), start)
        elif not is_outside and (isinstance(found, Export) or (isinstance(found, Import) and found.is_passed_on)):
            scope, region = FILE, None
        return Placed(_at(found, outer if is_outside else scope, line, start), start, region)


def _at(statement: Statement, scope: str, line: int, byte: int) -> Statement:
    """The statement with its scope and place."""
    if isinstance(statement, _PLACED):
        return type(statement)._make((statement[0], scope, *statement[2:-2], line, byte))
    return statement if isinstance(statement, Export) else statement._replace(scope=scope)


def _defines(one: Assignment, symbol: Symbol | None) -> bool:
    """Whether what is assigned is the function that is just defined."""
    if one.role != "bind" or one.value is not UNKNOWN or symbol is None or symbol.kind not in CALLABLE:
        return False
    name = path_of(one.target)
    return bool(name) and f".{symbol.qualified_name}".endswith(f".{name}")


def _scopes(symbols: Sequence[Symbol], ids: Sequence[str]) -> list[tuple[Symbol, str]]:
    """The symbols in which names have a meaning of their own, with their ids, the outer ones first."""
    named = [symbol for symbol in symbols if symbol.kind != "type"]  # which a `typedef` may name
    names = {symbol.qualified_name for symbol in named}
    spans = {(symbol.start_byte, symbol.end_byte) for symbol in named}

    def is_other_name(symbol: Symbol) -> bool:
        is_same = symbol.qualified_name in names or (symbol.start_byte, symbol.end_byte) in spans
        return symbol.kind == "type" and is_same

    scopes = [
        (symbol, identifier)
        for symbol, identifier in zip(symbols, ids, strict=True)
        if symbol.kind in _SCOPES and not is_other_name(symbol)
    ]
    return sorted(scopes, key=lambda item: (item[0].start_byte, -item[0].end_byte))


class _Around:
    """The symbols around a place that moves through a file."""

    def __init__(self, scopes: list[tuple[Symbol, str]]) -> None:
        self._upcoming = scopes[::-1]
        self._open: list[tuple[Symbol, str]] = []
        self.until = 0  # where these are others
        self.scope = self.outer = ""  # the ids of the innermost one, and of the one around that
        self.symbol: Symbol | None = None

    def go_to(self, start: int) -> None:
        upcoming, around = self._upcoming, self._open
        while upcoming and upcoming[-1][0].start_byte <= start:
            successor = upcoming.pop()
            self._close(successor[0].start_byte)
            around.append(successor)
        self._close(start)
        self.symbol, self.scope = around[-1] if around else (None, "")
        self.outer = around[-2][1] if len(around) > 1 else ""
        ends = [around[-1][0].end_byte] if around else []
        starts = [upcoming[-1][0].start_byte] if upcoming else []
        self.until = min(ends + starts, default=sys.maxsize)

    def _close(self, start: int) -> None:
        while self._open and self._open[-1][0].end_byte <= start:
            self._open.pop()
