"""Import resolution: the values of imported names, and the modules, files and folders they refer to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from docindex_dagster.callgraph.ir import FILE, Definition, Import, Name
from docindex_dagster.callgraph.languages import RULES
from docindex_dagster.callgraph.languages.rust import PATH_WORDS
from docindex_dagster.callgraph.nesting import is_class
from docindex_dagster.callgraph.resolver import header_visibility
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    external,
    found_by,
    functions,
    is_file,
    known,
)
from docindex_dagster.callgraph.units import Unit

_SHARING_FOLDERS = sorted({rules.family for rules in RULES.values() if rules.sharing == "folder"})


def path_word(q: Queries, unit: Unit, scope: str, word: str) -> Values:
    """Resolve `self`, `super` or `crate`: the enclosing module, its parent, or the root of the crate."""
    modules = [around for around in unit.around(scope) if around.kind == "module"]
    if word == "crate":
        return _crate(q, unit)
    if inner := modules[1 if word == "super" else 0 :]:
        return (Value("class", unit.path, inner[0].id),)
    return (Value("module", unit.path, ""),) if word == "this" or modules else _super(q, unit)


def _super(q: Queries, unit: Unit) -> Values:
    """Return the parent module of a file: one with a path attribute for it, or else one next to or above it."""
    mounting = _mounting(q, unit)
    return tuple(Value("module", path, "") for path in mounting) or files_of(q, unit, "super")


def _crate(q: Queries, unit: Unit) -> Values:
    """Return the root file of the crate that contains a file."""
    seen = {unit.path}
    while (mounting := _mounting(q, unit)) and mounting[0] not in seen:
        unit = q.unit(mounting[0])
        seen.add(unit.path)
    return files_of(q, unit, "crate")


def _mounting(q: Queries, unit: Unit) -> list[str]:
    """Return the files that declare a file as a module with a path attribute."""
    return [path for path, _ in q.program.mounted.get(unit.rules.family, unit.path) if path != unit.path]


def files_of(q: Queries, unit: Unit, module: str) -> Values:
    """Return the modules in the source that a module path resolves to."""
    files = q.program.find_module(unit, module)
    return tuple(Value("module", path, "") for path in files if path in q.program.units)


def _of_path(q: Queries, unit: Unit, scope: str, module: str, member: str) -> Values:
    """Return the values of an imported path."""
    if module.endswith(".rs"):  # a file from a path attribute
        return files_of(q, unit, module)
    first, *others = [*filter(None, module.split(".")), *filter(None, [member])] or [""]
    found = _first_of_path(q, unit, scope, "this" if first == "self" else first)
    for name in others:
        found = distinct(q.all_members(found, name))
    return found


def _first_of_path(q: Queries, unit: Unit, scope: str, name: str) -> Values:
    if name in PATH_WORDS:
        return path_word(q, unit, scope, name)
    return (
        files_of(q, unit, f"self.{name}")
        or q.values(unit, scope, Name(name))
        or files_of(q, unit, name)
        or (external(name),)
    )


def locally_imported(q: Queries, unit: Unit, scope: str, name: str) -> list[Value]:
    """Return the values of a name imported in an inner scope of a file."""
    named = (of_import(q, unit, one) for one in unit.imports.get(name, ()) if one.scope == scope)
    of_all = (known(of_wildcard(q, unit, one, name)) for one in unit.wildcards if one.scope == scope)
    return found_by(next(filter(None, chain(named, of_all)), ()), Resolution.IMPORT)


def imported(q: Queries, unit: Unit, name: str) -> Iterator[Sequence[Value]]:
    """Yield the values of a name imported by a file, one sequence per import."""
    for one in unit.imports.get(name, ()):
        if not one.scope:
            yield found_by(of_import(q, unit, one), Resolution.IMPORT)
    if unit.rules.hooks.package is not None:
        for module in q.packages(unit).get(name, ()):
            yield _of_module(q, unit, module, "")
        return
    is_packaged = name not in unit.imports and name in unit.packages
    if is_packaged and not unit.rules.has_export_lists and not unit.rules.exports_single_value:
        yield _imported(q, unit, FILE, name, "")


def packages(q: Queries, unit: Unit) -> Mapping[str, Sequence[str]]:
    """Return the packages that a file imports without an alias, by package name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in unit.imports:
        found[_package_name(q, unit, module)].append(module)
    return found


def _package_name(q: Queries, unit: Unit, module: str) -> str:
    """Return the name of a package that is imported without an alias."""
    for folder in q.program.find_module(unit, module):
        for path in q.program.sharing(unit.rules.family, folder.rstrip("/")):
            return q.unit(path).namespace
    package_name = unit.rules.hooks.package
    return package_name(module) if package_name is not None and "/" in module else ""


def import_targets(q: Queries, unit: Unit, one: Import) -> Values:
    """Return the distinct values of an import."""
    return distinct(of_import(q, unit, one))


