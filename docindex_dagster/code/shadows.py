"""Telling variables of one name apart where a language lets a block hide those around it.

Each declaration is seen in a part of the file. Where a function declares a name again, or a name also means something
outside of where it is declared, the declarations get names of their own: `order`, `order~2`.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

    from docindex_dagster.code.facts import Fact

# A name that begins an expression in the notation of `expressions.py`, or a type, in which no variable is.
_ROOT = re.compile(r":[^()|{}\x1f]*|(?:^|(?<=[(|{,\x1f=]))([^\W\d]\w*)(?![\w=])")
_MENTIONS = frozenset({"call", "read", "new", "bind", "parameter", "return", "fill"})
_USING = frozenset({"call", "read", "bind"})  # whose names are expressions
_SIGNS = frozenset({"=", "<-"})  # between a name and its value
_LONGEST_SEARCH = 300  # declarations before a use


class Region(NamedTuple):
    """Where a declaration is seen."""

    start: int
    end: int
    block: int  # the node around it; 0 where each declaration hides those before it


@dataclass(frozen=True, slots=True)
class Blocks:
    """The types of nodes in which declarations are seen, and those after whose end they are."""

    around: frozenset[str]
    statements: frozenset[str]
    assignments: frozenset[str]  # that declare nothing
    after: Mapping[str, str] = field(default_factory=dict)  # by type of block: the field after which they are seen
    conditions: frozenset[str] = frozenset()  # in which a name is seen after the value that is beside it

    def region(self, name: "Node", within: "Node | None") -> Region | None:
        """Where a declared name is seen; None where it is assigned only."""
        start, is_statement = name.end_byte, False
        node = name.parent
        while node is not None and node.type not in self.around:
            if node.type in self.assignments:
                return None
            if node.type in self.statements:
                start, is_statement = node.end_byte, True
            node = node.parent
        node = within or node
        if node is None:
            return None
        behind = self.after.get(node.type)
        if behind and (value := node.child_by_field_name(behind)):
            start = value.end_byte
        if name.parent is not None and name.parent.type in self.conditions:
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


def with_unique_names(
    facts: Sequence["Fact"], regions: Sequence[Region | None], functions: frozenset[str]
) -> Iterable["Fact"]:
    """The facts with names of their own for variables that hide others."""
    declared, numbers = _declared(facts, regions, functions)
    if not declared:
        return facts
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for (scope, name, _), number in numbers.items():
        counts[scope, name] = max(counts[scope, name], number)
    keys = [_key(fact, region) if region else None for fact, region in zip(facts, regions, strict=True)]
    uses = [(fact, _uses(fact, is_declared=key in numbers)) for fact, key in zip(facts, keys, strict=True)]
    outside = _meant_outside(uses, declared, counts)
    outside -= {(fact.scope, fact.name.lstrip("*")) for fact in facts if fact.kind == "parameter"}

    def numbered(name: str, scope: str, number: int) -> str:
        return f"{name}~{number}" if number > 1 or (scope, name) in outside else name

    def renamed(text: str, at: int) -> str:
        def one(match: re.Match[str]) -> str:
            found = _seen(declared.get(match[1]), at) if match[1] else None
            return numbered(match[1], found.scope, found.number) if found else match[0]

        return _ROOT.sub(one, text)

    ambiguous = {name for _, name in outside} | {name for (_, name), count in counts.items() if count > 1}
    rewritten = []
    for fact, key, (_, names) in zip(facts, keys, uses, strict=True):
        if fact.kind == "bind" and key is not None and key in numbers:
            name = numbered(fact.name, fact.scope, numbers[key])
        elif fact.kind in _USING and not ambiguous.isdisjoint(names):
            name = renamed(fact.name, fact.start_byte)
        else:
            name = fact.name
        is_mention = fact.kind in _MENTIONS and not ambiguous.isdisjoint(names)
        value = renamed(fact.value, fact.start_byte) if is_mention else fact.value
        rewritten.append(fact._replace(name=name, value=value) if (name, value) != (fact.name, fact.value) else fact)
    return rewritten


def _key(fact: "Fact", region: Region) -> tuple[str, str, int]:
    return fact.scope, fact.name.lstrip("*"), region.block or -region.start


def _declared(
    facts: Sequence["Fact"], regions: Sequence[Region | None], functions: frozenset[str]
) -> tuple[dict[str, _Several], dict[tuple[str, str, int], int]]:
    """The declarations by name, in their order, and their numbers."""
    declared: dict[str, list[_Declared]] = defaultdict(list)
    numbers: dict[tuple[str, str, int], int] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for fact, region in zip(facts, regions, strict=True):
        name = fact.name.lstrip("*")
        if region is None or fact.scope not in functions or fact.kind not in {"bind", "parameter"}:
            continue
        if not name.isidentifier() or fact.scope.rpartition(".")[2].partition("~")[0] == name:
            continue
        key = _key(fact, region)
        if key not in numbers:
            counts[fact.scope, name] += 1
            numbers[key] = counts[fact.scope, name]
        declared[name].append(_Declared(region.start, region.end, fact.scope, numbers[key]))
    in_order = {name: sorted(several, key=itemgetter(0)) for name, several in declared.items()}
    return {name: _Several([one.start for one in several], several) for name, several in in_order.items()}, numbers


def _seen(several: _Several | None, at: int) -> _Declared | None:
    """The last declaration that is seen at a place."""
    if several is None:
        return None
    last = bisect_right(several.starts, at)
    for one in reversed(several.declared[max(0, last - _LONGEST_SEARCH) : last]):
        if one.end > at:
            return one
    return None


def _uses(fact: "Fact", *, is_declared: bool) -> tuple[str, ...]:
    """The names that a fact uses."""
    if fact.kind not in _MENTIONS:
        return ()
    names = _names_in(fact.value)
    return _names_in(fact.name) + names if fact.kind in _USING and not is_declared else names


@lru_cache(maxsize=10_000)
def _names_in(text: str) -> tuple[str, ...]:
    return tuple(match[1] for match in _ROOT.finditer(text) if match[1])


def _meant_outside(
    uses: Iterable[tuple["Fact", tuple[str, ...]]],
    declared: dict[str, _Several],
    counts: dict[tuple[str, str], int],
) -> set[tuple[str, str]]:
    """The names that a function also uses where none of its declarations is seen."""
    return {
        (fact.scope, name)
        for fact, names in uses
        for name in names
        if name in declared and (fact.scope, name) in counts and _seen(declared[name], fact.start_byte) is None
    }
