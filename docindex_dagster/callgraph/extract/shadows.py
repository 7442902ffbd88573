"""Telling variables of one name apart where a language lets a block hide those around it.

Each declaration is seen in a part of the file. Where a function declares a name again, or a name also means something
outside of where it is declared, the declarations get names of their own: `order`, `order~2`.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from docindex_dagster.callgraph.extract.syntax import Blocks
from docindex_dagster.callgraph.ir import (
    Assignment,
    CallSite,
    Expression,
    Fill,
    Name,
    Parameter,
    Return,
    Statement,
    expressions_of,
    rewritten,
    scope_of,
    walk,
    with_expressions,
    with_values,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_SIGNS = frozenset({"=", "<-"})  # between a name and its value
_CALLS = frozenset({"call", "read"})  # whose callees may be variables
_LONGEST_SEARCH = 300  # declarations before a use


class Region(NamedTuple):
    """Where a declaration is seen."""

    start: int
    end: int
    block: int  # the node around it; 0 where each declaration hides those before it


class Placed(NamedTuple):
    """A statement, its first byte, and where what it declares is seen."""

    statement: Statement
    start: int
    region: Region | None = None


def region_of(blocks: Blocks, name: "Node", within: "Node | None") -> Region | None:
    """Where a declared name is seen; None where it is assigned only."""
    start, is_statement = name.end_byte, False
    node = name.parent
    while node is not None and node.type not in blocks.around:
        if node.type in blocks.assignments:
            return None
        if node.type in blocks.statements:
            start, is_statement = node.end_byte, True
        node = node.parent
    node = within or node
    if node is None:
        return None
    behind = blocks.after.get(node.type)
    if behind and (value := node.child_by_field_name(behind)):
        start = value.end_byte
    if name.parent is not None and name.parent.type in blocks.conditions:
        start = _end_of_value(name)
    return Region(max(start, node.start_byte), node.end_byte, 0 if is_statement else node.id)


def _end_of_value(name: "Node") -> int:
    """Where the value ends that is written behind a name, if any is."""
    sign = name.next_sibling
    value = sign.next_sibling if sign is not None and sign.type in _SIGNS else None
    return value.end_byte if value is not None else name.end_byte


class _Declared(NamedTuple):
    start: int
    end: int
    scope: str
    number: int


class _Several(NamedTuple):
    """The declarations of a name in their order."""

    starts: list[int]
    declared: list[_Declared]


_Key = tuple[str, str, int]


def with_unique_names(places: Sequence[Placed], functions: frozenset[str]) -> Sequence[Placed]:
    """The places, with names of their own for variables that hide others."""
    keys = [_key(place) if place.region is not None else None for place in places]
    declared, numbers = _declared(zip(places, keys, strict=True), functions)
    if not declared:
        return places
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for (scope, name, _), number in numbers.items():
        counts[scope, name] = max(counts[scope, name], number)
    names_in = _NamesIn(declared)
    uses = [_uses(one.statement, names_in, is_declared=key in numbers) for one, key in zip(places, keys, strict=True)]
    outside = _meant_outside(zip(places, uses, strict=True), declared, counts)
    outside -= {(one.statement.scope, one.statement.name) for one in places if isinstance(one.statement, Parameter)}
    ambiguous = {name for _, name in outside} | {name for (_, name), count in counts.items() if count > 1}
    renaming = _Renaming(declared, outside, ambiguous, names_in)
    return [
        place
        if ambiguous.isdisjoint(names) and (key is None or key[1] not in ambiguous)
        else renaming.unique(place, numbers.get(key) if key is not None else None)
        for place, key, names in zip(places, keys, uses, strict=True)
    ]


class _Renaming(NamedTuple):
    """Which names are given to variables."""

    declared: Mapping[str, _Several]
    outside: AbstractSet[tuple[str, str]]  # the names by function that mean something outside, too
    ambiguous: AbstractSet[str]
    names_in: "_NamesIn"

    def unique(self, place: Placed, number: int | None) -> Placed:
        """A place with other names; with a number where it declares a variable."""
        one = _changed(place.statement, lambda whole: self._renamed(whole, place.start), is_declared=number is not None)
        if number is not None and isinstance(one, Assignment) and isinstance(one.target, Name):
            one = one._replace(target=self._numbered(one.target.text, one.scope, number))
        return place if one is place.statement else place._replace(statement=one)

    def _renamed(self, whole: Expression, at: int) -> Expression:
        def renamed(leaf: Expression) -> Expression:
            if not isinstance(leaf, Name) or leaf.text not in self.ambiguous:
                return leaf
            found = _seen(self.declared.get(leaf.text), at)
            return self._numbered(leaf.text, found.scope, found.number) if found else leaf

        return whole if self.ambiguous.isdisjoint(self.names_in[whole]) else rewritten(whole, renamed)

    def _numbered(self, name: str, scope: str, number: int) -> Name:
        return Name(f"{name}~{number}" if number > 1 or (scope, name) in self.outside else name)


def _changed(statement: Statement, change: Callable[[Expression], Expression], *, is_declared: bool) -> Statement:
    """The statement with its expressions changed; what an assignment declares is none of them."""
    if isinstance(statement, Assignment) and is_declared:
        return statement._replace(value=change(statement.value))
    if isinstance(statement, CallSite) and statement.kind not in _CALLS:
        given = with_values(statement.arguments, change)
        return statement if given is statement.arguments else statement._replace(arguments=given)
    return with_expressions(statement, change)


def _declares(statement: Statement) -> str:
    """The name of the variable or parameter that a statement is about; "" for none."""
    match statement:
        case Assignment(target=Name(text)) | Parameter(name=text):
            return text
        case _:
            return ""


def _key(place: Placed) -> _Key | None:
    if place.region is None:
        return None
    return scope_of(place.statement), _declares(place.statement), place.region.block or -place.region.start


def _declared(
    places: Iterable[tuple[Placed, _Key | None]], functions: frozenset[str]
) -> tuple[dict[str, _Several], dict[_Key, int]]:
    """The declarations by name, in their order, and their numbers."""
    declared: dict[str, list[_Declared]] = defaultdict(list)
    numbers: dict[_Key, int] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for place, key in places:
        region = place.region
        if region is None or key is None:
            continue
        scope, name, _ = key
        if scope not in functions or not name.isidentifier() or scope.rpartition(".")[2].partition("~")[0] == name:
            continue
        if key not in numbers:
            counts[scope, name] += 1
            numbers[key] = counts[scope, name]
        declared[name].append(_Declared(region.start, region.end, scope, numbers[key]))
    in_order = {name: sorted(several, key=itemgetter(0)) for name, several in declared.items()}
    return {name: _Several([one.start for one in several], several) for name, several in in_order.items()}, numbers


def _seen(several: _Several | None, at: int) -> _Declared | None:
    """The last declaration that is seen at a place."""
    if several is None:
        return None
    last = bisect_right(several.starts, at)
    for index in range(last - 1, max(-1, last - 1 - _LONGEST_SEARCH), -1):
        one = several.declared[index]
        if one.end > at:
            return one
    return None


class _NamesIn(dict[Expression, tuple[str, ...]]):
    """By expression, the names in it that are declared."""

    def __init__(self, declared: Mapping[str, _Several]) -> None:
        super().__init__()
        self._declared = declared

    def __missing__(self, whole: Expression) -> tuple[str, ...]:
        """Look for them."""
        names = [one.text for one in walk(whole) if isinstance(one, Name) and one.text in self._declared]
        found = self[whole] = tuple(names)
        return found


def _uses(statement: Statement, names_in: _NamesIn, *, is_declared: bool) -> Sequence[str]:
    """The names of declared variables that a statement uses."""
    match statement:
        case Assignment(value=value) if is_declared:
            return names_in[value]
        case CallSite(kind="new"):
            used: Iterable[Expression] = [argument.value for argument in statement.arguments]
        case CallSite(kind="call" | "read") | Assignment() | Parameter() | Return() | Fill():
            used = expressions_of(statement)
        case _:
            return ()
    return [name for expression in used for name in names_in[expression]]


def _meant_outside(
    uses: Iterable[tuple[Placed, Sequence[str]]],
    declared: Mapping[str, _Several],
    counts: Mapping[tuple[str, str], int],
) -> set[tuple[str, str]]:
    """The names that a function also uses where none of its declarations is seen."""
    found = set()
    for place, names in uses:
        scope = scope_of(place.statement)
        for name in names:
            if (scope, name) in counts and _seen(declared[name], place.start) is None:
                found.add((scope, name))
    return found
