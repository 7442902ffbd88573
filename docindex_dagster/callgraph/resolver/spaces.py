"""Names in namespaces, and what the headers that a file includes show of them (C, C++, PHP).

A namespace is followed as a module whose value has the path of the file that sees it and the full name as its name.
"""

from collections.abc import Iterator, Sequence

from docindex_dagster.callgraph.ir import ROOT, Attribute, Definition, Expression, Instance, Name, Parameter, TypeRef
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS
from docindex_dagster.callgraph.offers import full_name, with_parents
from docindex_dagster.callgraph.resolver.hierarchy import ancestors
from docindex_dagster.callgraph.resolver.queries import Part, Queries
from docindex_dagster.callgraph.resolver.types import builtin
from docindex_dagster.callgraph.resolver.values import How, Value, Values, distinct, external, is_known
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_MOST_ASSIGNED = 60  # places that put something into a field


def in_space(q: Queries, unit: Unit, full: str) -> list[Value]:
    """What a full name stands for, seen from a file."""
    rules = unit.rules
    is_included = rules.sharing == "included"
    if full.startswith(ROOT):
        full = full.removeprefix(f"{ROOT}.")
        if is_included and "." not in full:
            return looked_up(q, unit, "", full)
    found = [
        value
        for other, one in _seen(q, unit, full)
        if one.kind != "module" or rules.has_open_classes
        for value in q.defined(other, one, _how(unit, other, rules))
    ]
    if is_included:
        found += _variable(q, unit, full)
    if not found and q.program.is_namespace(rules.family, full):
        return [Value("module", unit.path, full)]
    return found


def _how(unit: Unit, other: Unit, rules: Rules) -> How:
    if other.path == unit.path:
        return How.FILE
    return How.IMPORT if rules.sharing == "included" else How.PACKAGE


def _seen(q: Queries, unit: Unit, full: str) -> Sequence[Part]:
    """The definitions of a full name that a file sees; specialisations are named in many ways."""
    if "<" not in full and not q.program.named.get(unit.rules.family, full.rpartition(".")[2]):
        return ()
    return q.seen(unit, full)


def seen(q: Queries, unit: Unit, full: str) -> Sequence[Part]:
    """The definitions of a full name that a file sees."""
    rules, program = unit.rules, q.program
    listed = program.full.get(rules.family, full)
    is_included = rules.sharing == "included"
    if is_included and listed and all(one.kind == "module" for _, one in listed):
        return []  # a namespace
    found = [(q.unit(path), definition) for path, definition in listed]
    return _visible(q, unit, full, found) if found and is_included else found


def _visible(q: Queries, unit: Unit, full: str, found: Sequence[Part]) -> Sequence[Part]:
    """Of some definitions those in a file or what it includes, and those of which there is a declaration."""
    visible = q.visible(unit)
    near = [(other, one) for other, one in found if other.path in visible]
    declaring = q.program.declaring(unit.rules.family, full)
    far = [
        (other, one)
        for other, one in found
        if other.path not in visible and not one.is_local and one.kind in FUNCTIONS and not is_forward(other, one)
    ]
    if declaring & visible:
        return near + _linked(q, declaring & visible, far)
    if near:
        return near
    classes = [(other, one) for other, one in found if one.kind in CLASSES]
    if classes and len({other.path for other, _ in classes}) == 1:
        return classes
    return far if declaring and len(far) == 1 else []


def _linked(q: Queries, declaring: frozenset[str], far: list[Part]) -> list[Part]:
    """Of definitions in files that are not included, those that know one of the declarations, if some do."""
    knowing = [(other, one) for other, one in far if declaring & q.visible(other)]
    return knowing or (far if len({other.path for other, _ in far}) == 1 else [])


def _variable(q: Queries, unit: Unit, full: str) -> list[Value]:
    """What a variable of a namespace may be."""
    family = unit.rules.family
    space, _, name = full.rpartition(".")
    visible = q.visible(unit)
    listed = q.program.variables.get(family, full)
    places = [(path, scope) for path, scope in listed if path in visible]
    found = [value for path, scope in places for value in q.bound(q.unit(path), scope, full, name)]
    if not places or any(map(is_known, found)):
        return found
    for path, scope in listed:
        if path not in visible:
            found += q.bound(q.unit(path), scope, full, name)
    return found + _assigned_outside(q, family, space, name)


def _assigned_outside(q: Queries, family: str, space: str, name: str) -> list[Value]:
    """What functions put into a variable of a namespace."""
    found: list[Value] = []
    for path, one in q.program.stored.get(family, f".{name}")[:_MOST_ASSIGNED]:
        other = q.unit(path)
        if isinstance(one.target, Name) and not other.binds(one.scope, name) and not space:
            found += q.values(other, one.scope, one.value)
    return found


