"""Renaming in statements, and unique names for variables that shadow others in a block.

Each declaration is visible in a region of the file. If a function declares a name again, or uses it outside the region
of its declaration, the declarations get unique names: `order`, `order~2`.
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

_OPERATORS = frozenset({"=", "<-"})  # between a name and its value
_CALLS = frozenset({"call", "read"})  # whose callees may be variables


class Renaming(dict[Expression, Expression]):
    """The renamed expression, by expression; initialized with the names to replace, and filled on demand."""

    def __missing__(self, expression: Expression) -> Expression:
        """Rename the parts of an expression."""
        parts = children(expression)
        if tuple([self[part] for part in parts]) == parts:
            self[expression] = expression
            return expression
        cls: Any = type(expression)
        found: Expression = cls(*[self._renamed(getattr(expression, name)) for name in cls.__match_args__])
        self[expression] = found
        return found

    def _renamed(self, value: Any) -> Any:
        """Rename a field of an expression."""
        if isinstance(value, tuple):
            return tuple([self._renamed(one) for one in value])
        return value if isinstance(value, str | int) else self[value]


_Statement = TypeVar("_Statement", bound=Statement)
_NAMELESS = frozenset({str, int, bool, TypeRef})


def expressions_of(statement: Statement) -> Sequence[Expression]:
    """Return the expressions of a statement."""
    if isinstance(statement, CallSite):
        arguments = statement.arguments
        return [statement.callee, *[one.value for one in arguments]] if arguments else (statement.callee,)
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
    """Return the statement with renamed expressions."""
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
    """The names among `names` that occur in an expression, by expression."""

    def __init__(self, names: Container[str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, expression: Expression) -> tuple[str, ...]:
        """Collect the names in an expression."""
        if isinstance(expression, Name):
            found: tuple[str, ...] = (expression.text,) if expression.text in self._names else ()
        else:
            inner = [self[part] for part in children(expression)]
            found = inner[0] if len(inner) == 1 else tuple(chain.from_iterable(inner))
        self[expression] = found
        return found


class Region(NamedTuple):
    """The bytes in which a declaration is visible."""

    start: int
    end: int
    block: int  # id of the enclosing node; 0 if each declaration shadows earlier ones


Placed = tuple[Statement, int, Region | None]
"""A statement, its first byte, and the region in which its declaration is visible."""


def region_of(blocks: Blocks, name: Node, within: Node | None) -> Region | None:
    """Return the region in which a declared name is visible; None for a plain assignment."""
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
    if (field := blocks.after.get(node.type)) and (value := node.child_by_field_name(field)):
        start = value.end_byte
    if around is not None and around.type in blocks.conditions:
        start = _end_of_value(name)
    return Region(max(start, node.start_byte), node.end_byte, 0 if is_statement else node.id)


def _end_of_value(name: Node) -> int:
    """Return the end of the value assigned to a name, or of the name if it has no value."""
    operator = name.next_sibling
    value = operator.next_sibling if operator is not None and operator.type in _OPERATORS else None
    return value.end_byte if value is not None else name.end_byte


class _Declared(NamedTuple):
    """A declaration, numbered within its function among those with the same name."""

    start: int
    end: int
    scope: str
    name: str
    number: int


_Uses = Mapping[str, _Declared | None]
"""The names that a statement uses, each with its visible declaration."""


def with_unique_names(places: Sequence[Placed], functions: frozenset[str]) -> Iterator[Statement]:
    """Yield the statements with unique names for variables that shadow others."""
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
    """Yield the declaration of each statement in a function; None if it declares nothing."""
    numbers: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # by scope and name, then by block
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
    """Return the name of the variable or parameter that a statement declares; "" if there is none."""
    match statement:
        case Assignment(target=Name(name)) | Parameter(name=name) if name.isidentifier():
            return name
        case _:
            return ""


def _uses(places: Iterable[Placed], declared: Sequence[_Declared | None]) -> Iterator[_Uses]:
    """Yield, for each statement, the declared variables that it uses, with their visible declarations."""
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
    """Return the expressions of a statement that use variables."""
    if isinstance(statement, CallSite):
        expressions = expressions_of(statement)
        return expressions if statement.kind in _CALLS else expressions[1:]
    if isinstance(statement, Assignment) and is_declared:
        return (statement.value,)
    return expressions_of(statement) if isinstance(statement, Assignment | Parameter | Return | Fill) else ()
