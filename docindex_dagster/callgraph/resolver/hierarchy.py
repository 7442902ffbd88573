"""Class hierarchy: the parts, base classes and derived classes of a class."""

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
    """Yield the bases of a definition, each with its values."""
    for base in unit.bases.get(definition.id, ()):
        found = _base_values(q, unit, definition, base)
        if any(one.kind == "module" for one in found):
            found = tuple(
                cls for one in found for cls in (q.constructed_classes(one) if one.kind == "module" else [one])
            )
        if unit.rules.has_tables:  # arguments from other callers of the function that creates the table are not bases
            found = tuple(one for one in found if one.resolution < Resolution.ARGUMENT)
        yield base, distinct(found)


def _base_values(q: Queries, unit: Unit, definition: Definition, base: Base) -> Values:
    """Return the values of a base: a name, or a call that returns a class."""
    if not isinstance(base.value, Instance):
        return q.values(unit, definition.parent, base.value)
    name = base.value.type.name
    inside = unit.children_of(definition.qualified, name) if base.kind == "companion" else ()
    found = tuple(q.all_defined(unit, inside, Resolution.SCOPE)) or q.type_names(unit, definition.parent, name)
    if not found and unit.rules.has_open_classes and (base.kind == "mixin" or unit.rules.has_path_imports):
        return q.type_names(unit, definition.id, name)
    return found


def ancestors(q: Queries, value: Value) -> Iterator[Value]:
    """Yield a class and its ancestors in method resolution order."""
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
    """Return a class and its ancestors, each after all classes derived from it (class linearization in Scala)."""
    key = value.path, value.name
    if key not in known:
        known[key] = ()  # guards against inheritance cycles
        found = {key: value}
        for base in q.direct_bases(*key) if value.kind not in _NO_BASES else ():
            for one in _linearized(q, base, known):
                if (one.path, one.name) != key:
                    found.pop((one.path, one.name), None)
                    found[one.path, one.name] = one
        known[key] = tuple(found.values())
    return known[key]


def ancestor_names(q: Queries, value: Value) -> frozenset[str]:
    """Return the last names of the class of an object and its ancestors."""
    return frozenset(one.name.rpartition(".")[2].partition("~")[0] for one in ancestors(q, value))


def direct_bases(q: Queries, path: str, name: str) -> Values:
    """Return the bases of all parts of a class."""
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
    """Yield the bases named by all parts of a class, each with its values."""
    return (base for unit, definition in q.parts(path, name) for base in q.bases(unit, definition))


def interfaces(q: Queries, cls: Value) -> list[Value]:
    """Return the interfaces that a class or one of its direct bases implements."""
    return [
        value
        for part in (cls, *q.direct_bases(cls.path, cls.name))
        for base, values in named_bases(q, part.path, part.name)
        if base.kind == "implements"
        for value in values
        if value.kind == "class"
    ]


def parts_of(q: Queries, value: Value) -> Sequence[Part]:
    """Return the definitions of a class, including those in other files if the language allows it."""
    return q.parts(value.path, value.name)


def parts(q: Queries, path: str, name: str) -> Sequence[Part]:
    """Return the definitions of a class, by the path and id of one of them."""
    unit = q.unit(path)
    return [*_parts(q, unit, unit.definitions[name])]


def _parts(q: Queries, unit: Unit, own: Definition) -> Iterator[Part]:
    yield unit, own
    rules = unit.rules
    if rules.has_protocols:  # definitions with the same name are not parts of it
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
    """Yield other files that reopen a class to add attributes or bases; methods are found by their full names."""
    for path, definition in q.program.named.get(unit.rules.family, own.name):
        if path != unit.path and definition.qualified == own.qualified and is_class(definition):
            other = q.unit(path)
            added = other.bindings, other.roots, other.bases
            if definition.qualified in other.attributes or any(definition.id in some for some in added):
                yield other, definition


def impls(q: Queries, unit: Unit, own: Definition) -> Sequence[Part]:
    """Return the other definitions that add methods to a class."""
    return tuple(
        (other, definition)
        for path, definition in q.program.named.get(unit.rules.family, own.name)
        if definition.kind == "impl"
        and (other := q.unit(path))
        and (path != unit.path or definition.qualified != own.qualified)
        and class_of(q, other, definition).is_same(Value("class", unit.path, own.id))
    )


def class_of(q: Queries, unit: Unit, definition: Definition) -> Value:
    """Return the class of a definition, or the class that an impl adds methods to."""
    if definition.kind == "impl":
        for value in q.type_names(unit, definition.parent, definition.name):
            if value.kind == "class":
                return value
    return Value("class", unit.path, definition.id)


def owner(q: Queries, unit: Unit, scope: str) -> Value | None:
    """Return the class that owns the member containing a scope, including methods defined outside their class."""
    cls = class_around(unit, scope)
    if cls is not None:
        return class_of(q, unit, cls)
    if unit.rules.sharing != "included":
        return None
    *_, outermost = (None, *(around for around in unit.around(scope) if around.kind != "module"))
    space = space_of(unit, outermost) if outermost else ""
    return next(iter(q.classes_at(unit, space)), None) if space else None


def class_around(unit: Unit, scope: str) -> Definition | None:
    """Return the innermost enclosing class; with open classes, also a module."""
    if not unit.rules.has_open_classes:
        return unit.class_around(scope)
    return next((around for around in unit.around(scope) if is_class(around)), None)


def function_around(unit: Unit, scope: str) -> Definition | None:
    """Return the innermost function that encloses a scope."""
    return next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)


def derived_classes(q: Queries, base: Value) -> Iterator[Value]:
    """Yield the direct and indirect derived classes of a class."""
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
    """Return the directly derived classes of a class; those in tests only with `in_tests`."""
    cls, last = Value("class", path, name), name.rpartition(".")[2].partition("~")[0]
    return tuple(
        Value("object", other.path, identifier)
        for other, identifier in q.in_files(q.program.derived, q.unit(path), last)
        if identifier in other.definitions
        and (in_tests or not other.is_test)
        and any(one.is_same(cls) for _, values in q.bases(other, other.definitions[identifier]) for one in values)
    )


def bases_of_unnamed(q: Queries, unit: Unit, function: str) -> Values:
    """Return the base of an anonymous class returned by a function, if it is unambiguous."""
    definition = unit.definitions.get(function)
    if definition is None or definition.kind not in FUNCTIONS or function not in unit.bases:
        return ()
    written = [one.value for one in unit.bases[function]]
    named = [ir.path(one.type.name) if isinstance(one, Instance) else one for one in written]
    found = distinct(value for value in q.each(unit, function, named) if value.kind in BASE_KINDS)
    return found if len(found) == 1 else ()