def looked_up(q: Queries, unit: Unit, home: str, name: str) -> list[Value]:
    """What a name means in the innermost of the namespaces and classes around a place that has it."""
    if name == ROOT:
        return [Value("module", unit.path, ROOT)]
    for space in _outwards(home):
        if found := _within(q, unit, space, name):
            return found
    for imported in unit.imports.get(name, ()):
        full = _joined(imported.module, imported.member)
        for space in _outwards(home):
            if found := in_space(q, unit, _joined(space, full)):
                return [value.found(How.IMPORT) for value in found]
    return _macros(q, unit, name)


def _within(q: Queries, unit: Unit, space: str, name: str) -> list[Value]:
    """What a namespace or class, or a namespace that is used in it, has under a name."""
    for owner in q.classes_at(unit, space) if space else ():
        if found := [*q.member(owner.as_kind("object"), name)]:
            return found
    for within in (space, *(_joined(space, directive) for directive in unit.directives)):
        if found := in_space(q, unit, _joined(within, name)):
            return found
    return []


def _macros(q: Queries, unit: Unit, name: str) -> list[Value]:
    """Macros, which are in no namespace, wherever they are written."""
    visible = q.visible(unit)
    named = q.program.named.get(unit.rules.family, name)
    return [
        Value("function", path, one.id, How.IMPORT) for path, one in named if one.kind == "macro" and path in visible
    ]


