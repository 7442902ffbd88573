"""Statements with other names in them, and names of their own for variables that hide others in a block.

Each declaration is seen in a part of the file. Where a function declares a name again, or a name also means something
outside of where it is declared, the declarations get names of their own: `order`, `order~2`.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from docindex_dagster.callgraph.extract.expressions import Blocks, Node
from docindex_dagster.callgraph.ir import (
    FILE,
    UNKNOWN,
    Argument,
    Assignment,
    CallSite,
    Expression,
    Fill,
    Generic,
    Name,
    Parameter,
    Return,
    Statement,
    TypeRef,
    children,
    scope_of,
)

_SIGNS = frozenset({"=", "<-"})  # between a name and its value
_CALLS = frozenset({"call", "read"})  # whose callees may be variables


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


class Region(NamedTuple):
    """Where a declaration is seen."""

    start: int
    end: int
    block: int  # the node around it; 0 where each declaration hides those before it


Placed = tuple[Statement, int, Region | None]
"""A statement, its first byte, and the region in which its declaration is visible."""


def region_of(blocks: Blocks, name: Node, within: Node | None) -> Region | None:
    """Where a declared name is seen; None where it is assigned only."""
    start, is_statement = name.end_byte, False
    node = around = name.parent
    while node is not None and (kind := node.type) not in blocks.around:
        if kind in blocks.assignments:
            return None
        if kind in blocks.statements:
            start, is_statement = node.end_byte, True
        node = node.parent
    node = within or node
    if node is None:
        return None
    if (behind := blocks.after.get(node.type)) and (value := node.child_by_field_name(behind)):
        start = value.end_byte
    if around is not None and around.type in blocks.conditions:
        start = _end_of_value(name)
    return Region(max(start, node.start_byte), node.end_byte, 0 if is_statement else node.id)


def _end_of_value(name: Node) -> int:
    """Where the value ends that is written behind a name, if any is."""
    sign = name.next_sibling
    value = sign.next_sibling if sign is not None and sign.type in _SIGNS else None
    return value.end_byte if value is not None else name.end_byte


class _Declared(NamedTuple):
    """A declaration that a function numbers, since it may have others of the name."""

    start: int
    end: int
    scope: str
    name: str
    number: int


_Uses = Mapping[str, _Declared | None]
"""The names that a statement uses, and which declaration of each is seen where it stands."""


def with_unique_names(places: Sequence[Placed], functions: frozenset[str]) -> Iterator[Statement]:
    """The statements, with names of their own for variables that hide others."""
    declared = [*_declared(places, functions)]
    uses = [*_uses(places, declared)]
    known = {(one.scope, one.name) for one in declared if one is not None}
    outside = {
        (scope_of(statement), name)
        for (statement, _, _), used in zip(places, uses, strict=True)
        for name, seen in used.items()
        if seen is None
    }
    parameters = {(one.scope, one.name) for one, _, _ in places if isinstance(one, Parameter)}
    outside = (outside & known) - parameters
    others = {
        one: Name(f"{one.name}~{one.number}")
        for one in declared
        if one is not None and (one.number > 1 or (one.scope, one.name) in outside)
    }
    for (statement, _, _), own, used in zip(places, declared, uses, strict=True):
        names: dict[Expression, Expression] = {
            Name(name): others[seen] for name, seen in used.items() if seen is not None and seen in others
        }
        one = renamed(statement, Renaming(names)) if names else statement
        if isinstance(one, Assignment) and own is not None and (names or own in others):
            yield one._replace(target=others.get(own, Name(own.name)))
        elif names and isinstance(one, CallSite) and isinstance(statement, CallSite) and one.kind not in _CALLS:
            yield one._replace(callee=statement.callee)
        else:
            yield one


def _declared(places: Iterable[Placed], functions: frozenset[str]) -> Iterator[_Declared | None]:
    """What each statement declares in a function, numbered by their names; None where it declares nothing."""
    numbers: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # by scope and name those of blocks
    for statement, _, region in places:
        name = _name_declared(statement) if region is not None else ""
        scope = scope_of(statement) if name else FILE
        if region is None or scope not in functions or scope.rpartition(".")[2].partition("~")[0] == name:
            yield None
            continue
        known = numbers[scope, name]
        number = known.setdefault(region.block or -region.start, len(known) + 1)
        yield _Declared(region.start, region.end, scope, name, number)


def _name_declared(statement: Statement) -> str:
    """The name of the variable or parameter that a statement is about; "" for none."""
    match statement:
        case Assignment(target=Name(name)) | Parameter(name=name) if name.isidentifier():
            return name
        case _:
            return ""


def _uses(places: Iterable[Placed], declared: Sequence[_Declared | None]) -> Iterator[_Uses]:
    """Of each statement the names of declared variables that it uses, with the declarations that are seen there."""
    upcoming = sorted(filter(None, declared), key=itemgetter(0))[::-1]
    names_in = NamesIn({one.name for one in upcoming})
    around: dict[str, list[_Declared]] = defaultdict(list)  # by name, the last one at the end
    for (statement, start, _), own in zip(places, declared, strict=True):
        while upcoming and upcoming[-1].start <= start:
            one = upcoming.pop()
            around[one.name].append(one)
        used: dict[str, _Declared | None] = {}
        for expression in _read(statement, is_declared=own is not None):
            for name in names_in[expression]:
                seen = around[name]
                while seen and seen[-1].end <= start:
                    seen.pop()
                used[name] = seen[-1] if seen else None
        yield used


def _read(statement: Statement, *, is_declared: bool) -> Sequence[Expression]:
    """The expressions of a statement that use variables."""
    if isinstance(statement, CallSite):
        expressions = expressions_of(statement)
        return expressions if statement.kind in _CALLS else expressions[1:]
    if isinstance(statement, Assignment) and is_declared:
        return (statement.value,)
    return expressions_of(statement) if isinstance(statement, Assignment | Parameter | Return | Fill) else ()
