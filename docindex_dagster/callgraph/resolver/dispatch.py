"""Dynamic dispatch: the methods that may run instead of the one that a call names (class hierarchy analysis).

Dean, Grove and Chambers, Optimization of object-oriented programs using static class hierarchy analysis, ECOOP 1995. In
Go a type implements an interface where it has all methods of it, whether it names it or not.
"""

from collections.abc import Iterator

from docindex_dagster.callgraph.ir import SUPER, Attribute, Call, CallSite, Element, Expression
from docindex_dagster.callgraph.offers import full_name, last_name
from docindex_dagster.callgraph.resolver.classes import own_member
from docindex_dagster.callgraph.resolver.hierarchy import derived_classes
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import How, Value, Values
from docindex_dagster.callgraph.units import Unit

_MOST_IMPLEMENTATIONS = 40


def may_reach(q: Queries, call: CallSite, targets: Values) -> Values:
    """The methods that override one of the targets in a class of which its receiver may be.

    Of a class that a variable holds, the classes that are made from it.
    """
    if not targets or _is_of_super(call.callee):
        return ()
    named = {(target.path, target.name) for target in targets}
    found: dict[tuple[str, str], Value] = {}
    for target in targets:
        for one in _instead(q, call, target):
            if (one.path, one.name) not in named:
                found.setdefault((one.path, one.name), one)
    return tuple(found.values())


def _instead(q: Queries, call: CallSite, target: Value) -> Values:
    """What may run instead of a target of a call."""
    if target.kind == "class" and _is_held(q, call, target):
        below = [*derived_classes(q, target)]
        found = tuple(Value("class", one.path, one.name, How.INHERITED) for one in below)
        return found if len(found) <= _MOST_IMPLEMENTATIONS else ()
    receiver = target.held[0] if target.kind == "function" and target.held else None
    if receiver is None or receiver.kind != "object" or not receiver.path:
        return ()
    return q.implementations(receiver.path, receiver.name, q.definition(target).name)


def _is_held(q: Queries, call: CallSite, cls: Value) -> bool:
    """Whether a variable holds the class that is called: one that is declared so, or the class of an object."""
    is_named = cls.how in {How.FILE, How.IMPORT, How.PACKAGE} or last_name(call.callee) == q.definition(cls).name
    return bool(q.rules(cls).class_types) and not is_named


def _is_of_super(callee: Expression) -> bool:
    """Whether a call goes to the base class by name, which nothing overrides."""
    while isinstance(callee, Attribute | Element | Call):
        callee = callee.callee if isinstance(callee, Call) else callee.of
    return callee is SUPER


def implementations(q: Queries, path: str, cls: str, name: str) -> Values:
    """The methods of a name in the classes that are made from another one; none where these are too many to tell."""
    unit = q.unit(path)
    found: dict[tuple[str, str], Value] = {}
    for derived in (*derived_classes(q, Value("object", path, cls)), *_structural(q, unit, cls, name)):
        for one in own_member(q, derived, derived, name):
            if one.kind == "function":
                found.setdefault((one.path, one.name), Value("function", one.path, one.name, How.INHERITED))
    return tuple(found.values()) if len(found) <= _MOST_IMPLEMENTATIONS else ()


def _structural(q: Queries, unit: Unit, cls: str, name: str) -> Iterator[Value]:
    """The types of Go that have all methods of an interface."""
    definition = unit.definitions[cls]
    if unit.rules.sharing != "folder" or definition.kind != "interface":
        return
    family, wanted = unit.rules.family, unit.children.get(definition.qualified, {})
    for path, method in q.program.named.get(family, name):
        other = q.unit(path)
        if other.is_test and not unit.is_test:
            continue
        if not method.parent or method.kind != "method" or method.parent == definition.qualified:
            continue
        folder, owner = path.rpartition("/")[0], full_name(other, method.parent)
        if all(_has(q, family, folder, f"{owner}.{each}") for each in wanted):
            yield from _types(q, family, folder, owner)


def _has(q: Queries, family: str, folder: str, full: str) -> bool:
    return any(path.rpartition("/")[0] == folder for path, _ in q.program.full.get(family, full))


def _types(q: Queries, family: str, folder: str, full: str) -> Iterator[Value]:
    for path, one in q.program.full.get(family, full):
        if path.rpartition("/")[0] == folder and one.kind != "interface" and one.id in q.unit(path).definitions:
            yield Value("object", path, one.id)
