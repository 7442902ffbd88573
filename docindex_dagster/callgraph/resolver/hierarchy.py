"""The class hierarchy: the parts of a class, what it is made from, and what is made from it."""

from collections.abc import Iterator, Sequence

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import Base, Definition, Instance
from docindex_dagster.callgraph.nesting import FUNCTIONS, is_class
from docindex_dagster.callgraph.resolver.hoisting import space_of
from docindex_dagster.callgraph.resolver.queries import BASE_KINDS, Part, Queries
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, distinct
from docindex_dagster.callgraph.units import Unit

_MOST_DERIVED = 40  # classes
_NO_BASES = frozenset({"external", "literal", "record"})


def bases(q: Queries, unit: Unit, definition: Definition) -> Iterator[tuple[Base, Values]]:
    """The base classes that a definition names, each with what the name stands for."""
    for base in unit.bases.get(definition.id, ()):
        found = _denoted(q, unit, definition, base)
        if any(one.kind == "module" for one in found):
            found = tuple(made for one in found for made in (q.made(one) if one.kind == "module" else [one]))
        if unit.rules.has_tables:  # what another call gives the function that makes the table is no base of it
            found = tuple(one for one in found if one.resolution < Resolution.ARGUMENT)
        yield base, distinct(found)


def _denoted(q: Queries, unit: Unit, definition: Definition, base: Base) -> Values:
    """What the name of a base class stands for, or the call that gives it."""
    if not isinstance(base.value, Instance):
        return q.values(unit, definition.parent, base.value)
    name = base.value.type.name
    inside = unit.children_of(definition.qualified, name) if base.kind == "companion" else ()
    found = tuple(q.all_defined(unit, inside, Resolution.SCOPE)) or q.type_names(unit, definition.parent, name)
    if not found and unit.rules.has_open_classes and (base.kind == "mixin" or unit.rules.has_path_imports):
        return q.type_names(unit, definition.id, name)
    return found


def ancestors(q: Queries, value: Value) -> Iterator[Value]:
    """A class and what it is made from, in the order in which members are looked for (method resolution order)."""
    if value.path and q.rules(value).has_companions:
        yield from _linearized(q, value, {})
        return
    stack, seen = [value], set()
    while stack:
        current = stack.pop()
        identity = current.path, current.name, current.record
        if identity not in seen:
            seen.add(identity)
            yield current
            if current.kind not in _NO_BASES:
                stack += reversed(q.direct_bases(current.path, current.name))


def _linearized(q: Queries, value: Value, known: dict[tuple[str, str], Sequence[Value]]) -> Sequence[Value]:
    """A class and what it is made from, each behind all that is made from it (class linearization of Scala)."""
    key = value.path, value.name
    if key not in known:
        known[key] = ()  # of a class that is made from itself
        found = {key: value}
        for base in q.direct_bases(*key) if value.kind not in _NO_BASES else ():
            for one in _linearized(q, base, known):
                if (one.path, one.name) != key:
                    found.pop((one.path, one.name), None)
                    found[one.path, one.name] = one
        known[key] = tuple(found.values())
    return known[key]


def ancestor_names(q: Queries, value: Value) -> frozenset[str]:
    """The last names of the classes of an object."""
    return frozenset(one.name.rpartition(".")[2].partition("~")[0] for one in ancestors(q, value))


def direct_bases(q: Queries, path: str, name: str) -> Values:
    """What all parts of a class are made from."""
    named = [base for _, values in named_bases(q, path, name) for base in values if base.kind in BASE_KINDS]
    rules = q.unit(path).rules
    extended = [
        Value("class", unit.path, member.id)
        for one in (named if rules.extension else ())
        if one.kind == "class"
        for unit, definition in parts_of(q, one)
        for member in unit.children_of(definition.qualified, rules.extension)
    ]
    return (*named, *extended) if rules.inherits else tuple(extended)


def named_bases(q: Queries, path: str, name: str) -> Iterator[tuple[Base, Values]]:
    """The base classes that all parts of a class name."""
    return (base for unit, definition in q.parts(path, name) for base in q.bases(unit, definition))


def interfaces(q: Queries, cls: Value) -> list[Value]:
    """What a class, or what extends it, implements."""
    return [
        value
        for part in (cls, *q.direct_bases(cls.path, cls.name))
        for base, values in named_bases(q, part.path, part.name)
        if base.kind == "implements"
        for value in values
        if value.kind == "class"
    ]


def parts_of(q: Queries, value: Value) -> Sequence[Part]:
    """The definitions of one class: in its file, and in others where the language allows it."""
    return q.parts(value.path, value.name)


