"""Dynamic dispatch: the methods that may run instead of the one that a call names (class hierarchy analysis).

Dean, Grove and Chambers, Optimization of object-oriented programs using static class hierarchy analysis, ECOOP 1995. In
Go a type implements an interface where it has all methods of it, whether it names it or not.
"""

import posixpath
from collections.abc import Iterable, Iterator

from docindex_dagster.callgraph.ir import SUPER, CallSite, Expression, head
from docindex_dagster.callgraph.offers import full_name, last_name
from docindex_dagster.callgraph.resolver.classes import own_member
from docindex_dagster.callgraph.resolver.hierarchy import derived_classes
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.value_sets import functions
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values
from docindex_dagster.callgraph.units import Unit

_MOST_IMPLEMENTATIONS = 40
_BY_NAME = frozenset({Resolution.FILE, Resolution.IMPORT, Resolution.PACKAGE})


def may_reach(q: Queries, call: CallSite, targets: Values) -> Values:
    """The methods that override one of the targets in a class of which its receiver may be.

    Of a class that a variable holds, the classes that are made from it.
    """
    found = [one for target in targets for one in _instead(q, call, target)]
    if not found or _is_of_super(call.callee):
        return ()
    named = {(target.path, target.name) for target in targets}
    return _each_once(one for one in found if (one.path, one.name) not in named)


def _is_of_super(callee: Expression) -> bool:
    """Whether a call goes to the base class by name, which nothing overrides."""
    return head(callee) is SUPER


def _each_once(values: Iterable[Value]) -> Values:
    found: dict[tuple[str, str], Value] = {}
    for one in values:
        found.setdefault((one.path, one.name), one)
    return tuple(found.values())


def _instead(q: Queries, call: CallSite, target: Value) -> Values:
    """What may run instead of a target of a call."""
    receiver = target.held[0] if target.kind == "function" and target.held else None
    if receiver is not None and receiver.kind == "object" and receiver.path:
        return q.implementations(receiver.path, receiver.name, q.definition(target).name)
    if target.kind != "class" or not _is_held(q, call, target):
        return ()
    found = tuple(Value("class", one.path, one.name, Resolution.INHERITED) for one in derived_classes(q, target))
    return found if len(found) <= _MOST_IMPLEMENTATIONS else ()


def _is_held(q: Queries, call: CallSite, cls: Value) -> bool:
    """Whether a variable holds the class that is called: one that is declared so, or the class of an object."""
    is_named = (
        cls.resolution in {Resolution.FILE, Resolution.IMPORT, Resolution.PACKAGE}
        or last_name(call.callee) == q.definition(cls).name
    )
    return bool(q.rules(cls).class_types) and not is_named


def implementations(q: Queries, path: str, cls: str, name: str) -> Values:
    """The methods of a name in the classes that are made from another one; none where these are too many to tell."""
    unit = q.unit(path)
    classes = [*derived_classes(q, Value("object", path, cls)), *_structural(q, unit, cls, name)]
    owners = [one.as_kind("class") for one in classes] if unit.rules.has_function_names else classes
    methods = functions(one for owner in owners for one in own_member(q, owner, owner, name))
    found = _each_once(Value("function", one.path, one.name, Resolution.INHERITED) for one in methods)
    return found if len(found) <= _MOST_IMPLEMENTATIONS else ()


def _structural(q: Queries, unit: Unit, cls: str, name: str) -> Iterator[Value]:
    """The types of Go that have all methods of an interface."""
    definition, family, full = unit.definitions[cls], unit.rules.family, q.program.full
    if unit.rules.sharing != "folder" or definition.kind != "interface":
        return
    wanted = unit.children.get(definition.qualified, ())
    for other, method in q.in_files(q.program.named, unit, name):
        is_own = method.parent == definition.qualified
        if is_own or not method.parent or method.kind != "method" or (other.is_test and not unit.is_test):
            continue
        folder, owner = posixpath.dirname(other.path), full_name(other, method.parent)
        if all(any(posixpath.dirname(at) == folder for at, _ in full.get(family, f"{owner}.{one}")) for one in wanted):
            for at, one in full.get(family, owner):
                if posixpath.dirname(at) == folder and one.kind != "interface":
                    yield Value("object", at, one.id)
