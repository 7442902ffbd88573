"""Name resolution in languages with shared namespaces (JVM, C#), and extension functions."""

import posixpath
from collections.abc import Iterator, Sequence
from itertools import chain

from docindex_dagster.callgraph.exported_symbols import namespaces
from docindex_dagster.callgraph.ir import Definition, Implicit, Instance, Name
from docindex_dagster.callgraph.nesting import is_class, with_parents
from docindex_dagster.callgraph.resolver import builtins
from docindex_dagster.callgraph.resolver.hierarchy import ancestors
from docindex_dagster.callgraph.resolver.imports import imported
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, external, found_by, known
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_OBJECTS = frozenset({"object", "external object", "collection", "literal"})
_WANTED = {"function": frozenset({"function", "class"}), "type": frozenset({"class"})}


def implicit(q: Queries, unit: Unit, scope: str, wanted: Implicit) -> Sequence[Value]:
    """Return the values of a name that may be a member of an implicit receiver."""
    several = (q.members_of(unit, scope, q.read(unit, scope, one), wanted.text) for one in wanted.receivers)
    return next(filter(None, map(known, several)), None) or q.values(unit, scope, Name(wanted.text))


def fitting(found: Sequence[Value], wanted: Name, rules: Rules) -> Values | None:
    """Filter implicit members by the kind of name; None if none is left."""
    if rules.has_function_names and not wanted.space:
        found = [one for one in found if one.kind != "function"]
    if not rules.separates_kinds:
        return tuple(found) or None
    kinds = _WANTED.get(wanted.space)
    return tuple(one for one in found if one.kind != "external" and (not kinds or one.kind in kinds)) or None


def outermost(q: Queries, unit: Unit, wanted: Name) -> Sequence[Value]:
    """Return the values of a name outside all classes, if files in a namespace share their names."""
    rules, name, own = unit.rules, wanted.text, own_namespaces(q, unit)
    for several in _steps_outwards(q, unit, name, own):
        found = known(several)
        if wanted.space == "type":  # a type or an alias of a type
            found = [value for value in found if value.kind != "function"]
        if fit := found if wanted.space != "function" else fitting(found, wanted, rules):
            return fit
    for space in (*own, ""):
        full = f"{space}.{name}".lstrip(".")
        if (rules.sees_outer_namespaces or not space) and q.program.is_namespace(rules.family, full):
            return (Value("module", unit.path, full),)
    if _is_facade(rules, name) and name not in unit.imports:
        return (Value("module", unit.path, own[0] if own else ""),)
    by_import = tuple(value for step in imported(q, unit, name) for value in step)
    is_external = not by_import and name[:1].isupper() and wanted.space != "function"
    return (external(name),) if is_external else by_import


