"""What collections hold, by the calls and assignments that put something into them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from docindex_dagster.callgraph.ir import (
    FILE,
    Argument,
    Assignment,
    Attribute,
    Call,
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
)
from docindex_dagster.callgraph.nesting import around

# Methods by which something is put into a collection; it is what they are given last.
_FILLING_NAMES = """
    append add push put set insert unshift register subscribe extend appendleft push_back emplace_back Add enqueue offer
    addLast addFirst push_front emplace setdefault << on connect store prepend
"""
_FILLING = frozenset(_FILLING_NAMES.split())


def _filling(calls: Iterable[CallSite]) -> Iterator[tuple[CallSite, Expression, Argument]]:
    """The calls that put something into a collection, with the collection, and what they are given last."""
    for call in calls:
        if (
            call.kind == "call"
            and call.arguments
            and isinstance(call.callee, Attribute)
            and call.callee.name in _FILLING
        ):
            yield call, call.callee.of, call.arguments[-1]


def contents_of(calls: Iterable[CallSite]) -> Iterator[Assignment]:
    """What is put into collections, as if it were assigned to one of their elements."""
    for call, collection, given in _filling(calls):
        if not given.is_block and not isinstance(given.value, Unknown | Literal | Function):
            target = Element(_whole(collection))
            yield Assignment("bind", call.scope, target, given.value, call.line, call.byte)


def contents_outside(calls: Iterable[CallSite]) -> Iterator[Assignment]:
    """The same where attributes are not marked: as what is put into a name that is declared elsewhere."""
    for call, collection, given in _filling(calls):
        if isinstance(given.value, Unknown | Literal):
            continue
        target, value = _taken_out(collection, Collection((given.value,)))
        if isinstance(target, Name | Attribute):
            yield Assignment("store", call.scope, target, value, call.line, call.byte)


def _whole(collection: Expression) -> Expression:
    """A collection, of one of its elements; a variable that may be a call is taken for one."""
    while isinstance(collection, Element):
        collection = collection.of
    return Name(collection.text) if isinstance(collection, NameOrCall) else collection


def _taken_out(target: Expression, value: Expression) -> tuple[Expression, Expression]:
    """What is put into elements of elements, as what is put into the collection."""
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return target, value


def unpacked(one: Assignment) -> Assignment:
    """An assignment to an element as one to the collection."""
    if not isinstance(one.target, Element):
        return one
    target, value = _taken_out(one.target, one.value)
    return one._replace(target=target, value=value)


def filled(assignments: Sequence[Assignment], definitions: Mapping[str, Definition]) -> Iterator[Assignment]:
    """The same, with an assignment to an element as one to the collection, where that is an attribute or variable."""
    known = {(one.scope, one.target) for one in assignments}
    for one in assignments:
        if not isinstance(one.target, Element):
            yield one
            continue
        target, value, scope = _whole(one.target), Collection((one.value,)), one.scope
        if not (isinstance(target, Attribute) and root_of(target) == "this"):
            scopes = [*(outer.id for outer in around(definitions, scope)), FILE]
            found = next((outer for outer in scopes if (outer, target) in known), None)
            if found is None:
                continue
            scope = found
        yield Assignment("bind", scope, target, value, one.line, one.byte)


def root_of(target: Expression) -> str:
    """The name that an expression begins with; "" where it begins with none."""
    while not isinstance(target, Name | NameOrCall):
        if isinstance(target, Attribute | Element | Call):
            target = target.of if not isinstance(target, Call) else target.callee
        else:
            return ""
    return target.text
