"""Something of a declared type, also of a type parameter: type inference from what is written."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from docindex_dagster.callgraph.ir import EITHER, Attribute, Expression, Instance, Name, TypeRef
from docindex_dagster.callgraph.resolver.builtins import is_callable
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, parts_of
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import (
    FUNCTION_TYPE,
    How,
    Value,
    Values,
    external,
    external_object,
)
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_ANYTHING = "?"
_SELVES = frozenset({"Self", "self", "this", "static"})
_ALIASES = frozenset({"object", "external object", "collection", "function"})
_BY_KEY = ("Map", "MapUnmanaged", "EnumArray")  # of Zig
_PAIRS = ("map", "pair")


@lru_cache(maxsize=100_000)
def type_named(name: str) -> Expression:
    """A type by its dotted name."""
    first, *others = name.split(".")
    found: Expression = Name(first, "type")
    for other in others:
        found = Attribute(found, other)
    return found


def type_names(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    """What the name of a type stands for at a place."""
    if unit.rules.sharing == "included":
        return q.included_types(unit, scope, name)
    return q.values(unit, scope, type_named(name))


def typed(  # noqa: PLR0911 one a sort of types
    q: Queries, unit: Unit, scope: str, written: TypeRef, given: Mapping[str, Value] | None = None
) -> list[Value]:
    """Something of a declared type; `given` are the values of type parameters."""
    name, arguments, rules = written.name, written.arguments, unit.rules
    if given and not arguments and name in given:
        return [given[name]]
    if name == EITHER:
        return [one for argument in arguments for one in typed(q, unit, scope, argument, given)]
    if name in rules.functions:
        return []
    arguments = _held_by_library(rules, name, arguments)
    last = name.rpartition(".")[2]
    if arguments and last in rules.wrappers:
        wrapped = typed(q, unit, scope, arguments[-1], given)
        is_class = last in rules.class_types
        return [one.as_kind("class") if is_class and one.kind == "object" else one for one in wrapped]
    if name in _SELVES and not rules.has_file_types and (owner := q.owner(unit, scope)):
        return [owner.as_kind("object")]
    bound = _bound_of(unit, scope, name) if rules.separates_kinds else None
    if bound is not None:
        known = q.values(unit, scope, Instance(TypeRef(bound.name))) if bound.name else ()
        return [*known] or [external_object(_ANYTHING)]
    arguments = arguments[:1] if last in rules.leading else arguments
    held = tuple(_argument_type(q, unit, scope, argument, given) for argument in arguments)
    found = [one for value in type_names(q, unit, scope, name) for one in _instances(value, held, rules)]
    if not found and (arguments or rules.sharing == "namespace"):
        return [external_object(name, How.RECEIVER, held)]
    return found


def _held_by_library(rules: Rules, name: str, arguments: tuple[TypeRef, ...]) -> tuple[TypeRef, ...]:
    """The arguments of a generic type that say what it holds, where the library has types with others."""
    if rules.has_pointers and name.startswith("std."):
        return arguments[: 2 if name.endswith(_PAIRS) else 1]
    if rules.has_file_types:
        return arguments[1:2] if name.endswith(_BY_KEY) and len(arguments) > 1 else arguments[:1]
    return arguments


def _instances(value: Value, held: Values, rules: Rules) -> list[Value]:
    """Something of the type that a name stands for, with the arguments of the type."""
    if value.kind == "module" and rules.has_file_types:
        return [value]
    if value.kind == "class":
        return [Value("object", value.path, value.name, max(value.how, How.RECEIVER), held)]
    if value.kind == "external":
        return [external_object(value.name, How.RECEIVER, held)]
    if value.kind not in _ALIASES:
        return []
    is_generic = value.kind == "external object" and bool(held)
    return [value.holding(held) if is_generic else value]


def _bound_of(unit: Unit, scope: str, name: str) -> TypeRef | None:
    """What a type parameter is declared to be, without a name for anything; None of what is none."""
    if not unit.generics:
        return None
    for around in unit.around(scope):
        for one in reversed(unit.generics.get(around.id, ())):
            if one.name == name:
                is_bound = isinstance(one.bound, Instance) and one.bound is not Instance(TypeRef(name))
                return one.bound.type if is_bound and isinstance(one.bound, Instance) else TypeRef("")
    return None


def typed_for(q: Queries, function: Value, written: TypeRef) -> list[Value]:
    """Something of a type that a function is declared with."""
    return typed(q, q.unit(function.path), function.name, written)


def for_receiver(q: Queries, function: Value, written: TypeRef) -> list[Value] | None:
    """Something of a type parameter, by what the object whose method it is was made for."""
    owner = function.held[0] if function.held and function.held[0].kind == "object" else None
    unit = q.unit(function.path)
    holder = unit.class_around(function.name)
    if owner is None or holder is None or holder.id not in unit.generics:
        return None
    if written.name == EITHER:
        written = written.arguments[0]
    if written.arguments and written.name in unit.rules.wrappers:
        written = written.arguments[-1]
    names = [*dict.fromkeys(one.name for one in unit.generics[holder.id])]

    def is_parameter(argument: TypeRef) -> bool:
        return not argument.arguments and argument.name in names

    if written.name not in names and not any(map(is_parameter, written.arguments)):
        return None
    given = _given_types(q, owner, Value("class", unit.path, holder.id))
    if len(given) != len(names):
        return None
    if written.name in names:
        return [given[names.index(written.name)]]
    held = tuple(
        one
        for argument in written.arguments
        for one in (
            [given[names.index(argument.name)]] if is_parameter(argument) else typed_for(q, function, argument)[:1]
        )
    )
    return [found.holding(held) for found in typed_for(q, function, written)]


def _given_types(q: Queries, owner: Value, cls: Value) -> Sequence[Value]:
    """What an object was made for, as far as one of its classes tells it."""
    if owner.is_same(cls):
        return owner.held
    for ancestor in ancestors(q, owner.as_kind("class")):
        if ancestor.kind == "external":
            continue
        for unit, definition in parts_of(q, ancestor):
            for base, values in q.bases(unit, definition):
                arguments = base.value.type.arguments if isinstance(base.value, Instance) else ()
                if arguments and any(one.is_same(cls) for one in values):
                    found = [typed(q, unit, definition.id, argument)[:1] for argument in arguments]
                    return [one[0] for one in found if one]
    return ()


def _argument_type(q: Queries, unit: Unit, scope: str, written: TypeRef, given: Mapping[str, Value] | None) -> Value:
    """What an argument of a generic type stands for; also one that is not known has its place."""
    return next(iter(typed(q, unit, scope, written, given)), external_object(written.name))


def held_by(q: Queries, owner: Value) -> dict[str, Value]:
    """What the type parameters of a class stand for in an object, as far as that is declared."""
    if owner.kind != "object" or not owner.path:
        return {}
    unit = q.unit(owner.path)
    names = dict.fromkeys(one.name for one in unit.generics.get(owner.name, ()))
    held = dict(zip(names, owner.held, strict=True)) if len(names) == len(owner.held) else {}
    return {**held, "Self": owner}


def may_be_function(q: Queries, values: Sequence[Value]) -> bool:
    """Whether one of several declared types is that of functions."""
    return len(values) > 1 and any(_is_function(q, value) for value in values)


def is_open(q: Queries, value: Value) -> bool:
    """Whether a declared type leaves open what is behind it: one that is not known, or that of functions."""
    if value.kind == "external object":
        return not value.held or _is_of_functions(value) or _is_function(q, value.held[-1])
    return _is_function(q, value)


def _is_function(q: Queries, value: Value) -> bool:
    """Whether a declared type is that of functions."""
    if value.kind == "external object":
        return _is_of_functions(value)
    return value.kind == "object" and function_type(q, value) is not None


def _is_of_functions(value: Value) -> bool:
    return value.name == FUNCTION_TYPE or is_callable(value.name)


def function_type(q: Queries, value: Value) -> Value | None:
    """The type of functions that a type with a name of its own is."""
    unit = q.unit(value.path)
    for base in unit.bases.get(value.name, ()):
        if isinstance(base.value, Instance) and base.value.type.name == FUNCTION_TYPE:
            return next(iter(typed(q, unit, unit.definitions[value.name].parent, base.value.type)), None)
    return None


def builtin(name: str, rules: Rules) -> list[Value]:
    """What a name means that needs no import."""
    return [external(name)] if name in rules.builtins else []
