"""Something of a declared type, also of a type parameter: type inference from what is written."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce

from docindex_dagster.callgraph.ir import EITHER, ROOT, UNKNOWN, Attribute, Expression, Instance, Name, TypeRef
from docindex_dagster.callgraph.resolver.builtins import is_callable
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, parts_of
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import (
    FUNCTION_TYPE,
    Resolution,
    Value,
    Values,
    external,
    external_object,
    known,
)
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_ANYTHING = "?"
_SELVES = frozenset({"Self", "self", "this", "static"})
_ALIASES = frozenset({"object", "external object", "collection", "function"})


@lru_cache(maxsize=100_000)
def type_named(name: str) -> Expression:
    """A type by its dotted name."""
    first, *others = name.split(".")
    begin: Expression = Name(first, "type")
    return reduce(Attribute, others, begin)


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
    if name in rules.function_types:
        return []
    if arguments and rules.hooks.held is not None:
        arguments = rules.hooks.held(name, arguments)
    last = name.rpartition(".")[2]
    if arguments and last in rules.wrappers:
        wrapped, kind = typed(q, unit, scope, arguments[-1], given), rules.wrappers[last]
        return [one.as_kind(kind) if one.kind == "object" else one for one in wrapped]
    if name in _SELVES and not rules.has_file_types and (owner := q.owner(unit, scope)):
        return [owner.as_kind("object")]
    bound = _bound_of(unit, scope, name) if rules.separates_kinds else None
    if bound is not None:
        return [*(q.values(unit, scope, bound) if bound is not UNKNOWN else ())] or [external_object(_ANYTHING)]
    # Also an argument that is not known has its place.
    several = ((typed(q, unit, scope, one, given), one) for one in arguments)
    held = tuple(found[0] if found else external_object(_from_root(one.name)) for found, one in several)
    found = [one for value in type_names(q, unit, scope, name) for one in _instances(value, held, rules)]
    if not found and (arguments or rules.sharing == "namespace"):
        return [external_object(_from_root(name), Resolution.RECEIVER, held)]
    return found


def _from_root(name: str) -> str:
    """A name as other files have it, which write no root before it."""
    return name.removeprefix(f"{ROOT}.")


def _instances(value: Value, held: Values, rules: Rules) -> list[Value]:
    """Something of the type that a name stands for, with the arguments of the type."""
    if value.kind == "module" and rules.has_file_types:
        return [value]
    if value.kind == "class":
        return [Value("object", value.path, value.name, max(value.resolution, Resolution.RECEIVER), held)]
    if value.kind == "external":
        return [external_object(value.name, Resolution.RECEIVER, held)]
    if value.kind not in _ALIASES:
        return []
    is_generic = value.kind == "external object" and bool(held)
    return [value.holding(held) if is_generic else value]


def _bound_of(unit: Unit, scope: str, name: str) -> Expression | None:
    """What a type parameter is declared to be, which may be unknown; None of what is none."""
    for around in unit.around(scope) if unit.generics else ():
        for one in reversed(unit.generics.get(around.id, ())):
            if one.name == name:
                if isinstance(one.bound, Instance) and one.bound is not Instance(TypeRef(name)):
                    return Instance(TypeRef(one.bound.type.name))
                return UNKNOWN
    return None


def _given_types(q: Queries, owner: Value, cls: Value) -> Sequence[Value]:
    """What an object was made for, as far as one of its classes tells it."""
    if owner.is_same(cls):
        return owner.held
    for ancestor in known(ancestors(q, owner.as_kind("class"))):
        for unit, definition in parts_of(q, ancestor):
            for base, values in q.bases(unit, definition):
                arguments = base.value.type.arguments if isinstance(base.value, Instance) else ()
                if arguments and any(one.is_same(cls) for one in values):
                    return [one for argument in arguments for one in typed(q, unit, definition.id, argument)[:1]]
    return ()


def held_by(q: Queries, owner: Value, holder: Value | None = None) -> Mapping[str, Value]:
    """What type parameters stand for in an object: those of its class, and of another one of which it is one."""
    if owner.kind != "object" or not owner.path:
        return {}
    given: dict[str, Value] = {}
    for cls in (owner.as_kind("class"), holder):
        generics = q.unit(cls.path).generics.get(cls.name, ()) if cls is not None else ()
        names = dict.fromkeys(one.name for one in generics)
        held = _given_types(q, owner, cls) if cls is not None and names else ()
        if len(held) == len(names):
            given.update(zip(names, held, strict=True))
    return {**given, "Self": owner}


def may_be_function(q: Queries, values: Sequence[Value]) -> bool:
    """Whether one of several declared types is that of functions."""
    return len(values) > 1 and any(_is_function(q, value) for value in values)


def is_open(q: Queries, value: Value) -> bool:
    """Whether a declared type leaves open what is behind it: one that is not known, or that of functions."""
    if value.kind == "external object" and (not value.held or _is_function(q, value.held[-1])):
        return True
    return _is_function(q, value)


def _is_function(q: Queries, value: Value) -> bool:
    """Whether a declared type is that of functions."""
    if value.kind == "external object":
        return value.name == FUNCTION_TYPE or is_callable(value.name)
    return value.kind == "object" and function_type(q, value) is not None


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
