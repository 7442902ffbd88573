"""What a call reaches: the edges of the call graph, and the methods that may run instead of the one that is named.

For the latter (dynamic dispatch) the class hierarchy is analysed: Dean, Grove and Chambers, Optimization of
object-oriented programs using static class hierarchy analysis, ECOOP 1995. In Go a type implements an interface where
it has all methods of it, whether it names it or not.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph.ir import (
    SUPER,
    THIS,
    Attribute,
    Call,
    CallSite,
    Decorator,
    Expression,
    Name,
    head,
    last_name,
    path_of,
)
from docindex_dagster.callgraph.nesting import FUNCTIONS, is_class
from docindex_dagster.callgraph.resolver import header_visibility
from docindex_dagster.callgraph.resolver.classes import members, own_member
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, derived_classes, function_around, interfaces
from docindex_dagster.callgraph.resolver.overloads import arguments_of, best_overloads, has_labels_of
from docindex_dagster.callgraph.resolver.queries import MOST_CALLERS, Queries
from docindex_dagster.callgraph.resolver.results import callable_of, constructed
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    functions,
    known,
)
from docindex_dagster.callgraph.units import Unit

_MOST_IMPLEMENTATIONS = 40
_BY_NAME = frozenset({Resolution.FILE, Resolution.IMPORT, Resolution.PACKAGE})


def targets(q: Queries, unit: Unit, call: CallSite | Decorator) -> Values:
    """What a call reaches: functions, classes of which it makes an object, and what is external."""
    rules = unit.rules
    kind, callee = call.kind if isinstance(call, CallSite) else "decorator", callee_of(call)
    found = q.reached(unit, call.scope, kind, callee)
    if rules.has_labels:
        found = tuple(one for value in found for one in _labelled(q, value, call))
    if rules.is_curried and not arguments_of(call):  # what callers give is called where it is applied
        found = tuple(one for one in found if one.resolution < Resolution.ARGUMENT)
    is_one = len(found) == 1 and not (rules.separates_kinds and _takes_too_little(q, found[0], call))
    return found if not found or is_one else chosen(q, unit, call, found)


def callee_of(call: CallSite | Decorator) -> Expression:
    """What is called; of a decorator that is called itself, what gives it."""
    if isinstance(call, CallSite):
        return call.callee
    return call.value.callee if isinstance(call.value, Call) else call.value


def outermost(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> tuple[Unit, str, str, Expression]:
    """A call at the outermost place where it reaches the same."""
    return unit, _hoisted(q, unit, scope, kind, callee), kind, callee


def _hoisted(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> str:
    rules = unit.rules
    if not scope or (rules.has_open_dispatch and rules.has_implicit_members):
        return scope
    if rules.has_open_dispatch and kind != "new" and isinstance(callee, Attribute) and callee.of is THIS:
        return scope
    if rules.separates_kinds and kind != "new" and isinstance(callee, Name):
        callee = Name(callee.text, "function")
    return q.hoisted(unit, scope, callee)


def reached(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> Values:
    """What a call of a kind may reach at a place, whatever it gives."""
    rules = unit.rules
    found = _reached(q, unit, scope, kind, callee)
    if not rules.calls_classes:
        found = [target for target in found if target.kind != "class"]
    if (is_called := rules.hooks.is_called) is not None:
        found = [target for target in found if is_called(q, unit, callee, target)]
    if not found and (unreached := rules.hooks.unreached) is not None:
        return unreached(callee)
    several = distinct(known(found) or found)
    return (_with_body(q, unit, several[0]),) if len(several) == 1 else several


def _reached(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> Sequence[Value]:
    rules = unit.rules
    if kind == "macro" and rules.hooks.macros is not None:
        return [*rules.hooks.macros(q, unit, path_of(callee))]
    if kind == "read":
        return _read(q, unit, scope, callee)
    if kind == "new":
        values = tuple(constructed(q, unit, scope, callee))
        if rules.separates_kinds:
            values = tuple(value for value in values if value.kind in {"function", "class"}) or values
    else:
        values = q.callees(unit, scope, callee)
        if rules.has_protocols and isinstance(callee, Attribute):
            values += _declared(q, callee, values)
        if rules.has_open_dispatch and isinstance(callee, (Attribute, Name)):
            values += _overriding(q, unit, scope, callee, values)
    return [target for value in values for target in callable_of(q, value)]


def _read(q: Queries, unit: Unit, scope: str, callee: Expression) -> Sequence[Value]:
    """The functions that take nothing, where they are called by their names alone."""
    written, family = last_name(callee), unit.rules.family
    names = {written, *(one.member for one in unit.imports.get(written, ()))}
    if not any(one.kind in FUNCTIONS for name in names for _, one in q.program.named.each(family, name)):
        return ()
    found = q.values(unit, scope, callee)
    return [value for value in found if q.is_bare(value) and q.definition(value).name in names]


def chosen(q: Queries, unit: Unit, call: CallSite | Decorator, found: Values) -> Values:
    """Of what a call may reach that which it means by what it gives."""
    if unit.rules.separates_kinds:
        found = tuple(one for value in found for one in _overloads(q, value, call))
    return tuple(_with_body(q, unit, value) for value in best_overloads(q, unit, call, distinct(found)))


def _with_body(q: Queries, unit: Unit, value: Value) -> Value:
    return header_visibility.with_body(q, value) if unit.rules.sharing == "included" else value


def _overloads(q: Queries, function: Value, call: CallSite | Decorator) -> Iterable[Value]:
    """A function, or where it takes too little those of this name in what its class is made from."""
    return [function, *_inherited(q, function)] if _takes_too_little(q, function, call) else [function]


def _inherited(q: Queries, function: Value) -> Iterable[Value]:
    """The functions of the name of a member in what its class is made from."""
    name, parent, owner = q.definition(function).name, q.definition(function).parent, function.held[0]
    classes = ancestors(q, owner)
    for one in classes:  # up to that which has it
        if one.kind != "external" and q.definition(one).qualified == parent:
            break
    return functions(one for ancestor in [*classes] for one in members(q, owner, [ancestor], name))


def _labelled(q: Queries, value: Value, call: CallSite | Decorator) -> Iterable[Value]:
    """A target that has the labels of a call, or those that have it and are inherited under its name."""
    if has_labels_of(q, value, call):
        return [value]
    return [one for one in (_inherited(q, value) if value.held else ()) if has_labels_of(q, one, call)]


def _takes_too_little(q: Queries, function: Value, call: CallSite | Decorator) -> bool:
    """Whether a function, which is a member, can be called with fewer arguments alone."""
    if function.kind != "function" or not function.held:
        return False
    taken = q.parameters(function)
    return len(arguments_of(call)) > len(taken) and all(one.kind != "rest" for one in taken)


def _overriding(q: Queries, unit: Unit, scope: str, callee: Attribute | Name, values: Values) -> Values:
    """The methods of derived classes that may run where an object calls one of its own (class hierarchy analysis)."""
    rules = unit.rules
    receiver, name = (THIS, callee.text) if isinstance(callee, Name) else (callee.of, callee.name)
    if isinstance(callee, Name) and not rules.has_implicit_members:
        return ()
    if not (_is_of_any_table(unit, scope, receiver) if rules.has_tables else receiver is THIS):
        return ()
    if rules.has_tables:  # it may also be an empty one
        values = tuple(known(values))
    if any(value.kind != "function" for value in values):
        return ()
    found: list[Value] = []
    for owner in q.values(unit, scope, receiver):
        for derived in derived_classes(q, owner) if owner.kind in {"object", "literal"} else ():
            if not values:
                found += functions(q.member(derived, name))
            elif _may_run_in(q, unit, scope, derived):
                found += functions(own_member(q, derived, derived, name))
    several = distinct(Value("function", one.path, one.name, Resolution.INHERITED, one.held) for one in found)
    return several if len(found) < MOST_VALUES else ()


def _is_of_any_table(unit: Unit, scope: str, receiver: Expression) -> bool:
    """Whether an object may be of any table that is made from the one which a method is written into."""
    if not isinstance(receiver, Name):
        return False
    known = unit.bindings_of(scope, receiver.text)
    return THIS in known or (receiver is THIS and not known)


def _may_run_in(q: Queries, unit: Unit, scope: str, derived: Value) -> bool:
    """Whether a method may be called on an object of a class; not where only those of other classes call it."""
    method = function_around(unit, scope)
    name = method.name if method else ""
    callers, family = q.program.callers, unit.rules.family
    called = callers.get(family, name, MOST_CALLERS)
    if not called or not all(_is_own_call(call, name) for _, call in callers.each(family, name)):
        return True
    above = {(one.path, one.name) for one in ancestors(q, derived)}
    holders = (one for path, call in called[:MOST_CALLERS] for one in q.values(q.unit(path), call.scope, THIS))
    return any((one.path, one.name) in above or any(map(derived.is_same, ancestors(q, one))) for one in holders)


def _is_own_call(call: CallSite | Decorator, name: str) -> bool:
    callee = callee_of(call)
    return isinstance(callee, Attribute) and callee.name == name and callee.of in {THIS, SUPER}


def _declared(q: Queries, callee: Attribute, values: Values) -> Values:
    """What the functions of a module that a variable holds implement: another module that does so may be in it."""
    if path_of(callee.of)[:1].isupper():
        return ()
    found: list[Value] = []
    for value in functions(values):
        owner = next((one for one in q.unit(value.path).around(value.name) if is_class(one)), None)
        modules = interfaces(q, Value("class", value.path, owner.id)) if owner is not None else ()
        found += functions(q.all_members(modules, callee.name))
    return distinct(one for one in found if q.definition(one).kind == "method")


def reason(q: Queries, unit: Unit, call: CallSite) -> str:
    """Why a call reaches nothing that is known."""
    match call.callee:
        case Name(name) as expression:
            is_value = bool(q.values(unit, call.scope, expression))
            return f"{name} is a value that is not known" if is_value else "no such name"
        case Attribute(of, name):
            is_value = bool(q.values(unit, call.scope, of))
            return f"no {name} in what it is called on" if is_value else "called on something of unknown type"
        case _:
            return "computed"


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
    is_named = cls.resolution in _BY_NAME or last_name(call.callee) == q.definition(cls).name
    return "class" in q.rules(cls).wrappers.values() and not is_named


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
        folder, owner = posixpath.dirname(other.path), other.full_name(method.parent)
        if all(any(posixpath.dirname(at) == folder for at, _ in full.get(family, f"{owner}.{one}")) for one in wanted):
            for at, one in full.get(family, owner):
                if posixpath.dirname(at) == folder and one.kind != "interface":
                    yield Value("object", at, one.id)
