"""Name lookup in namespaces, limited to what included headers make visible (C, C++, PHP).

A namespace is represented as a module value with the path of the file that sees it and its full name.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from docindex_dagster.callgraph.ir import ROOT, THIS, Attribute, Definition, Instance, Name, TypeRef
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS, TYPES, with_parents
from docindex_dagster.callgraph.resolver.hierarchy import ancestors
from docindex_dagster.callgraph.resolver.queries import Part, Queries
from docindex_dagster.callgraph.resolver.types import builtin
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, distinct, external, found_by, is_known
from docindex_dagster.callgraph.units import Unit

_MOST_ASSIGNED = 60  # assignments to a field


def resolve_full_name(q: Queries, unit: Unit, full: str) -> list[Value]:
    """Return the values of a full name, as seen from a file."""
    rules = unit.rules
    is_included = rules.sharing == "included"
    if full.startswith(ROOT):
        full = full.removeprefix(f"{ROOT}.")
        if is_included and "." not in full:
            return looked_up(q, unit, "", full)
    if is_included and not q.program.is_known(rules.family, full):
        return []
    found: list[Value] = []
    for other, one in _seen(q, unit, full):
        if one.kind != "module" or rules.has_open_classes:
            resolution = Resolution.FILE if other is unit else Resolution.IMPORT if is_included else Resolution.PACKAGE
            found += q.defined(other, one, resolution)
    if is_included:
        found += _variable(q, unit, full)
    return found or _namespace(q, unit, full)


def _namespace(q: Queries, unit: Unit, full: str) -> list[Value]:
    """Return the namespace with a full name, if it exists."""
    return [Value("module", unit.path, full)] if q.program.is_namespace(unit.rules.family, full) else []


def _seen(q: Queries, unit: Unit, full: str) -> Sequence[Part]:
    """Return the definitions of a full name that are visible in a file."""
    family = unit.rules.family
    if unit.rules.sharing == "included":
        return q.visible_definitions(unit, full) if q.program.is_defined(family, full) else ()
    return q.in_files(q.program.full, unit, full) if q.program.has_last_name(family, full) else ()


def visible_definitions(q: Queries, unit: Unit, full: str) -> Sequence[Part]:
    """Return the definitions of a full name that are visible in a file through its includes."""
    return _visible(q, unit, full, q.in_files(q.program.full, unit, full))


def _visible(q: Queries, unit: Unit, full: str, found: Sequence[Part]) -> Sequence[Part]:
    """Filter definitions to those in the file or its includes, and those with a visible declaration."""
    visible = q.visible(unit)
    near = [item for item in found if item[0].path in visible]
    declaring = q.program.declaring(unit.rules.family, full)
    declared = declaring & visible
    if near and not declared:
        return near
    far = [
        (other, one)
        for other, one in found
        if other.path not in visible and not one.is_local and one.kind in FUNCTIONS and not is_forward(other, one)
    ]
    if declared:
        return near + _linked(q, declared, far)
    classes = [item for item in found if item[1].kind in CLASSES]
    if _is_of_one_file(classes):
        return classes
    return far if declaring and len(far) == 1 else ()


def _linked(q: Queries, declaring: frozenset[str], far: list[Part]) -> list[Part]:
    """Prefer the definitions in files, not included here, that see one of the declarations."""
    linked = [item for item in far if declaring & q.visible(item[0])]
    return linked or (far if _is_of_one_file(far) else [])


def _is_of_one_file(found: Sequence[Part]) -> bool:
    return len({other.path for other, _ in found}) == 1


def _variable(q: Queries, unit: Unit, full: str) -> list[Value]:
    """Return the values of a variable of a namespace."""
    space, _, name = full.rpartition(".")
    listed = q.program.variables.get(unit.rules.family, full)
    visible = q.visible(unit) if listed else frozenset()
    near, far = ([item for item in listed if (item[0] in visible) is is_near] for is_near in (True, False))
    found = [value for path, scope in near for value in q.bound(q.unit(path), scope, full, name)]
    if near and not any(map(is_known, found)):
        found += [value for path, scope in far for value in q.bound(q.unit(path), scope, full, name)]
        found += () if space else _assigned_outside(q, unit, name)
    return found


def _assigned_outside(q: Queries, unit: Unit, name: str) -> list[Value]:
    """Return the values that functions assign to a global variable."""
    found: list[Value] = []
    for other, one in q.in_files(q.program.stored, unit, f".{name}", _MOST_ASSIGNED):
        if isinstance(one.target, Name) and not other.bindings_of(one.scope, name):
            found += q.values(other, one.scope, one.value)
    return found


def looked_up(q: Queries, unit: Unit, around: str, name: str) -> list[Value]:
    """Return the values of a name in the innermost enclosing namespace or class that has it."""
    if name == ROOT:
        return [Value("module", unit.path, ROOT)]
    for space in _enclosing(around):
        if found := _within(q, unit, space, name):
            return found
    for imported in unit.imports.get(name, ()):
        full = _joined(imported.module, imported.member)
        for space in _enclosing(around):
            if found := resolve_full_name(q, unit, _joined(space, full)):
                return found_by(found, Resolution.IMPORT)
    return _macros(q, unit, name)


def _within(q: Queries, unit: Unit, space: str, name: str) -> list[Value]:
    """Return the members of a namespace or class, or of a namespace used in it."""
    for owner in q.classes_at(unit, space) if space else ():
        if found := [*q.member(owner.as_kind("object"), name)]:
            return found
    for within in (space, *(_joined(space, directive) for directive in unit.directives)):
        if found := resolve_full_name(q, unit, _joined(within, name)):
            return found
    return []


def _macros(q: Queries, unit: Unit, name: str) -> list[Value]:
    """Return the visible macros with a name; macros are global, wherever they are defined."""
    macros = [item for item in q.program.named.get(unit.rules.family, name) if item[1].kind == "macro"]
    visible = q.visible(unit) if macros else ()
    return [Value("function", path, one.id, Resolution.IMPORT) for path, one in macros if path in visible]


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


def classes_at(q: Queries, unit: Unit, full: str) -> Values:
    """Return the class with a full name, possibly in a namespace that the file uses."""
    for name in (full, *(f"{directive}.{full}" for directive in unit.directives)):
        for other, one in _seen(q, unit, name):
            if one.kind in CLASSES:
                return (Value("class", other.path, one.id),)
    return ()


def enclosing_space(q: Queries, unit: Unit, parent: str) -> str:
    """Return the full name of an enclosing class that is written with a shorter name."""
    owners = q.classes_at(unit, parent) if parent else ()
    return q.unit(owners[0].path).full_name(q.definition(owners[0]).qualified) if owners else parent


def assigned(q: Queries, cls: Value, name: str) -> Iterator[Value]:
    """Yield the values assigned to a field of a class anywhere in the program."""
    unit = q.unit(cls.path)
    definition, stored = unit.definitions[cls.name], q.program.stored
    names = [definition.name, *_other_names(unit, definition)]
    fields = [*unit.bindings.get(definition.id, ())]
    positions = [f"#{fields.index(name)}"] if name in fields else []
    for field in (name, *positions):
        for written in names:
            for other, one in q.in_files(stored, unit, f"{written}.{field}", _MOST_ASSIGNED):
                yield from q.values(other, one.scope, one.value)
    for other, one in q.in_files(stored, unit, f".{name}", _MOST_ASSIGNED):
        target = one.target
        if isinstance(target, Attribute) and target.of is not THIS:
            owners: Sequence[Value] = q.values(other, one.scope, target.of)
        else:
            owner = q.owner(other, one.scope)
            owners = [owner] if owner is not None and not other.bindings_of(one.scope, name) else ()
        if any(each.is_same(cls) and each.kind != "function" for each in owners):
            yield from q.values(other, one.scope, one.value)


def _other_names(unit: Unit, definition: Definition) -> Iterator[str]:
    """Yield the `typedef` names of a struct."""
    own = Instance(TypeRef(definition.name))
    for name, values in unit.bindings.get(definition.parent, {}).items():
        if own in values and any(one.kind == "type" for one in unit.children_of(definition.parent, name)):
            yield name


def is_forward(unit: Unit, definition: Definition) -> bool:
    """Return whether a function is a forward declaration."""
    return definition.name in unit.forwards.get(definition.id, ())


def with_body(q: Queries, value: Value) -> Value:
    """Return the definition of a method outside its class, if there is one; otherwise the method itself."""
    unit = q.unit(value.path) if value.kind == "function" else None
    if unit is None or not is_forward(unit, definition := unit.definitions[value.name]):
        return value
    found = []
    for path, one in q.program.named.get(unit.rules.family, definition.name):
        is_same = definition.qualified == one.qualified or definition.qualified.endswith(f".{one.qualified}")
        if is_same and one.parent and one.kind in FUNCTIONS and not is_forward(q.unit(path), one):
            found.append(Value("function", path, one.id, value.resolution, value.held))
    wanted = _parameter_types(q, value)
    candidates = [(one, _parameter_types(q, one)) for one in found]
    fitting = [one for one, types in candidates if types == wanted]
    fitting = fitting or [one for one, types in candidates if len(types) == len(wanted)]
    linked = (one for one in fitting if value.path in q.visible(q.unit(one.path)))
    return next(linked, fitting[0] if fitting else value)


def _parameter_types(q: Queries, function: Value) -> list[str]:
    values = (one.value for one in q.parameters(function))
    return [value.type.name.rpartition(".")[2] if isinstance(value, Instance) else "?" for value in values]


def _enclosing(space: str) -> Iterator[str]:
    yield from with_parents(space)
    yield ""


def included_types(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    """Return the values of a type name in a scope, from the included files or built in."""
    first = name.partition(".")[0]
    found = q.types_named(unit, scope, name) if first != "std" and _may_be_type(q, unit, scope, name) else ()
    return found or tuple(external(name) for _ in builtin(first, unit.rules))


def _may_be_type(q: Queries, unit: Unit, scope: str, name: str) -> bool:
    """Return whether a type name may exist in the program; a quick check that rejects `int`, `size_t` and `T`."""
    family = unit.rules.family
    if "<" in name or q.program.is_type(family, name.rpartition(".")[2]):
        return True
    is_imported = any(q.program.is_type(family, one.rpartition(".")[2]) for one in _imported_names(unit, name))
    return is_imported or name in q.template_parameters(unit, _space_at(unit, scope))


def template_parameters(q: Queries, unit: Unit, space: str) -> frozenset[str]:
    """Return the parameters of the class templates that enclose a qualified name."""
    return frozenset(
        one.name
        for _, owners in _spaces_around(q, unit, space)
        for owner in owners
        for one in q.unit(owner.path).parameters.get(owner.name, ())
    )


def types_named(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    """Return the values of a type name in a scope, ignoring variables and functions with that name."""
    names = [name, *_imported_names(unit, name), *(f"{directive}.{name}" for directive in unit.directives)]
    for space, owners in _spaces_around(q, unit, _space_at(unit, scope)):
        several = chain(
            (_given_types(q, owner, name) for owner in owners),
            (_types_of(q, unit, _joined(space, written)) for written in names),
            (_inherited_types(q, owner, name) for owner in owners),
        )
        if found := next(filter(None, several), None):
            return distinct(found)
    return ()


def _imported_names(unit: Unit, name: str) -> list[str]:
    """Return the original names of an imported name."""
    first, _, rest = name.partition(".")
    return [_joined(one.module, one.member, rest) for one in unit.imports.get(first, ())]


def _space_at(unit: Unit, scope: str) -> str:
    """Return the qualified name of the namespace, class or function of a scope."""
    around = unit.definitions.get(scope)
    return around.qualified if around else scope


def _spaces_around(q: Queries, unit: Unit, space: str) -> Iterator[tuple[str, Values]]:
    """Yield the enclosing namespaces and classes, innermost first, each with its class in C++."""
    for outer in _enclosing(enclosing_space(q, unit, space)):
        yield outer, q.classes_at(unit, outer) if outer and unit.language == "cpp" else ()


def _given_types(q: Queries, owner: Value, name: str) -> list[Value]:
    """Return the types that the program passes for a parameter of a class template."""
    unit, definition = q.unit(owner.path), q.definition(owner)
    names = [one.name for one in unit.parameters.get(owner.name, ())]
    if name not in names:
        return []
    at, found = names.index(name), []
    for other, one in q.in_files(q.program.stored, unit, f"<{definition.name}", _MOST_ASSIGNED):
        arguments = one.value.type.arguments if isinstance(one.value, Instance) else ()
        found += q.each(other, one.scope, map(Instance, arguments[at : at + 1]))
    return [value for value in found if is_known(value)]


def _types_of(q: Queries, unit: Unit, full: str) -> list[Value]:
    types = [item for item in _seen(q, unit, full) if item[1].kind in TYPES]
    classes = [item for item in types if item[1].kind in CLASSES]
    return [value for other, one in classes or types for value in q.defined(other, one, Resolution.PACKAGE)]


def _inherited_types(q: Queries, owner: Value, name: str) -> list[Value]:
    for ancestor in ancestors(q, owner):
        if ancestor.kind == "class":
            unit = q.unit(ancestor.path)
            inside = unit.children_of(unit.definitions[ancestor.name].qualified, name)
            if found := [one for one in inside if one.kind in TYPES]:
                return q.all_defined(unit, found, Resolution.INHERITED)
    return []


def beyond(q: Queries, unit: Unit, name: str) -> list[Value]:
    """Return the values of a name found neither in the file nor in its namespace: a namespace or a global function."""
    if name == ROOT:
        return [Value("module", unit.path, ROOT)]
    if unit.namespace and not name.startswith("$"):
        found = [item for item in _seen(q, unit, name) if item[1].kind == "function"]
        if found:
            return [value for other, one in found for value in q.defined(other, one, Resolution.PACKAGE)]
    return _namespace(q, unit, _joined(unit.namespace, name))
