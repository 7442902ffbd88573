"""What objects, classes, literals, functions and modules have under a name."""

from collections.abc import Sequence

from docindex_dagster.callgraph.ir import Expression, Instance, path_of
from docindex_dagster.callgraph.offers import full_name
from docindex_dagster.callgraph.resolver import builtins, spaces
from docindex_dagster.callgraph.resolver.classes import as_member, children, members, own_member
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, bases_of_unnamed, class_of
from docindex_dagster.callgraph.resolver.queries import PATH_WORDS, Queries
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    external,
    found_by,
    functions,
    known,
)
from docindex_dagster.callgraph.units import Unit

_OF_ANY = frozenset({"else", "value_ptr", "value"})  # what a switch has left, and the entries of the library's maps
_OF_LIBRARY = frozenset({"external", "external object", "collection"})


def members_of(q: Queries, unit: Unit, scope: str, values: Values, name: str) -> list[Value]:
    """What some objects, classes or modules have under a name, also by functions that are added to their types."""
    if name in unit.rules.peeking and (peeked := [one for value in values for one in _peeked(value)]):
        return peeked
    found: list[Value] = []
    for value in values:
        found += (unit.rules.has_impls and _added(q, unit, value, name)) or q.member(value, name)
    if unit.rules.separates_kinds and not known(found):
        found = [*q.extensions(unit, scope, values, name)] or found
    return found


def _peeked(value: Value) -> Sequence[Value]:
    """What a collection of the library holds."""
    return found_by(value.held[-1:], Resolution.ELEMENT) if value.kind in _OF_LIBRARY else ()


def tested(q: Queries, unit: Unit, scope: str, of: Expression, name: str) -> Values:
    """A member that something has by a type for which it was tested, where just one of these has it."""
    paths = unit.tested.get(scope)
    types = paths.get(path_of(of), ()) if paths else ()
    found = distinct(q.all_members(q.each(unit, scope, types[:MOST_VALUES]), name)) if types else ()
    return found if len(found) == 1 else ()


def member(q: Queries, value: Value, name: str) -> Values:
    """What something has under a name."""
    return tuple(_MEMBERS[value.kind](q, value, name))


def _of_class(q: Queries, value: Value, name: str) -> Sequence[Value]:
    if name in {"this", "super"} and q.rules(value).separates_kinds:  # of an outer class
        is_interface = q.definition(value).kind == "interface"
        return [value.as_kind("object" if name == "this" or is_interface else "parent")]
    return _of_object(q, value, name)


def _of_object(q: Queries, value: Value, name: str) -> Sequence[Value]:  # noqa: PLR0911 one a rule
    rules, is_cls = q.rules(value), value.kind == "class"
    if rules.family == "python" and name.isdecimal():  # what it gives when it is taken apart
        return ()
    if name in rules.makers and (is_cls or rules.has_open_classes):
        return _maker(q, value, name)
    if not is_cls and name in rules.classes:
        return [value.as_kind("class")]
    if name == "prototype":
        return [value.as_kind("object")]
    if name in rules.supers and (bases := q.direct_bases(value.path, value.name)):
        return bases
    found = members(q, value, ancestors(q, value), name)
    if not known(found) and (inner := _of_deref(q, value, name)):
        return inner
    if is_cls and name == rules.default and not found:
        return [value]
    if is_cls and name in PATH_WORDS and rules.has_module_paths:
        return q.path_word(q.unit(value.path), value.name, name)
    return found or _without_member(q, value, name)


def _of_parent(q: Queries, value: Value, name: str) -> Sequence[Value]:
    first, *others = ancestors(q, value)
    return members(q, first.as_kind("object"), others, name)


def _of_module(q: Queries, value: Value, name: str) -> Sequence[Value]:
    if not value.name:
        return found_by(q.in_module(value.path, name), Resolution.IMPORT)
    if q.rules(value).separates_kinds:
        return q.in_namespace(value, name)
    return spaces.in_space(q, q.unit(value.path), f"{value.name}.{name}")


def _of_external(_: Queries, value: Value, name: str) -> Sequence[Value]:
    if name == "prototype":
        return [value]
    if name == "second" and value.name.startswith("std."):
        return value.held[-1:] if value.name == "std.pair" else [value]
    if name.isdecimal():
        return value.held[int(name) : int(name) + 1] if value.name == "tuple" else ()
    return [external(f"{value.name}.{name}", value.resolution, value.held)]


