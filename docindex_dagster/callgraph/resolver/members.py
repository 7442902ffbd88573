"""Member lookup in objects, classes, literals, functions and modules."""

from collections.abc import Sequence

from docindex_dagster.callgraph.ir import Expression, path_of
from docindex_dagster.callgraph.resolver import builtins, header_visibility
from docindex_dagster.callgraph.resolver.classes import as_member, children, members, own_member
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, bases_of_unnamed, class_of
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    external,
    found_by,
    known,
)
from docindex_dagster.callgraph.units import Unit

_OF_LIBRARY = frozenset({"external", "external object", "collection"})


def members_of(q: Queries, unit: Unit, scope: str, values: Values, name: str) -> list[Value]:
    """Return the members of some values, including extension functions."""
    if name in unit.rules.peek_attributes and (peeked := [one for value in values for one in _peeked(value)]):
        return peeked
    found: list[Value] = []
    for value in values:
        found += (unit.rules.has_impls and _trait_method(q, unit, value, name)) or q.member(value, name)
    if unit.rules.separates_kinds and not known(found):
        found = [*q.extensions(unit, scope, values, name)] or found
    return found


def _peeked(value: Value) -> Sequence[Value]:
    """Return an element of a library collection."""
    return found_by(value.held[-1:], Resolution.ELEMENT) if value.kind in _OF_LIBRARY else ()


def tested(q: Queries, unit: Unit, scope: str, of: Expression, name: str) -> Values:
    """Return a member found through the types that an expression is tested for, if it is unambiguous."""
    paths = unit.tested.get(scope)
    types = paths.get(path_of(of), ()) if paths else ()
    found = distinct(q.all_members(q.each(unit, scope, types[:MOST_VALUES]), name)) if types else ()
    return found if len(found) == 1 else ()


def member(q: Queries, value: Value, name: str) -> Values:
    """Return the members of a value with a name."""
    return tuple(_MEMBERS[value.kind](q, value, name))


def _of_class(q: Queries, value: Value, name: str) -> Sequence[Value]:
    if name in {"this", "super"} and q.rules(value).separates_kinds:  # qualified with an outer class
        is_interface = q.definition(value).kind == "interface"
        return [value.as_kind("object" if name == "this" or is_interface else "parent")]
    return _of_object(q, value, name)


def _of_object(q: Queries, value: Value, name: str) -> Sequence[Value]:
    rules, is_cls = q.rules(value), value.kind == "class"
    hooks = rules.hooks
    if hooks.member is not None and (first := hooks.member(q, value, name)) is not None:
        return first
    if name in rules.factories and (is_cls or rules.has_open_classes):
        return _factory(q, value, name)
    if not is_cls and name in rules.class_attributes:
        return [value.as_kind("class")]
    if name == "prototype":
        return [value.as_kind("object")]
    found = members(q, value, ancestors(q, value), name)
    if not known(found) and hooks.fallback is not None and (other := hooks.fallback(q, value, name, found)):
        return other
    return found or _constant(q, value, name)


def _of_parent(q: Queries, value: Value, name: str) -> Sequence[Value]:
    first, *others = ancestors(q, value)
    return members(q, first.as_kind("object"), others, name)


def _of_module(q: Queries, value: Value, name: str) -> Sequence[Value]:
    if not value.name:
        return found_by(q.in_module(value.path, name), Resolution.IMPORT)
    if q.rules(value).separates_kinds:
        return q.in_namespace(value, name)
    return header_visibility.resolve_full_name(q, q.unit(value.path), f"{value.name}.{name}")


def _of_external(_: Queries, value: Value, name: str) -> Sequence[Value]:
    if name == "prototype":
        return [value]
    if name == "second" and value.name.startswith("std."):
        return value.held[-1:] if value.name == "std.pair" else [value]
    if name.isdecimal():
        return value.held[int(name) : int(name) + 1] if value.name == "tuple" else ()
    return [external(f"{value.name}.{name}", value.resolution, value.held)]


def _factory(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return the class itself, or its own factory method if it defines one; modules have no instances."""
    unit = q.unit(value.path)
    definition = unit.definitions[value.name]
    if definition.kind == "module" or any(children(q, unit, definition, name)):
        return own_member(q, value, value, name)
    return [value.as_kind("class")]


def of_literal(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a method or field of an object literal."""
    unit = q.unit(value.path)
    inside = unit.children_of(value.name, name)
    if value.name in unit.definitions:  # an anonymous class in a function
        inside = [one for one in inside if one.kind == "method"]
    if found := [found for one in inside for found in as_member(q, value, unit, one)]:
        return found
    for scope, expression in unit.attributes.get(value.name, {}).get(name, ())[:MOST_VALUES]:
        found += q.values(unit, scope, expression)
    if not found:
        bases = bases_of_unnamed(q, unit, value.name)
        found = q.all_members([base.as_kind("object") for base in bases], name)
    return found or [one for record in value.held if record.kind == "record" for one in _of_record(q, record, name)]


def _of_record(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return the field with a name, or else the member of a spread value."""
    unit, fields = q.unit(value.path), value.record.fields if value.record else ()
    if found := q.each(unit, value.name, [part for key, part in fields if key == name]):
        return found_by(found, Resolution.RECEIVER)
    return q.all_members(q.each(unit, value.name, [part for key, part in fields if not key]), name)


def _of_function(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a member of a function: a method that calls it, or an attribute set on it."""
    rules = q.rules(value)
    if name in rules.call_methods:
        return [value]
    return rules.hooks.function_member(q, value, name) if rules.hooks.function_member is not None else ()


def _trait_method(q: Queries, importer: Unit, value: Value, name: str) -> list[Value]:
    """Return a method that a trait in the source adds to a library type."""
    if importer.rules.has_extensions:
        return _extension_member(q, importer, value, name)
    if value.kind not in {"external", "external object"}:
        return []
    last = value.name.rpartition(".")[2]
    impls = [item for item in q.program.named.get(importer.rules.family, last) if item[1].kind == "impl"]
    return [
        Value("function", path, member.id, Resolution.RECEIVER)
        for path, definition in impls
        for unit in [q.unit(path)]
        for member in unit.children_of(definition.qualified, name)
        if any(
            base.kind == "class" and name in q.unit(base.path).children.get(base.name, ())
            for _, bases in q.bases(unit, definition)
            for base in bases
        )
    ]


def _extension_member(q: Queries, importer: Unit, value: Value, name: str) -> list[Value]:
    """Return a member that extensions add to a library type."""
    is_of_source = value.kind == "object" and q.definition(value).kind == "impl"
    if not is_of_source and value.kind not in _OF_LIBRARY:
        return []
    last = q.definition(value).name if is_of_source else value.name.rpartition(".")[2]
    family, found = importer.rules.family, []
    for one in builtins.same_types(last):
        for path, definition in q.program.named.get(family, one):
            if definition.kind == "impl" and class_of(q, q.unit(path), definition).name == definition.id:
                found += known(q.member(Value("object", path, definition.id), name))
    return found_by(found, Resolution.RECEIVER)


def _constant(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a constant of an enum."""
    if value.kind != "class" or q.definition(value).kind != "enum":
        return ()
    held = (value.as_kind("object"),)
    return [*held, external(f"{value.name}.{name}", Resolution.RECEIVER, held)]


_MEMBERS = {
    "class": _of_class,
    "object": _of_object,
    "parent": _of_parent,
    "module": _of_module,
    "function": _of_function,
    "literal": of_literal,
    "record": _of_record,
    "external": _of_external,
    "external object": _of_external,
    "collection": _of_external,
}
