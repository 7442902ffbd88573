"""Call targets: the edges of the call graph, including overrides reached by dynamic dispatch.

Dynamic dispatch uses class hierarchy analysis: Dean, Grove and Chambers, Optimization of object-oriented programs using
static class hierarchy analysis, ECOOP 1995. In Go, a type implements an interface if it has all of its methods.
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
    """Return the targets of a call: functions, instantiated classes and external names."""
    rules = unit.rules
    kind, callee = call.kind if isinstance(call, CallSite) else "decorator", callee_of(call)
    found = q.possible_targets(unit, call.scope, kind, callee)
    if rules.has_labels:
        found = tuple(one for value in found for one in _labelled(q, value, call))
    if rules.is_curried and not arguments_of(call):  # arguments of callers are called only where they are applied
        found = tuple(one for one in found if one.resolution < Resolution.ARGUMENT)
    is_unique = len(found) == 1 and not (rules.separates_kinds and _has_too_few_parameters(q, found[0], call))
    return found if not found or is_unique else chosen(q, unit, call, found)


def callee_of(call: CallSite | Decorator) -> Expression:
    """Return the callee of a call or decorator; for a decorator with arguments, the decorator factory."""
    if isinstance(call, CallSite):
        return call.callee
    return call.value.callee if isinstance(call.value, Call) else call.value


def outermost(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> tuple[Unit, str, str, Expression]:
    """Move a call to the outermost scope in which it reaches the same targets."""
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


def possible_targets(q: Queries, unit: Unit, scope: str, kind: str, callee: Expression) -> Values:
    """Return the possible targets of a kind of call in a scope, regardless of the arguments."""
    rules = unit.rules
    found = _reached(q, unit, scope, kind, callee)
    if not rules.calls_classes:
        found = [target for target in found if target.kind != "class"]
    if (is_called := rules.hooks.is_called) is not None:
        found = [target for target in found if is_called(q, unit, callee, target)]
    if not found and (unreached := rules.hooks.external_target) is not None:
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
    """Return the functions without parameters that are called by their bare name."""
    written, family = last_name(callee), unit.rules.family
    names = {written, *(one.member for one in unit.imports.get(written, ()))}
    if not any(one.kind in FUNCTIONS for name in names for _, one in q.program.named.each(family, name)):
        return ()
    found = q.values(unit, scope, callee)
    return [value for value in found if q.is_bare(value) and q.definition(value).name in names]


def chosen(q: Queries, unit: Unit, call: CallSite | Decorator, found: Values) -> Values:
    """Choose among the possible targets of a call by its arguments."""
    if unit.rules.separates_kinds:
        found = tuple(one for value in found for one in _overloads(q, value, call))
    return tuple(_with_body(q, unit, value) for value in best_overloads(q, unit, call, distinct(found)))


def _with_body(q: Queries, unit: Unit, value: Value) -> Value:
    return header_visibility.with_body(q, value) if unit.rules.sharing == "included" else value


def _overloads(q: Queries, function: Value, call: CallSite | Decorator) -> Iterable[Value]:
    """Return a function; if it has too few parameters, also the inherited functions with its name."""
    return [function, *_inherited(q, function)] if _has_too_few_parameters(q, function, call) else [function]


def _inherited(q: Queries, function: Value) -> Iterable[Value]:
    """Return the inherited functions with the name of a method."""
    name, parent, owner = q.definition(function).name, q.definition(function).parent, function.held[0]
    classes = ancestors(q, owner)
    for one in classes:  # up to the class that defines the method
        if one.kind != "external" and q.definition(one).qualified == parent:
            break
    return functions(one for ancestor in [*classes] for one in members(q, owner, [ancestor], name))


def _labelled(q: Queries, value: Value, call: CallSite | Decorator) -> Iterable[Value]:
    """Return a target if it has the argument labels of a call, or else the inherited ones with its name that do."""
    if has_labels_of(q, value, call):
        return [value]
    return [one for one in (_inherited(q, value) if value.held else ()) if has_labels_of(q, one, call)]


def _has_too_few_parameters(q: Queries, function: Value, call: CallSite | Decorator) -> bool:
    """Return whether a method has fewer parameters than the call has arguments."""
    if function.kind != "function" or not function.held:
        return False
    parameters = q.parameters(function)
    return len(arguments_of(call)) > len(parameters) and all(one.kind != "rest" for one in parameters)


def _overriding(q: Queries, unit: Unit, scope: str, callee: Attribute | Name, values: Values) -> Values:
    """Return the overrides that may run when an object calls its own method (class hierarchy analysis)."""
    rules = unit.rules
    receiver, name = (THIS, callee.text) if isinstance(callee, Name) else (callee.of, callee.name)
    if isinstance(callee, Name) and not rules.has_implicit_members:
        return ()
    if not (_is_of_any_table(unit, scope, receiver) if rules.has_tables else receiver is THIS):
        return ()
    if rules.has_tables:  # the receiver may also be an empty table
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
    """Return whether a receiver may be any table derived from the one that defines the method."""
    if not isinstance(receiver, Name):
        return False
    known = unit.bindings_of(scope, receiver.text)
    return THIS in known or (receiver is THIS and not known)


def _may_run_in(q: Queries, unit: Unit, scope: str, derived: Value) -> bool:
    """Return whether a method may run on an object of a derived class; False if only other classes call it."""
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
    """Return the callbacks implemented by functions of a module in a variable, which may hold other implementations."""
    if path_of(callee.of)[:1].isupper():
        return ()
    found: list[Value] = []
    for value in functions(values):
        owner = next((one for one in q.unit(value.path).around(value.name) if is_class(one)), None)
        modules = interfaces(q, Value("class", value.path, owner.id)) if owner is not None else ()
        found += functions(q.all_members(modules, callee.name))
    return distinct(one for one in found if q.definition(one).kind == "method")


def reason(q: Queries, unit: Unit, call: CallSite) -> str:
    """Return the reason why a call has no known target."""
    match call.callee:
        case Name(name) as expression:
            is_value = bool(q.values(unit, call.scope, expression))
            return f"{name} has an unknown value" if is_value else "no such name"
        case Attribute(of, name):
            is_value = bool(q.values(unit, call.scope, of))
            return f"the receiver has no member {name}" if is_value else "the type of the receiver is unknown"
        case _:
            return "computed"


def may_reach(q: Queries, call: CallSite, targets: Values) -> Values:
    """Return the methods that override a target in a possible class of the receiver.

    For a class held by a variable, return its derived classes.
    """
    found = [one for target in targets for one in _alternatives(q, call, target)]
    if not found or _is_of_super(call.callee):
        return ()
    named = {(target.path, target.name) for target in targets}
    return _each_once(one for one in found if (one.path, one.name) not in named)


def _is_of_super(callee: Expression) -> bool:
    """Return whether a call names the base class explicitly, so that no override can run."""
    return head(callee) is SUPER


def _each_once(values: Iterable[Value]) -> Values:
    found: dict[tuple[str, str], Value] = {}
    for one in values:
        found.setdefault((one.path, one.name), one)
    return tuple(found.values())


def _alternatives(q: Queries, call: CallSite, target: Value) -> Values:
    """Return what may run instead of a target of a call."""
    receiver = target.held[0] if target.kind == "function" and target.held else None
    if receiver is not None and receiver.kind == "object" and receiver.path:
        return q.implementations(receiver.path, receiver.name, q.definition(target).name)
    if target.kind != "class" or not _is_from_variable(q, call, target):
        return ()
    found = tuple(Value("class", one.path, one.name, Resolution.INHERITED) for one in derived_classes(q, target))
    return found if len(found) <= _MOST_IMPLEMENTATIONS else ()


def _is_from_variable(q: Queries, call: CallSite, cls: Value) -> bool:
    """Return whether the called class comes from a variable: declared as a class, or the class of an object."""
    is_named = cls.resolution in _BY_NAME or last_name(call.callee) == q.definition(cls).name
    return "class" in q.rules(cls).wrappers.values() and not is_named


def implementations(q: Queries, path: str, cls: str, name: str) -> Values:
    """Return the methods with a name in the derived classes of a class; none if there are too many."""
    unit = q.unit(path)
    classes = [*derived_classes(q, Value("object", path, cls)), *_structural(q, unit, cls, name)]
    owners = [one.as_kind("class") for one in classes] if unit.rules.has_function_names else classes
    methods = functions(one for owner in owners for one in own_member(q, owner, owner, name))
    found = _each_once(Value("function", one.path, one.name, Resolution.INHERITED) for one in methods)
    return found if len(found) <= _MOST_IMPLEMENTATIONS else ()


def _structural(q: Queries, unit: Unit, cls: str, name: str) -> Iterator[Value]:
    """Yield the Go types that have all methods of an interface."""
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