def of_import(q: Queries, unit: Unit, one: Import) -> Values:
    """Return the values of an import."""
    return _imported(q, unit, one.scope, one.module, one.member)


def _imported(q: Queries, unit: Unit, scope: str, module: str, name: str) -> Values:
    """Return the values of a name imported from a module; the module itself if the name is empty."""
    is_path = unit.rules.has_module_paths or unit.rules.has_path_imports
    return _of_path(q, unit, scope, module, name) if is_path else _of_module(q, unit, module, name)


def of_module(q: Queries, unit: Unit, module: str) -> Values:
    """Return an imported module, or its value in languages where a file exports a single value."""
    value = _of_module(q, unit, module, "default") if unit.rules.exports_single_value else ()
    return value or _of_module(q, unit, module, "")


def _of_module(q: Queries, unit: Unit, module: str, name: str) -> Values:
    """Return the members of a module; the module itself if the name is empty."""
    rules = unit.rules
    if rules.separates_kinds:
        return q.of_namespace(rules, module, name, unit.path)
    if rules.has_namespaces:
        full = ".".join(filter(None, (module.replace("\\", "."), name)))
        return tuple(header_visibility.resolve_full_name(q, unit, full)) or (external(full),)
    files = q.program.find_module(unit, module)
    if not files:
        return (external(".".join(filter(None, (module.lstrip("."), name)))),)
    found = tuple(value for path in files for value in q.in_module(path, name)) if name else ()
    return found if found or name not in {"", "default"} else tuple(Value("module", path, "") for path in files)


def in_module(q: Queries, path: str, name: str) -> Values:
    """Return the values of a name that a file or folder provides to other files."""
    if path.endswith("/"):
        found = _in_folder(q, path, name)
        return found or tuple(Value("module", inner, "") for inner in _submodules(q, path, name))
    return q.provided_names(path, name) if path in q.program.units else ()


def provided_names(q: Queries, path: str, name: str) -> Values:
    """Return the values of a name that a file provides to other files."""
    unit = q.unit(path)
    if name == "super" and unit.rules.has_module_paths:
        return _super(q, unit)
    if unit.rules.has_export_lists:
        return distinct(_in_export_list(q, unit, name))
    for find in (_exported, _provided, _reexported, _submodule):
        if found := find(q, unit, name):
            return distinct(found)
    return distinct(q.all_members(q.each(unit, FILE, unit.exports.get("default", ())), name))