def _steps_outwards(q: Queries, unit: Unit, name: str, own: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield the values of a name in the file, its imports, its namespaces, and the namespaces it uses."""
    rules = unit.rules
    yield q.top(unit, name, Resolution.FILE)
    yield from imported(q, unit, name)
    if any(not one.scope for one in unit.imports.get(name, ())):
        return
    is_defined = q.program.named.has(rules.family, name)
    for space in own if is_defined else ():
        yield found_by(_inside(q, rules, space, name, unit.path), Resolution.PACKAGE)
    modules = dict.fromkeys((*(one.module for one in unit.wildcards), *q.program.everywhere(rules.family)))
    several = (value for module in modules for value in of_namespace(q, rules, module, name, unit.path))
    yield found_by(several, Resolution.IMPORT)


def own_namespaces(q: Queries, unit: Unit) -> Sequence[str]:
    """Return the namespaces that a file sees without an import, innermost first."""
    if unit.path not in q.namespaces:
        own = sorted(namespaces(unit), key=lambda space: (-len(space), space))
        outer = (around for space in own for around in with_parents(space))
        sees_outer = unit.rules.sees_outer_namespaces
        q.namespaces[unit.path] = tuple(dict.fromkeys([*outer, ""])) if sees_outer else own
    return q.namespaces[unit.path]


def _inside(q: Queries, rules: Rules, space: str, name: str, importer: str) -> list[Value]:
    """Return the definitions of a name in a namespace; among several classes, only the nearest."""
    found = q.program.full.get(rules.family, f"{space}.{name}" if space else name)
    if not found:
        return []
    if rules.has_companions:
        found = [(path, one) for path, one in found if one.id not in q.unit(path).hidden]
    no_classes = {"module", "impl"} if rules.has_impls else {"module"}
    classes = [item for item in found if is_class(item[1]) and item[1].kind not in no_classes]
    if len(classes) > 1:
        classes = [min(classes, key=lambda item: _distance(item[0], importer, name))]
    others = (item for item in found if not is_class(item[1]))
    return [value for path, one in (*classes, *others) for value in q.defined(q.unit(path), one, Resolution.IMPORT)]


def of_namespace(q: Queries, rules: Rules, module: str, name: str, importer: str) -> Values:
    """Return the members of a namespace or class."""
    if rules.has_relative_imports and importer:
        for space in with_parents(q.unit(importer).namespace):
            found = _of_namespace(q, rules, f"{space}.{module}".rstrip("."), name, importer)
            if known(found):
                return found
    return _of_namespace(q, rules, module, name, importer)


def _of_namespace(q: Queries, rules: Rules, module: str, name: str, importer: str) -> Values:
    if rules.extends_receiver:
        module, name = (module, "") if name == "Companion" else (module.removesuffix(".Companion"), name)
    if not name:
        module, _, name = module.rpartition(".")
    if found := _inside(q, rules, module, name, importer):
        return tuple(found)
    space, _, owner = module.rpartition(".")
    classes = _inside(q, rules, space, owner, importer) if owner else ()
    inside = q.all_members((one for one in classes if one.kind == "class"), name)
    if not inside and _is_facade(rules, owner):
        inside = _inside(q, rules, space, name, importer)
    if not inside and _is_facade(rules, name) and q.program.is_namespace(rules.family, module):
        return (Value("module", importer, module),)
    return tuple(inside) or (external(f"{module}.{name}".lstrip(".")),)


def _is_facade(rules: Rules, name: str) -> bool:
    """Return whether a name is a facade class, through which Java accesses top-level functions of a Kotlin file."""
    return rules.family == "jvm" and name.endswith("Kt")


def in_namespace(q: Queries, value: Value, name: str) -> list[Value]:
    """Return the members of an explicitly named namespace."""
    rules = q.rules(value)
    if found := _inside(q, rules, value.name, name, ""):
        return found
    full = f"{value.name}.{name}"
    return [Value("module", value.path, full, value.resolution)] if q.program.is_namespace(rules.family, full) else []


def extensions(q: Queries, unit: Unit, scope: str, values: Values, name: str) -> Iterator[Value]:
    """Yield the extension functions for the types of some values that are visible in a scope."""
    named = {name: False}
    for one in unit.imports.get(name, ()):
        named[one.member] = True
    for real, is_imported in named.items():
        for other, function in q.in_files(q.program.extensions, unit, real):
            if (other is unit and function.id == scope) or not _sees(q, unit, scope, other, function):
                continue
            fits = [value for value in values if _extends(q, other, function, value)]
            if fits or (not values and is_imported):
                held = tuple(fits[:1]) if fits and fits[0].kind == "object" else ()
                yield Value(
                    "function", other.path, function.id, Resolution.RECEIVER if fits else Resolution.IMPORT, held
                )


def _sees(q: Queries, unit: Unit, scope: str, other: Unit, function: Definition) -> bool:
    """Return whether an extension function is visible in a scope."""
    rules = unit.rules
    wildcards = {one.module for one in unit.wildcards}
    if not rules.extends_receiver:  # it is a member of a class, whose namespace must be imported
        space = other.full_name(function.parent).rpartition(".")[0]
        return space in own_namespaces(q, unit) or space in wildcards or space in q.program.everywhere(rules.family)
    if rules.has_open_extensions:
        return True
    receiver = other.receivers[function.id].name.rpartition(".")[2]
    holder = "" if function.parent.rpartition(".")[2] == receiver else function.parent
    space = other.full_name(holder)
    if not holder and (space == unit.namespace or space in wildcards):
        return True
    if holder and unit is other and any(around.qualified == holder for around in unit.around(scope)):
        return True
    listed = chain.from_iterable(unit.imports.values())
    return any(one.module == space and one.member == function.name for one in listed)


def _extends(q: Queries, unit: Unit, function: Definition, value: Value) -> bool:
    """Return whether a function extends the type of a value."""
    if value.kind not in _OBJECTS:
        return False
    written = unit.receivers[function.id]
    scopes = [around.id for around in unit.around(function.id)] if unit.rules.has_open_extensions else [function.id]
    bounds = {one.name: one.bound for scope in scopes for one in unit.generics.get(scope, ())}
    if not written.arguments and written.name in bounds:
        bound = bounds[written.name]
        if not isinstance(bound, Instance):
            return True
        written = bound.type
    wanted = written.name.rpartition(".")[2]
    if wanted in {"Any", "object", "Object"}:
        return True
    typed = q.typed(unit, function.id, written, None)
    classes = {(one.path, one.name) for one in typed if one.kind == "object"}
    if value.kind == "object":
        above = ancestors(q, value)
        if classes:
            return any((one.path, one.name) in classes for one in above)
        return any(one.kind == "external" and one.name.rpartition(".")[2] == wanted for one in above)
    names = {wanted, *(one.name.rpartition(".")[2] for one in typed if one.kind == "external object")}
    return not classes and any(builtins.is_same_type(value.name.rpartition(".")[2], name) for name in names)


def _distance(path: str, importer: str, name: str) -> tuple[int, bool, str]:
    """Return the sort key for distance from the importer; in a folder, a file named like the symbol comes first."""
    common = posixpath.commonprefix([path.split("/")[:-1], importer.split("/")[:-1]])
    return -len(common), posixpath.basename(path).rpartition(".")[0] != name, path