def _joined(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def classes_at(q: Queries, unit: Unit, full: str) -> Values:
    """The class of a full name, which may be in a namespace that the file uses."""
    for name in (full, *(f"{directive}.{full}" for directive in unit.directives)):
        found = [Value("class", other.path, one.id) for other, one in _seen(q, unit, name) if one.kind in CLASSES]
        if found:
            return tuple(found[:1])
    return ()


def home_of(q: Queries, unit: Unit, parent: str) -> str:
    """The full name of what is around a definition, where it is written by a shorter one."""
    owners = q.classes_at(unit, parent) if parent else ()
    return full_name(q.unit(owners[0].path), q.definition(owners[0]).qualified) if owners else parent


def assigned(q: Queries, cls: Value, name: str) -> Iterator[Value]:
    """What is put into a field of a class, anywhere in the program."""
    unit = q.unit(cls.path)
    family, definition, program = unit.rules.family, unit.definitions[cls.name], q.program
    names = [definition.name, *_other_names(unit, definition)]
    fields = [*unit.bindings.get(definition.id, ())]
    keys = [f"{one}.{name}" for one in names]
    if name in fields:
        keys += [f"{one}.#{fields.index(name)}" for one in names]
    for key in keys:
        for path, one in program.stored.get(family, key)[:_MOST_ASSIGNED]:
            yield from q.values(q.unit(path), one.scope, one.value)
    for path, one in program.stored.get(family, f".{name}")[:_MOST_ASSIGNED]:
        other = q.unit(path)
        if any(each.is_same(cls) for each in _owners(q, other, one.scope, one.target, name) if each.kind != "function"):
            yield from q.values(other, one.scope, one.value)


def _owners(q: Queries, unit: Unit, scope: str, target: Expression, name: str) -> Sequence[Value]:
    """The objects to whose field something is assigned."""
    if isinstance(target, Attribute) and target.of is not Name("this"):
        return q.values(unit, scope, target.of)
    owner = q.owner(unit, scope)
    return () if owner is None or unit.binds(scope, name) else (owner,)


def _other_names(unit: Unit, definition: Definition) -> Iterator[str]:
    """The names that a struct has by `typedef`."""
    own = Instance(TypeRef(definition.name))
    for name, values in unit.bindings.get(definition.parent, {}).items():
        if own in values and any(one.kind == "type" for one in unit.children_of(definition.parent, name)):
            yield name


def is_forward(unit: Unit, definition: Definition) -> bool:
    """Whether a function is only declared."""
    return definition.name in unit.forwards.get(definition.id, ())


def with_body(q: Queries, value: Value) -> Value:
    """A method as it is defined outside of its class, where it is."""
    if value.kind != "function":
        return value
    unit = q.unit(value.path)
    if not unit.forwards:
        return value
    definition = unit.definitions[value.name]
    if not is_forward(unit, definition):
        return value
    found = []
    for path, one in q.program.named.get(unit.rules.family, definition.name):
        is_same = definition.qualified == one.qualified or definition.qualified.endswith(f".{one.qualified}")
        if is_same and one.parent and one.kind in FUNCTIONS and not is_forward(q.unit(path), one):
            found.append(Value("function", path, one.id, value.how, value.held))
    wanted = _types(q.parameters(value))
    fitting = [one for one in found if _types(q.parameters(one)) == wanted] or [
        one for one in found if len(q.parameters(one)) == len(wanted)
    ]
    knowing = [one for one in fitting if value.path in q.visible(q.unit(one.path))]
    return next(iter(knowing or fitting), value)


def _types(parameters: Sequence[Parameter]) -> list[str]:
    values = [one.value for one in parameters]
    return [value.type.name.rpartition(".")[2] if isinstance(value, Instance) else "?" for value in values]


def _outwards(space: str) -> Iterator[str]:
    yield from with_parents(space)
    yield ""


def included(q: Queries, unit: Unit) -> frozenset[str]:
    """The paths of a file and of all that it includes."""
    reached, waiting = {unit.path}, [unit]
    while waiting:
        current = waiting.pop()
        for wildcard in current.wildcards:
            if wildcard.kind == "directive":
                continue
            for path in q.program.find_module(current, wildcard.module):
                if path not in reached and path in q.program.units:
                    reached.add(path)
                    waiting.append(q.unit(path))
    return frozenset(reached)


def included_types(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    """What the name of a type stands for at a place, in what a file includes or in the language."""
    first = name.partition(".")[0]
    found = () if first == "std" else distinct(_types_named(q, unit, scope, name))
    return found or tuple(external(name) for _ in builtin(first, unit.rules))


def _types_named(q: Queries, unit: Unit, scope: str, name: str) -> list[Value]:
    """What a name of a type stands for at a place: no variable or function of the name."""
    around = unit.definitions.get(scope)
    first, _, rest = name.partition(".")
    imported = [".".join(filter(None, (one.module, one.member, rest))) for one in unit.imports.get(first, ())]
    names = [name, *imported, *(f"{directive}.{name}" for directive in unit.directives)]
    for space in _outwards(home_of(q, unit, around.qualified if around else scope)):
        owners = q.classes_at(unit, space) if space and unit.language == "cpp" else ()
        for owner in owners:
            if found := _given_types(q, owner, name):
                return found
        for written in names:
            if found := _types_of(q, unit, _joined(space, written)):
                return found
        for owner in owners:
            if found := _inherited_types(q, owner, name):
                return found
    return []


def _given_types(q: Queries, owner: Value, name: str) -> list[Value]:
    """What the program gives for a parameter of a class template."""
    unit, definition = q.unit(owner.path), q.definition(owner)
    names = [one.name for one in unit.parameters.get(owner.name, ())]
    if name not in names:
        return []
    found: list[Value] = []
    for path, one in q.program.stored.get(unit.rules.family, f"<{definition.name}")[:_MOST_ASSIGNED]:
        arguments = one.value.type.arguments if isinstance(one.value, Instance) else ()
        if names.index(name) < len(arguments):
            found += q.values(q.unit(path), one.scope, Instance(arguments[names.index(name)]))
    return [value for value in found if is_known(value)]


def _types_of(q: Queries, unit: Unit, full: str) -> list[Value]:
    known = [(other, one) for other, one in _seen(q, unit, full) if one.kind in CLASSES or one.kind == "type"]
    classes = [(other, one) for other, one in known if one.kind in CLASSES]
    return [value for other, one in classes or known for value in q.defined(other, one, How.PACKAGE)]


def _inherited_types(q: Queries, owner: Value, name: str) -> list[Value]:
    for ancestor in ancestors(q, owner):
        if ancestor.kind != "class":
            continue
        unit = q.unit(ancestor.path)
        inside = unit.children_of(unit.definitions[ancestor.name].qualified, name)
        if found := [one for one in inside if one.kind in CLASSES or one.kind == "type"]:
            return [value for one in found for value in q.defined(unit, one, How.INHERITED)]
    return []


def beyond(q: Queries, unit: Unit, name: str) -> list[Value]:
    """What a name means that neither the file nor its namespace has: a namespace, or a function outside of all."""
    if name == ROOT:
        return [Value("module", unit.path, ROOT)]
    if unit.namespace and not name.startswith("$"):
        found = [(other, one) for other, one in _seen(q, unit, name) if one.kind == "function"]
        if found:
            return [value for other, one in found for value in q.defined(other, one, How.PACKAGE)]
    full = f"{unit.namespace}.{name}" if unit.namespace else name
    return [Value("module", unit.path, full)] if q.program.is_namespace(unit.rules.family, full) else []