def _in_export_list(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return the values of a name exported by a file that may have an export list."""
    is_listed = name in unit.exports or any(one.name in unit.exports for one in unit.free_methods.get(name, ()))
    if is_listed or not (unit.exports or unit.reexported):
        found: Sequence[Value] = q.top(unit, name, Resolution.IMPORT)
        return found or found_by(q.each(unit, FILE, unit.exports.get(name, ())), Resolution.IMPORT)
    for module in unit.reexported:
        if module == unit.namespace:
            found = q.top(unit, name, Resolution.IMPORT)
        else:
            modules = (value for value in q.values(unit, FILE, Name(module)) if is_file(value))
            found = [value for each in modules for value in q.in_module(each.path, name)]
        if found:
            return found_by(found, Resolution.IMPORT)
    return ()


def of_wildcard(q: Queries, unit: Unit, one: Import, name: str) -> Sequence[Value]:
    """Return the values of a name from a wildcard import of a module or of a class in it."""
    if (one.scope, one.module, name) in unit.left_out:
        return ()
    if one.member:
        return q.all_members((value for value in of_import(q, unit, one) if value.kind == "class"), name)
    found = _imported(q, unit, one.scope, one.module, name)
    return known(found) if unit.rules.has_export_lists else found  # external modules may all have it, so none is chosen


def _exported(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return the values of a name that a file exports explicitly."""
    for expression in unit.exports.get(name, ()):
        if found := q.values(unit, FILE, expression):
            return found_by(found, Resolution.IMPORT)
    if name == "default":
        return q.all_defined(unit, unit.children_of("module", "exports"), Resolution.IMPORT)
    written = [*unit.children_of("module.exports", name), *unit.children_of("exports", name)]
    if written:
        return q.all_defined(unit, written, Resolution.IMPORT)
    return of_import(q, unit, unit.reexports[name]) if name in unit.reexports else ()


def _provided(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return the values of a name that a file defines, assigns or imports."""
    if unit.rules.exports_single_value and "default" in unit.exports:
        return ()
    return q.top(unit, name, Resolution.IMPORT) or [value for step in imported(q, unit, name) for value in step]


def _reexported(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return the values of a name from modules that a file imports or re-exports with a wildcard."""
    modules = (*unit.reexported, *(one.module for one in unit.wildcards if not one.scope))
    several = (known(_imported(q, unit, FILE, module, name)) for module in modules)
    return next(filter(None, several), ())


def _submodule(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return a submodule of the package that a file defines."""
    folder, _, file = unit.path.rpartition("/")
    if unit.rules.has_module_paths:
        return files_of(q, unit, f"self.{name}")
    if file not in {"__init__.py", "__init__.pyi"}:
        return ()
    return [Value("module", found, "") for found in _submodules(q, f"{folder}/".lstrip("/"), name)]


def _in_folder(q: Queries, folder: str, name: str) -> Values:
    """Return the definitions of a name in a folder, for languages whose files in a folder share their names."""
    return tuple(
        value
        for family in _SHARING_FOLDERS
        for path, _ in q.program.tops.get(family, f"{folder.rstrip('/')}::{name}")
        if not q.unit(path).is_test
        for value in q.top(q.unit(path), name, Resolution.IMPORT)
    )


def _submodules(q: Queries, folder: str, name: str) -> Iterator[str]:
    for path in (f"{folder}{name}.py", f"{folder}{name}/__init__.py"):
        if q.program.is_file(path):
            yield path
            return
    if q.program.is_folder(f"{folder}{name}"):
        yield f"{folder}{name}/"


def shared(q: Queries, unit: Unit, name: str) -> Iterable[Value]:
    """Return the definitions of a name in other files of the folder or namespace, or in all files."""
    find = unit.rules.hooks.shared or _of_namespaces
    return find(q, unit, name)


def _of_namespaces(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """Yield the definitions of a name in other files of the namespace, or in all files."""
    rules = unit.rules
    is_global = rules.sharing == "global"
    classes: list[tuple[Unit, Definition]] = []  # parts of the same class
    for other, definition in q.in_files(q.program.named, unit, name):
        if other is unit or definition.is_local:
            continue
        if is_global and definition.parent:
            continue
        if any(around.kind != "module" for around in other.around(definition.parent)):
            continue
        if rules.has_marked_variables and is_marked(other, definition):
            continue
        if definition.id in other.hidden or (is_global and not _is_loaded(q, unit, other, definition)):
            continue
        if is_global and rules.has_open_classes and is_class(definition):
            classes.append((other, definition))
        elif is_global or other.full_name(definition.parent) == unit.namespace:
            yield from q.defined(other, definition, Resolution.PACKAGE)
    if classes:
        yield from q.defined(*max(classes, key=lambda part: _weight(*part)), Resolution.PACKAGE)


def _is_loaded(q: Queries, unit: Unit, other: Unit, definition: Definition) -> bool:
    """Return whether a function of another file is loaded, because that file is imported; classes may be autoloaded."""
    if unit.rules.exports_single_value and _is_unique(q, unit, definition):
        return True
    return is_class(definition) or other.path in q.visible(unit)


def _is_unique(q: Queries, unit: Unit, definition: Definition) -> bool:
    """Return whether only one file defines a global name."""
    named = q.in_files(q.program.named, unit, definition.name)
    return len({other.path for other, one in named if not one.parent and one.id not in other.hidden}) == 1


def visible(q: Queries, unit: Unit) -> frozenset[str]:
    """Return the paths of a file and of all files that it imports or includes, transitively."""
    reached, waiting = {unit.path}, [unit]
    while waiting:
        importer = waiting.pop()
        includes = [one for one in importer.wildcards if one.kind != "directive"]
        named = chain.from_iterable(importer.imports.values())
        for one in includes if importer.rules.sharing == "included" else named:
            paths = q.program.find_module(importer, one.module)
            new = [path for path in paths if path not in reached and path in q.program.units]
            reached.update(new)
            waiting += map(q.unit, new)
    return frozenset(reached)


def all_exported(q: Queries, path: str) -> list[Value]:
    """Return all functions that a module exports as an object."""
    if path not in q.program.units:
        return []
    unit = q.unit(path)
    names = [*unit.exports, *unit.children.get("exports", ()), *unit.children.get("module.exports", ())]
    if "default" in names or len(names) > MOST_VALUES:
        return []
    found = functions(one for name in dict.fromkeys(names) for one in _exported(q, unit, name))
    return found_by(found, Resolution.ELEMENT)


def constructed_classes(q: Queries, value: Value) -> Values:
    """Return the classes that are instantiated by constructing a value that is not a class."""
    if is_file(value):
        found = q.in_module(value.path, "default")
        inner = [one for module in found if is_file(module) for one in q.in_module(module.path, "default")]
        return tuple(one for one in (*found, *inner) if one.kind != "module")
    is_constructor = value.kind == "function" and not q.rules(value).has_named_constructors
    return (value,) if is_constructor else ()


def is_marked(unit: Unit, definition: Definition) -> bool:
    """Return whether a function is the value of a variable, whose name starts with `$`."""
    return bool(unit.bindings_of(definition.id, f"${definition.name}"))


def _weight(unit: Unit, definition: Definition) -> tuple[bool, ...]:
    """Return the sort key for choosing the main part of a class; larger is better."""
    has_constructor = any(unit.children_of(definition.qualified, name) for name in unit.rules.constructors)
    return not unit.is_test, has_constructor, definition.id in unit.bases