def _maker(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """The class itself, or its own function of that name; a module makes nothing."""
    unit = q.unit(value.path)
    definition = unit.definitions[value.name]
    if definition.kind == "module" or any(children(q, unit, definition, name)):
        return own_member(q, value, value, name)
    return [value.as_kind("class")]


def of_literal(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """A method that is written in a literal, or what is given there under a name."""
    unit = q.unit(value.path)
    inside = unit.children_of(value.name, name)
    if value.name in unit.definitions:  # a class without a name, in a function
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
    """What is under a name, else in what is spread."""
    unit, fields = q.unit(value.path), value.record.fields if value.record else ()
    if found := q.each(unit, value.name, [part for key, part in fields if key == name]):
        return found_by(found, Resolution.RECEIVER)
    return q.all_members(q.each(unit, value.name, [part for key, part in fields if not key]), name)


def _of_function(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """What a function has under a name: the ways to call it, and what it is given as an object."""
    unit = q.unit(value.path)
    rules, definition = unit.rules, unit.definitions[value.name]
    is_row = unit.language == "c" or (unit.language == "cpp" and name == "second")  # of a table, or a pair
    if is_row or name in rules.callers:
        return [value]
    if rules.has_file_types:
        return _of_type_function(q, value, name)
    if not rules.has_prototypes:
        return ()
    if name == "prototype":
        return [value.as_kind("object")]
    found = q.all_defined(unit, unit.children_of(definition.qualified, name), Resolution.RECEIVER)
    dotted = unit.dotted.get(definition.parent, {}).get(f"{definition.name}.{name}", ())
    found += q.each(unit, definition.parent, dotted[:MOST_VALUES])
    return found or [external(f"Function.{name}")]


def _of_type_function(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """What the type has under a name that a function gives: it is written in it, or in another one that this calls."""
    unit, definition = q.unit(value.path), q.definition(value)
    inside = unit.children_of(definition.qualified, name)
    found = [member for one in inside for member in as_member(q, value, unit, one)]
    found += q.each(unit, definition.id, unit.binds(definition.id, name)[:MOST_VALUES])
    if found:
        return found_by(found, Resolution.RECEIVER)
    given = q.each(unit, definition.id, unit.returns.get(definition.id, ()))
    return q.all_members([one for one in given if not one.is_same(value)], name)


def _of_deref(q: Queries, value: Value, name: str) -> list[Value]:
    """A member of what an object stands for by its own rule, or that is added to a type of the library."""
    if name == "deref" or not q.rules(value).has_impls:
        return []
    held = (one for member in functions(q.member(value, "deref")) for one in q.returned(member))
    return q.all_members(held, name)


def _added(q: Queries, seen_from: Unit, value: Value, name: str) -> list[Value]:
    """A method of a trait of the source that is added to a type of the library."""
    if seen_from.rules.has_extensions:
        return _extended(q, seen_from, value, name)
    if value.kind not in {"external", "external object"}:
        return []
    last = value.name.rpartition(".")[2]
    impls = [item for item in q.program.named.get(seen_from.rules.family, last) if item[1].kind == "impl"]
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


def _extended(q: Queries, seen_from: Unit, value: Value, name: str) -> list[Value]:
    """A member that extensions add to a type of the library."""
    is_of_source = value.kind == "object" and q.definition(value).kind == "impl"
    if not is_of_source and value.kind not in _OF_LIBRARY:
        return []
    last = q.definition(value).name if is_of_source else value.name.rpartition(".")[2]
    family, found = seen_from.rules.family, []
    for one in builtins.same_types(last):
        for path, definition in q.program.named.get(family, one):
            if definition.kind == "impl" and class_of(q, q.unit(path), definition).name == definition.id:
                found += known(q.member(Value("object", path, definition.id), name))
    return found_by(found, Resolution.RECEIVER)


def _without_member(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """What a name means that no class has: a constant of an enumeration, or half of a pair in C++."""
    unit, definition = q.unit(value.path), q.definition(value)
    if value.kind == "class" and unit.rules.has_path_imports:
        inside = spaces.in_space(q, unit, f"{full_name(unit, definition.qualified)}.{name}")
        return [one for one in inside if one.kind != "function"]
    if unit.rules.has_file_types and name in _OF_ANY:
        if name != "else":
            return [value]
        fields = [one for some in unit.bindings.get(value.name, {}).values() for one in some]  # of a union
        return q.each(unit, value.name, [one for one in fields if isinstance(one, Instance)][:MOST_VALUES])
    if value.kind == "class" and definition.kind == "enum":
        held = (value.as_kind("object"),)
        return [*held, external(f"{value.name}.{name}", Resolution.RECEIVER, held)]
    return [value] if name == "second" and unit.rules.has_pointers else ()


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