def parts(q: Queries, path: str, name: str) -> Sequence[Part]:
    """The same, by the path and id of one."""
    unit = q.unit(path)
    return [*_parts(q, unit, unit.definitions[name])]


def _parts(q: Queries, unit: Unit, own: Definition) -> Iterator[Part]:
    yield unit, own
    rules = unit.rules
    if rules.has_protocols:  # what has its name is no part of it
        return
    yield from ((unit, one) for one in unit.same_named(own.qualified) if one.id != own.id and is_class(one))
    if rules.sharing == "global" and rules.has_open_classes:
        yield from _reopened(q, unit, own)
    if rules.has_partial_classes and own.kind != "module":
        for path, definition in q.program.full.get(rules.family, unit.full_name(own.qualified)):
            if path != unit.path and is_class(definition):
                yield q.unit(path), definition
    if rules.has_impls and own.kind != "module":
        yield from q.impls(unit, own)


def _reopened(q: Queries, unit: Unit, own: Definition) -> Iterator[Part]:
    """Where else a class is opened and given attributes or bases; its methods are found by their full names."""
    for path, definition in q.program.named.get(unit.rules.family, own.name):
        if path != unit.path and definition.qualified == own.qualified and is_class(definition):
            other = q.unit(path)
            given = other.bindings, other.roots, other.bases
            if definition.qualified in other.attributes or any(definition.id in some for some in given):
                yield other, definition


def impls(q: Queries, unit: Unit, own: Definition) -> Sequence[Part]:
    """Where else methods are added to a class."""
    return tuple(
        (other, definition)
        for path, definition in q.program.named.get(unit.rules.family, own.name)
        if definition.kind == "impl"
        and (other := q.unit(path))
        and (path != unit.path or definition.qualified != own.qualified)
        and class_of(q, other, definition).is_same(Value("class", unit.path, own.id))
    )


def class_of(q: Queries, unit: Unit, definition: Definition) -> Value:
    """The class that a definition is, or to which it adds methods."""
    if definition.kind == "impl":
        for value in q.type_names(unit, definition.parent, definition.name):
            if value.kind == "class":
                return value
    return Value("class", unit.path, definition.id)


def owner(q: Queries, unit: Unit, scope: str) -> Value | None:
    """The class whose member a place is in, also of a method that is written outside of its class."""
    cls = class_around(unit, scope)
    if cls is not None:
        return class_of(q, unit, cls)
    if unit.rules.sharing != "included":
        return None
    *_, outermost = (None, *(around for around in unit.around(scope) if around.kind != "module"))
    space = space_of(unit, outermost) if outermost else ""
    return next(iter(q.classes_at(unit, space)), None) if space else None


def class_around(unit: Unit, scope: str) -> Definition | None:
    """The class, or where it may be opened the module, around a place."""
    if not unit.rules.has_open_classes:
        return unit.class_around(scope)
    return next((around for around in unit.around(scope) if is_class(around)), None)


def function_around(unit: Unit, scope: str) -> Definition | None:
    """The innermost function around a place."""
    return next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)


def derived_classes(q: Queries, base: Value) -> Iterator[Value]:
    """The classes that are made from another, and those made from them."""
    stack, seen = [base], {(base.path, base.name)}
    in_tests = q.unit(base.path).is_test
    while stack and len(seen) < _MOST_DERIVED:
        current = stack.pop()
        found = q.derived(current.path, current.name, in_tests)
        new = [one for one in found if (one.path, one.name) not in seen]
        seen.update((one.path, one.name) for one in new)
        stack += new
        yield from new


def derived(q: Queries, path: str, name: str, in_tests: bool) -> Values:  # noqa: FBT001 of a query
    """The classes that name a class as a base; those of tests only with `in_tests`."""
    cls, last = Value("class", path, name), name.rpartition(".")[2].partition("~")[0]
    return tuple(
        Value("object", other.path, identifier)
        for other, identifier in q.in_files(q.program.derived, q.unit(path), last)
        if identifier in other.definitions
        and (in_tests or not other.is_test)
        and any(one.is_same(cls) for _, values in q.bases(other, other.definitions[identifier]) for one in values)
    )


def bases_of_unnamed(q: Queries, unit: Unit, function: str) -> Values:
    """What a class without a name, which a function gives, is made from, where that is one class."""
    definition = unit.definitions.get(function)
    if definition is None or definition.kind not in FUNCTIONS or function not in unit.bases:
        return ()
    written = [one.value for one in unit.bases[function]]
    named = [ir.path(one.type.name) if isinstance(one, Instance) else one for one in written]
    found = distinct(value for value in q.each(unit, function, named) if value.kind in BASE_KINDS)
    return found if len(found) == 1 else ()
