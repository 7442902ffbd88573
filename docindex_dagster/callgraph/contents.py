"""What collections hold, by the calls and assignments that put something into them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from docindex_dagster.callgraph.ir import (
    FILE,
    Assignment,
    Attribute,
    CallSite,
    Collection,
    Definition,
    Element,
    Expression,
    Function,
    Literal,
    Name,
    NameOrCall,
    Unknown,
    head,
    whole,
)
from docindex_dagster.callgraph.nesting import around

# Methods by which something is put into a collection; it is what they are given last.
_FILLING_NAMES = """
    append add push put set insert unshift register subscribe extend appendleft push_back emplace_back Add enqueue offer
    addLast addFirst push_front emplace setdefault << on connect store prepend
"""
_FILLING = frozenset(_FILLING_NAMES.split())


def contents_of(calls: Iterable[CallSite]) -> Iterator[Assignment]:
    """What is put into collections, as if it were assigned to one of their elements."""
    for call in calls:
        callee, given = call.callee, call.arguments[-1] if call.arguments else None
        if call.kind != "call" or given is None or not isinstance(callee, Attribute) or callee.name not in _FILLING:
            continue
        if not given.is_block and not isinstance(given.value, Unknown | Literal | Function):
            yield Assignment("bind", call.scope, Element(callee.of), given.value, call.line, call.byte)


def contents_outside(contents: Iterable[Assignment]) -> Iterator[Assignment]:
    """The same where attributes are not marked: as what is put into a name that is declared elsewhere."""
    for one in map(unpacked, contents):
        if isinstance(one.target, Name | Attribute):
            yield one._replace(role="store")


def unpacked(one: Assignment) -> Assignment:
    """An assignment to an element, or to one of an element, as one to the collection."""
    target, value = one.target, one.value
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return one if target is one.target else one._replace(target=target, value=value)


def filled(assignments: Sequence[Assignment], definitions: Mapping[str, Definition]) -> Iterator[Assignment]:
    """The same, with an assignment to an element as one to the collection, where that is an attribute or variable."""
    known = {(one.scope, one.target) for one in assignments}
    for one in assignments:
        if not isinstance(one.target, Element):
            yield one
            continue
        target = whole(one.target)
        is_own = isinstance(target, Attribute) and root_of(target) == "this"
        scope = one.scope if is_own else _declaring(one.scope, target, known, definitions)
        if scope is not None:
            yield Assignment("bind", scope, target, Collection((one.value,)), one.line, one.byte)


def _declaring(
    scope: str, target: Expression, known: AbstractSet[tuple[str, Expression]], definitions: Mapping[str, Definition]
) -> str | None:
    """The innermost scope around a place in which something is known to be assigned; None where it is in none."""
    scopes = [*(outer.id for outer in around(definitions, scope)), FILE]
    return next((outer for outer in scopes if (outer, target) in known), None)


def filled_outside(
    assignments: Sequence[Assignment], definitions: Mapping[str, Definition]
) -> Mapping[str, Mapping[str, Sequence[tuple[str, Expression]]]]:
    """What functions put into collections of the scopes around them: by scope and name, where it is put and what."""
    known = {(one.scope, one.target) for one in assignments if isinstance(one.target, Name)}
    found: dict[str, dict[str, list[tuple[str, Expression]]]] = {}
    for one in assignments:
        target = whole(one.target)
        if isinstance(one.target, Element) and isinstance(target, Name) and not isinstance(one.value, Unknown):
            scope = _declaring(one.scope, target, known, definitions)
            if scope not in {None, one.scope}:
                put = found.setdefault(scope or FILE, {}).setdefault(target.text, [])
                put.append((one.scope, Collection((one.value,))))
    return found


def root_of(target: Expression) -> str:
    """The name that an expression begins with; "" where it begins with none."""
    begin = head(target)
    return begin.text if isinstance(begin, Name | NameOrCall) else ""
