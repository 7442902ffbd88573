"""Scopes of statements: the innermost enclosing definition, with some exceptions.

A decorator is outside the definition it decorates, the default of a parameter runs where its function is defined, and
the value of a property belongs to the enclosing scope.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph.extract.captured_statements import PositionedCapture
from docindex_dagster.callgraph.extract.renaming import Placed
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
"""The kinds of symbols that are scopes."""
CALLABLE = frozenset({"function", "method"})
_PLACED = frozenset({Import, Assignment, Parameter, Base})  # fields: kind, scope, …, line, byte


class Scoping:
    """A walk through the places of a file that assigns scopes and collects marks."""

    def __init__(self, symbols: Sequence[Symbol], ids: Sequence[str]) -> None:
        self.properties: list[str] = []
        self.hidden: list[str] = []
        self.namespaces: list[str] = []
        self._upcoming = _scopes(symbols, ids)[::-1]
        self._open: list[tuple[Symbol, str]] = []
        self._until = 0  # offset at which the enclosing symbols change
        self._scope = self._outer = FILE  # ids of the innermost scope and of its parent
        self._symbol: Symbol | None = None
        self._variables: set[tuple[str, str]] = set()
        # The ends of the last decorator, property value and parameter default.
        self._decorated = self._initial = self._outside = 0

    def statements(self, places: Iterable[PositionedCapture]) -> Iterator[Placed]:
        """Yield the statements with their scopes."""
        for place in places:
            start, found = place.start, place.found
            if start >= self._until:
                self._go_to(start)
            scope = self._scope
            symbol = self._symbol
            if symbol is not None and symbol.kind == "property" and self._is_outside(place, symbol):
                scope = self._outer
            if isinstance(found, Mark):
                self._note(found, place, self._outer if start < self._decorated else scope)
                continue
            one = self._call(place, found, scope) if isinstance(found, CallSite) else self._scoped(place, found, scope)
            if one is not None:
                yield one

    def _is_outside(self, place: PositionedCapture, symbol: Symbol) -> bool:
        """Return whether a place in a property is outside its accessors."""
        is_itself = isinstance(place.found, Assignment) and place.found.target is Name(symbol.name)
        return place.start < self._initial or is_itself

    def _note(self, mark: Mark, place: PositionedCapture, scope: str) -> None:
        """Record a mark for a scope, or the end of the code that it applies to."""
        match mark.kind:
            case "property":
                self.properties.append(scope)
            case "hidden":
                self.hidden.append(scope)
            case "namespace":
                self.namespaces.append(mark.name)
            case "initial":
                self._initial = place.end
            case "outer":
                self._outside = place.end

    def _call(self, place: PositionedCapture, found: CallSite, scope: str) -> Placed | None:
        """Return a call with its scope; None for a bare name that is a variable."""
        start, callee = place.start, found.callee
        scope = self._outer if start < self._outside else scope
        if isinstance(callee, NameOrCall):
            if (scope, callee.text) in self._variables:
                return None
            callee = Name(callee.text)
        scope = self._outer if start < self._decorated else scope
        parts = (found.kind, scope, callee, found.arguments, place.line, start)
        return tuple.__new__(CallSite, parts), start, None

    def _scoped(self, place: PositionedCapture, found: Statement, scope: str) -> Placed | None:
        """Return the statement of a place with its scope; None for an assignment that defines the current function."""
        start, region = place.start, place.region
        is_outside = start < self._decorated
        if isinstance(found, Assignment):
            if isinstance(found.target, Name):
                self._variables.add((scope, found.target.text))
            if _defines(found, self._symbol):
                if not is_outside and head(found.target) is not THIS:
                    return None
                is_outside = True
        elif isinstance(found, Parameter):
            self._variables.add((scope, found.name))
        elif isinstance(found, Decorator):
            self._decorated = place.end
            return Decorator(self._outer, scope, found.value, place.line, start), start, None
        elif not is_outside and (isinstance(found, Export) or (isinstance(found, Import) and found.is_passed_on)):
            scope, region = FILE, None
        return _at(found, self._outer if is_outside else scope, place.line, start), start, region

    def _go_to(self, start: int) -> None:
        upcoming, around = self._upcoming, self._open
        while upcoming and upcoming[-1][0].start_byte <= start:
            successor = upcoming.pop()
            self._close(successor[0].start_byte)
            around.append(successor)
        self._close(start)
        self._symbol, self._scope = around[-1] if around else (None, FILE)
        self._outer = around[-2][1] if len(around) > 1 else FILE
        ends = [around[-1][0].end_byte] if around else []
        starts = [upcoming[-1][0].start_byte] if upcoming else []
        self._until = min(ends + starts, default=sys.maxsize)

    def _close(self, start: int) -> None:
        while self._open and self._open[-1][0].end_byte <= start:
            self._open.pop()


def _at(statement: Statement, scope: str, line: int, byte: int) -> Statement:
    """Return the statement with its scope and position."""
    if type(statement) in _PLACED:
        return tuple.__new__(type(statement), (statement[0], scope, *statement[2:-2], line, byte))
    return statement if isinstance(statement, Export) else statement._replace(scope=scope)


def _defines(one: Assignment, symbol: Symbol | None) -> bool:
    """Return whether an assignment defines the current function."""
    if one.value is not UNKNOWN or one.role != "bind" or symbol is None or symbol.kind not in CALLABLE:
        return False
    name = path_of(one.target)
    return bool(name) and f".{symbol.qualified_name}".endswith(f".{name}")


def _scopes(symbols: Sequence[Symbol], ids: Sequence[str]) -> list[tuple[Symbol, str]]:
    """Return the symbols that are scopes, with their ids, outer ones first."""
    named = [symbol for symbol in symbols if symbol.kind != "type"]  # a `typedef` may name one of these
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
