"""Type inference from declared types and type parameters."""

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
    """Return the expression for a type with a dotted name."""
    first, *others = name.split(".")
    start: Expression = Name(first, "type")
    return reduce(Attribute, others, start)


def type_names(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    """Return the values of a type name in a scope."""
    if unit.rules.sharing == "included":
        return q.included_types(unit, scope, name)
    return q.values(unit, scope, type_named(name))


def typed(  # noqa: PLR0911 one per kind of type
    q: Queries, unit: Unit, scope: str, written: TypeRef, type_values: Mapping[str, Value] | None = None
) -> list[Value]:
    """Return instances of a declared type; `type_values` has the values of type parameters."""
    name, arguments, rules = written.name, written.arguments, unit.rules
    if type_values and not arguments and name in type_values:
        return [type_values[name]]
    if name == EITHER:
        return [one for argument in arguments for one in typed(q, unit, scope, argument, type_values)]
    if name in rules.function_types:
        return []
    if arguments and rules.hooks.element_types is not None:
        arguments = rules.hooks.element_types(name, arguments)
    last = name.rpartition(".")[2]
    if arguments and last in rules.wrappers:
        wrapped, kind = typed(q, unit, scope, arguments[-1], type_values), rules.wrappers[last]
        return [one.as_kind(kind) if one.kind == "object" else one for one in wrapped]
    if name in _SELVES and not rules.has_file_types and (owner := q.owner(unit, scope)):
        return [owner.as_kind("object")]
    bound = _bound_of(unit, scope, name) if rules.separates_kinds else None
    if bound is not None:
        return [*(q.values(unit, scope, bound) if bound is not UNKNOWN else ())] or [external_object(_ANYTHING)]
    # Unknown arguments keep their position.
    several = ((typed(q, unit, scope, one, type_values), one) for one in arguments)
    held = tuple(found[0] if found else external_object(_from_root(one.name)) for found, one in several)
    found = [one for value in type_names(q, unit, scope, name) for one in _instances(value, held, rules)]
    if not found and (arguments or rules.sharing == "namespace"):
        return [external_object(_from_root(name), Resolution.RECEIVER, held)]
    return found


def _from_root(name: str) -> str:
    """Remove the root prefix, so that the name matches that in other files."""
    return name.removeprefix(f"{ROOT}.")


def _instances(value: Value, held: Values, rules: Rules) -> list[Value]:
    """Return instances of the type that a value represents, with type arguments."""
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
    """Return the bound of a type parameter, which may be `UNKNOWN`; None if the name is not a type parameter."""
    for around in unit.around(scope) if unit.generics else ():
        for one in reversed(unit.generics.get(around.id, ())):
            if one.name == name:
                if isinstance(one.bound, Instance) and one.bound is not Instance(TypeRef(name)):
                    return Instance(TypeRef(one.bound.type.name))
                return UNKNOWN
    return None


def _given_types(q: Queries, owner: Value, cls: Value) -> Sequence[Value]:
    """Return the type arguments of an object for one of its classes, if known."""
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
    """Return the values of type parameters in an object: those of its class and of the ancestor `holder`."""
    if owner.kind != "object" or not owner.path:
        return {}
    type_values: dict[str, Value] = {}
    for cls in (owner.as_kind("class"), holder):
        generics = q.unit(cls.path).generics.get(cls.name, ()) if cls is not None else ()
        names = dict.fromkeys(one.name for one in generics)
        held = _given_types(q, owner, cls) if cls is not None and names else ()
        if len(held) == len(names):
            type_values.update(zip(names, held, strict=True))
    return {**type_values, "Self": owner}


def may_be_function(q: Queries, values: Sequence[Value]) -> bool:
    """Return whether one of several declared types is a function type."""
    return len(values) > 1 and any(_is_function(q, value) for value in values)


def is_open(q: Queries, value: Value) -> bool:
    """Return whether a declared type does not determine the value: an unknown type or a function type."""
    if value.kind == "external object" and (not value.held or _is_function(q, value.held[-1])):
        return True
    return _is_function(q, value)


def _is_function(q: Queries, value: Value) -> bool:
    """Return whether a declared type is a function type."""
    if value.kind == "external object":
        return value.name == FUNCTION_TYPE or is_callable(value.name)
    return value.kind == "object" and function_type(q, value) is not None


def function_type(q: Queries, value: Value) -> Value | None:
    """Return the function type that a named type is defined as."""
    unit = q.unit(value.path)
    for base in unit.bases.get(value.name, ()):
        if isinstance(base.value, Instance) and base.value.type.name == FUNCTION_TYPE:
            return next(iter(typed(q, unit, unit.definitions[value.name].parent, base.value.type)), None)
    return None


def builtin(name: str, rules: Rules) -> list[Value]:
    """Return the value of a built-in name."""
    return [external(name)] if name in rules.builtins else []
