"""Names in namespaces, and what the headers that a file includes show of them.

A namespace is followed as a module whose value has the path of the file that sees it and the full name as its name.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import ROOT
from docindex_dagster.graph.notation import arguments_of
from docindex_dagster.graph.offers import full_name, with_parents
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.units import CLASSES, DIRECTIVE, FUNCTIONS, Definition, Unit
from docindex_dagster.graph.values import How, Kind, Value, is_known

if TYPE_CHECKING:
    from docindex_dagster.graph.resolution.base import NameResolver

_Found = list[tuple[Unit, Definition]]
_MOST_ASSIGNED = 60  # places that put something into a field
_WITH_FIXTURE = frozenset({"TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "BENCHMARK_F", "BENCHMARK_DEFINE_F"})


def in_space(resolver: "NameResolver", unit: Unit, full: str) -> list[Value]:
    """What a full name stands for, seen from a file."""
    policy = unit.policy
    if full.startswith(ROOT):
        full = full.removeprefix(f"{ROOT}.")
        if policy.sharing == "included" and "." not in full:
            return looked_up(resolver, unit, "", full)
    found = [
        value
        for other, one in defined(resolver, unit, full)
        if one.kind != "module"
        for value in resolver.defined(other, one, _how(unit, other, policy))
    ]
    if policy.sharing == "included":
        found += _variable(resolver, unit, full)
    if not found and resolver.program.is_namespace(policy.family, full):
        return [Value(Kind.MODULE, unit.path, full)]
    return found


def _how(unit: Unit, other: Unit, policy: Policy) -> How:
    if other.path == unit.path:
        return How.FILE
    return How.IMPORT if policy.sharing == "included" else How.PACKAGE


def defined(resolver: "NameResolver", unit: Unit, full: str) -> _Found:
    """The definitions of a full name that a file sees."""
    none: _Found = []
    if not _is_defined(resolver, unit, full):
        return none
    return resolver.memo.settled(("defined", unit.path, full), none, _defined, resolver, unit, full)


def _is_defined(resolver: "NameResolver", unit: Unit, full: str) -> bool:
    """Whether anything in the program has the last part of a full name; specialisations are named in many ways."""
    return "<" in full or bool(resolver.program.named.get((unit.policy.family, full.rpartition(".")[2])))


def _defined(resolver: "NameResolver", unit: Unit, full: str) -> _Found:
    policy, program = unit.policy, resolver.program
    listed = program.full.get((policy.family, full), ())
    if policy.sharing == "included" and listed and all(one.kind == "module" for _, one in listed):
        return []  # a namespace
    found = [(program.units[path], definition) for path, definition in listed]
    return _seen(resolver, unit, full, found) if found and policy.sharing == "included" else found


def _seen(resolver: "NameResolver", unit: Unit, full: str, found: _Found) -> _Found:
    """Of some definitions those in a file or what it includes, and those of which there is a declaration."""
    visible = resolver.visible(unit)
    near = [(other, one) for other, one in found if other.path in visible]
    declaring = resolver.program.declaring(unit.policy.family, full)
    far = [
        (other, one)
        for other, one in found
        if other.path not in visible and not one.is_local and one.kind in FUNCTIONS and not is_forward(other, one)
    ]
    if declaring & visible:
        return near + _linked(resolver, declaring & visible, far)
    if near:
        return near
    classes = [(other, one) for other, one in found if one.kind in CLASSES]
    if classes and len({other.path for other, _ in classes}) == 1:
        return classes
    return far if declaring and len(far) == 1 else []


def _linked(resolver: "NameResolver", declaring: frozenset[str], far: _Found) -> _Found:
    """Of definitions in files that are not included, those that know one of the declarations, if some do."""
    knowing = [(other, one) for other, one in far if declaring & resolver.visible(other)]
    return knowing or (far if len({other.path for other, _ in far}) == 1 else [])


def _variable(resolver: "NameResolver", unit: Unit, full: str) -> list[Value]:
    """What a variable of a namespace may be."""
    family = unit.policy.family
    space, _, name = full.rpartition(".")
    visible = resolver.visible(unit)
    places = [(path, scope) for path, scope in resolver.program.variables.get((family, full), ()) if path in visible]
    found = [value for path, scope in places for value in resolver.bound(resolver.unit(path), scope, full, name)]
    if not places or any(map(is_known, found)):
        return found
    for path, scope in resolver.program.variables.get((family, full), ()):
        if path not in visible:
            found += resolver.bound(resolver.unit(path), scope, full, name)
    return found + _assigned_outside(resolver, family, space, name)


def _assigned_outside(resolver: "NameResolver", family: str, space: str, name: str) -> list[Value]:
    """What functions put into a variable of a namespace."""
    found: list[Value] = []
    for path, (scope, of, value) in resolver.program.stored.get((family, f".{name}"), ())[:_MOST_ASSIGNED]:
        other = resolver.unit(path)
        if not of and name not in other.binds.get(scope, {}) and not space:
            found += resolver.values(other, scope, value)
    return found


def looked_up(resolver: "NameResolver", unit: Unit, home: str, name: str) -> list[Value]:
    """What a name means in the innermost of the namespaces and classes around a place that has it."""
    if name == ROOT:
        return [Value(Kind.MODULE, unit.path, ROOT)]
    for space in _outwards(home):
        if found := _within(resolver, unit, space, name):
            return found
    for imported in unit.imports.get(name, ()):
        full = _joined(imported.module, imported.name)
        for space in _outwards(home):
            if found := in_space(resolver, unit, _joined(space, full)):
                return [value.found(How.IMPORT) for value in found]
    return _macros(resolver, unit, name)


def _within(resolver: "NameResolver", unit: Unit, space: str, name: str) -> list[Value]:
    """What a namespace or class, or a namespace that is used in it, has under a name."""
    for owner in classes_at(resolver, unit, space) if space else ():
        if found := [*resolver.member(owner._replace(kind=Kind.OBJECT), name)]:
            return found
    for within in (space, *(_joined(space, directive) for directive in unit.directives)):
        if found := in_space(resolver, unit, _joined(within, name)):
            return found
    return []


def _macros(resolver: "NameResolver", unit: Unit, name: str) -> list[Value]:
    """Macros, which are in no namespace, wherever they are written."""
    visible = resolver.visible(unit)
    named = resolver.program.named.get((unit.policy.family, name), ())
    return [
        Value(Kind.FUNCTION, path, one.id, How.IMPORT) for path, one in named if one.kind == "macro" and path in visible
    ]


def _joined(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def classes_at(resolver: "NameResolver", unit: Unit, full: str) -> list[Value]:
    """The class of a full name, which may be in a namespace that the file uses."""
    none: list[Value] = []
    return resolver.memo.settled(("classes", unit.path, full), none, _classes_at, resolver, unit, full)


def _classes_at(resolver: "NameResolver", unit: Unit, full: str) -> list[Value]:
    for name in (full, *(f"{directive}.{full}" for directive in unit.directives)):
        found = [
            Value(Kind.CLASS, other.path, one.id) for other, one in defined(resolver, unit, name) if one.kind in CLASSES
        ]
        if found:
            return found[:1]
    return []


def space_of(unit: Unit, definition: Definition) -> str:
    """The namespace or class that a definition is written into; of a test that has a fixture this."""
    if definition.name in _WITH_FIXTURE and (taken := unit.parameters.get(definition.id)):
        fixture = taken[0][1].lstrip(":")
        return f"{definition.parent}.{fixture}" if definition.parent else fixture
    return definition.parent


def home_of(resolver: "NameResolver", unit: Unit, parent: str) -> str:
    """The full name of what is around a definition, where it is written by a shorter one."""
    owners = classes_at(resolver, unit, parent) if parent else []
    return full_name(resolver.unit(owners[0].path), resolver.definition(owners[0]).qualified) if owners else parent


def assigned(resolver: "NameResolver", cls: Value, name: str) -> Iterator[Value]:
    """What is put into a field of a class, anywhere in the program."""
    unit = resolver.unit(cls.path)
    family, definition = unit.policy.family, unit.definitions[cls.name]
    program = resolver.program
    names = [definition.name, *_other_names(unit, definition)]
    fields = [*unit.binds.get(definition.id, ())]
    keys = [f"{one}.{name}" for one in names]
    if name in fields:
        keys += [f"{one}.#{fields.index(name)}" for one in names]
    for key in keys:
        for path, (scope, _, value) in program.stored.get((family, key), ())[:_MOST_ASSIGNED]:
            yield from resolver.values(resolver.unit(path), scope, value)
    for path, (scope, of, value) in program.stored.get((family, f".{name}"), ())[:_MOST_ASSIGNED]:
        other = resolver.unit(path)
        if of in {"", "this"}:
            owner = resolver.owner(other, scope)
            owners = [] if owner is None or name in other.binds.get(scope, {}) else [owner]
        else:
            owners = [*resolver.values(other, scope, of)]
        if any((one.path, one.name) == (cls.path, cls.name) for one in owners if one.kind is not Kind.FUNCTION):
            yield from resolver.values(other, scope, value)


def _other_names(unit: Unit, definition: Definition) -> Iterator[str]:
    """The names that a struct has by `typedef`."""
    for name, values in unit.binds.get(definition.parent, {}).items():
        if f":{definition.name}" in values and any(
            one.kind == "type" for one in unit.children.get(definition.parent, {}).get(name, ())
        ):
            yield name


def is_forward(unit: Unit, definition: Definition) -> bool:
    """Whether a function is only declared."""
    return definition.name in unit.forwards.get(definition.id, ())


def with_body(resolver: "NameResolver", value: Value) -> Value:
    """A method as it is defined outside of its class, where it is."""
    if value.kind is not Kind.FUNCTION:
        return value
    unit = resolver.unit(value.path)
    if not unit.forwards:
        return value
    definition = unit.definitions[value.name]
    if not is_forward(unit, definition):
        return value
    family = unit.policy.family
    found = []
    for path, one in resolver.program.named.get((family, definition.name), ()):
        other = resolver.program.units[path]
        is_same = definition.qualified == one.qualified or definition.qualified.endswith(f".{one.qualified}")
        if is_same and one.parent and one.kind in FUNCTIONS and not is_forward(other, one):
            found.append(Value(Kind.FUNCTION, path, one.id, value.how, value.held))
    wanted = _types(resolver.parameters(value))
    fitting = [one for one in found if _types(resolver.parameters(one)) == wanted] or [
        one for one in found if len(resolver.parameters(one)) == len(wanted)
    ]
    knowing = [one for one in fitting if value.path in resolver.visible(resolver.unit(one.path))]
    return next(iter(knowing or fitting), value)


def _types(parameters: Sequence[tuple[str, str]]) -> list[str]:
    return [written.partition("<")[0].rpartition(".")[2].lstrip(":") for _, written in parameters]


def _outwards(space: str) -> Iterator[str]:
    yield from with_parents(space)
    yield ""


def included(resolver: "NameResolver", unit: Unit) -> frozenset[str]:
    """The paths of a file and of all that it includes."""
    seen, waiting = {unit.path}, [unit]
    while waiting:
        current = waiting.pop()
        for star in current.stars:
            if star.name == DIRECTIVE:
                continue
            for path in resolver.program.find_module(current, star.module):
                if path not in seen and path in resolver.program.units:
                    seen.add(path)
                    waiting.append(resolver.program.units[path])
    return frozenset(seen)


def types(resolver: "NameResolver", unit: Unit, scope: str, name: str) -> list[Value]:
    """What a name of a type stands for at a place: no variable or function of the name."""
    around = unit.definitions.get(scope)
    first, _, rest = name.partition(".")
    imported = [".".join(filter(None, (one.module, one.name, rest))) for one in unit.imports.get(first, ())]
    names = [name, *imported, *(f"{directive}.{name}" for directive in unit.directives)]
    for space in _outwards(home_of(resolver, unit, around.qualified if around else scope)):
        owners = classes_at(resolver, unit, space) if space and unit.language == "cpp" else []
        for owner in owners:
            if found := _given_types(resolver, owner, name):
                return found
        for written in names:
            if found := _types_of(resolver, unit, _joined(space, written)):
                return found
        for owner in owners:
            if found := _inherited_types(resolver, owner, name):
                return found
    return []


def _given_types(resolver: "NameResolver", owner: Value, name: str) -> list[Value]:
    """What the program gives for a parameter of a class."""
    unit, definition = resolver.unit(owner.path), resolver.definition(owner)
    names = [parameter for parameter, _ in unit.parameters.get(owner.name, ())]
    if name not in names:
        return []
    found: list[Value] = []
    uses = resolver.program.stored.get((unit.policy.family, f"<{definition.name}"), ())
    for path, (scope, _, written) in uses[:_MOST_ASSIGNED]:
        other = resolver.unit(path)
        arguments = [*arguments_of(written)]
        if names.index(name) < len(arguments):
            found += resolver.values(other, scope, f":{arguments[names.index(name)]}")
    return [value for value in found if is_known(value)]


def _types_of(resolver: "NameResolver", unit: Unit, full: str) -> list[Value]:
    known = [(other, one) for other, one in defined(resolver, unit, full) if one.kind in CLASSES or one.kind == "type"]
    classes = [(other, one) for other, one in known if one.kind in CLASSES]
    return [value for other, one in classes or known for value in resolver.defined(other, one, How.PACKAGE)]


def _inherited_types(resolver: "NameResolver", owner: Value, name: str) -> list[Value]:
    for ancestor in resolver.ancestors(owner):
        if ancestor.kind is not Kind.CLASS:
            continue
        unit = resolver.unit(ancestor.path)
        inside = unit.children.get(unit.definitions[ancestor.name].qualified, {}).get(name, ())
        if found := [one for one in inside if one.kind in CLASSES or one.kind == "type"]:
            return [value for one in found for value in resolver.defined(unit, one, How.INHERITED)]
    return []


def beyond(resolver: "NameResolver", unit: Unit, name: str) -> list[Value]:
    """What a name means that neither the file nor its namespace has: a namespace, or a function outside of all."""
    family = unit.policy.family
    if name == ROOT:
        return [Value(Kind.MODULE, unit.path, ROOT)]
    if unit.namespace and not name.startswith("$"):
        found = [(other, one) for other, one in defined(resolver, unit, name) if one.kind == "function"]
        if found:
            return [value for other, one in found for value in resolver.defined(other, one, How.PACKAGE)]
    full = f"{unit.namespace}.{name}" if unit.namespace else name
    return [Value(Kind.MODULE, unit.path, full)] if resolver.program.is_namespace(family, full) else []
