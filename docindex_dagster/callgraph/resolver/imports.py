"""What a name stands for by imports: the modules, files and folders to which they lead."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from docindex_dagster.callgraph.ir import FILE, Definition, Import, Name
from docindex_dagster.callgraph.languages import RULES
from docindex_dagster.callgraph.languages.bash_functions import called_name
from docindex_dagster.callgraph.languages.go_modules import package_name
from docindex_dagster.callgraph.offers import full_name, is_class
from docindex_dagster.callgraph.resolver import spaces
from docindex_dagster.callgraph.resolver.queries import PATH_WORDS, Queries
from docindex_dagster.callgraph.resolver.values import MOST_VALUES, How, Value, Values, distinct, external, is_file
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_LOADING = "source"  # the command of a shell that loads a file
_SHARING_FOLDERS = sorted({rules.family for rules in RULES.values() if rules.sharing == "folder"})


def named(wildcard: Import, name: str) -> Import:
    """One name of a module of which all is imported."""
    return wildcard._replace(kind="name", member=name)


def _whole(module: str) -> Import:
    return Import("name", FILE, "", module, "", False, 0, 0)  # noqa: FBT003 as the tuple has it


def macros(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """The macros of a name: of this file, else of the crate, else all; none where it is imported from elsewhere."""
    imported = (value for one in unit.imports.get(name, ()) for value in of_import(q, unit, one))
    if any(value.kind == "external" for value in imported):
        return
    found = [
        (path, definition)
        for path, definition in q.program.named.get(unit.rules.family, name.rpartition(".")[2])
        if definition.kind == "macro"
    ]
    folder = unit.path.partition("src/")[0]
    for near in (lambda path: path == unit.path, lambda path: path.startswith(f"{folder}src/"), lambda _: True):
        nearest = [item for item in found if near(item[0])]
        if nearest:
            path, definition = nearest[0]
            yield Value("function", path, definition.id, How.FILE if path == unit.path else How.PACKAGE)
            return


def path_word(q: Queries, unit: Unit, scope: str, word: str) -> Values:
    """The module around a place, the one around that, or the first of the crate."""
    modules = [around for around in unit.around(scope) if around.kind == "module"]
    if word == "crate":
        return files_of(q, unit, "crate")
    inner = modules[1 if word == "super" else 0 :]
    if inner:
        return (Value("class", unit.path, inner[0].id),)
    if word == "this" or modules:
        return (Value("module", unit.path, ""),)
    return files_of(q, unit, "super")


def files_of(q: Queries, unit: Unit, module: str) -> Values:
    """The modules of the source to which a path leads."""
    files = q.program.find_module(unit, module)
    return tuple(Value("module", path, "") for path in files if path in q.program.units)


def _of_path(q: Queries, unit: Unit, imported: Import) -> Values:
    """What a path leads to that is imported."""
    first, *others = [*filter(None, imported.module.split(".")), *filter(None, [imported.member])] or [""]
    found = _first_of_path(q, unit, imported.scope, "this" if first == "self" else first)
    for name in others:
        found = distinct(inner for value in found for inner in q.member(value, name))
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


def used_in(q: Queries, unit: Unit, scope: str, name: str) -> list[Value]:
    """What a module that is written in a file imports under a name."""
    for imported in unit.imports.get(name, ()):
        if imported.scope == scope and (found := of_import(q, unit, imported)):
            return [value.found(How.IMPORT) for value in found]
    for wildcard in unit.wildcards:
        if wildcard.scope == scope:
            found = tuple(value for value in of_wildcard(q, unit, wildcard, name) if value.kind != "external")
            if found:
                return [value.found(How.IMPORT) for value in found]
    return []


def imported(q: Queries, unit: Unit, name: str) -> Iterator[Sequence[Value]]:
    """What a file imports under a name, import after import."""
    for one in unit.imports.get(name, ()):
        if not one.scope:
            yield [value.found(How.IMPORT) for value in of_import(q, unit, one)]
    if unit.rules.names_packages:
        for module in q.packages(unit).get(name, ()):
            yield _of_module(q, unit, module, "")
        return
    is_packaged = name not in unit.imports and name in unit.packages
    if is_packaged and not unit.rules.has_export_lists and not unit.rules.gives_one_value:
        yield of_import(q, unit, _whole(name))


def packages(q: Queries, unit: Unit) -> Mapping[str, Sequence[str]]:
    """The packages that a file imports without a name, by their names."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in unit.imports:
        found[_package_name(q, unit, module)].append(module)
    return found


def _package_name(q: Queries, unit: Unit, module: str) -> str:
    """The name of a package that is imported without one."""
    for folder in q.program.find_module(unit, module):
        for path in q.program.sharing(unit.rules.family, folder.rstrip("/")):
            return q.unit(path).namespace
    return package_name(module) if "/" in module else ""


def of_import(q: Queries, unit: Unit, one: Import) -> Values:
    """What an import stands for."""
    if unit.rules.has_module_paths or unit.rules.has_path_imports:
        return _of_path(q, unit, one)
    return _of_module(q, unit, one.module, one.member)


def of_module(q: Queries, unit: Unit, module: str) -> Values:
    """A module, by the name under which a file imports it; what it gives, where that is one value."""
    if unit.rules.gives_one_value:
        given = _of_module(q, unit, module, "default")
        return given or _of_module(q, unit, module, "")
    return _of_module(q, unit, module, "")


def _of_module(q: Queries, unit: Unit, module: str, name: str) -> Values:
    """What a module has under a name; without one, the module."""
    rules = unit.rules
    if rules.separates_kinds:
        return q.of_namespace(rules, module, name, unit.path)
    if rules.has_namespaces:
        full = ".".join(filter(None, (module.replace("\\", "."), name)))
        return tuple(spaces.in_space(q, unit, full)) or (external(full),)
    files = q.program.find_module(unit, module)
    if not files:
        return (external(".".join(filter(None, (module.lstrip("."), name)))),)
    modules = tuple(Value("module", path, "") for path in files)
    found = tuple(value for path in files for value in q.in_module(path, name)) if name else modules
    return found or (modules if name == "default" else ())


def in_module(q: Queries, path: str, name: str) -> Values:
    """What other files find in a file or folder under a name."""
    if path.endswith("/"):
        found = _in_folder(q, path, name)
        return found or tuple(Value("module", inner, "") for inner in _submodules(q, path, name))
    return q.offered(path, name) if path in q.program.units else ()


def offered(q: Queries, path: str, name: str) -> Values:
    """What other files find in a file under a name."""
    unit = q.unit(path)
    if name == "super" and unit.rules.has_module_paths:
        return files_of(q, unit, name)
    if unit.rules.has_export_lists:
        return distinct(_listed(q, unit, name))
    for find in (_exported, _offered, _passed_on, _below):
        if found := find(q, unit, name):
            return distinct(found)
    return distinct(
        member
        for expression in unit.exports.get("default", ())
        for value in q.values(unit, FILE, expression)
        for member in q.member(value, name)
    )


def _listed(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """What a file that may have a list of what it exports gives others under a name."""
    if not unit.exports and not unit.reexported:
        return q.top(unit, name, How.IMPORT)
    if name in unit.exports:
        named_here = (value for one in unit.exports[name] for value in q.values(unit, FILE, one))
        return q.top(unit, name, How.IMPORT) or [value.found(How.IMPORT) for value in named_here]
    if any(cls.name in unit.exports for cls in unit.free_methods.get(name, ())):
        return q.top(unit, name, How.IMPORT)
    for module in unit.reexported:
        if module == unit.namespace:
            found: Sequence[Value] = q.top(unit, name, How.IMPORT)
        else:
            modules = (value for value in q.values(unit, FILE, Name(module)) if is_file(value))
            found = [value for each in modules for value in q.in_module(each.path, name)]
        if found:
            return [value.found(How.IMPORT) for value in found]
    return ()


def of_wildcard(q: Queries, unit: Unit, one: Import, name: str) -> Sequence[Value]:
    """What an import of all that a module, or a class in it, has gives under a name."""
    if (one.scope, one.module, name) in unit.left_out:
        return ()
    if not one.member:
        found = of_import(q, unit, named(one, name))
        is_guess = unit.rules.has_export_lists  # a library may have it, as may the next one, or a type as a field
        return [value for value in found if not is_guess or value.kind != "external"]
    classes = (value for value in of_import(q, unit, one._replace(kind="name")) if value.kind == "class")
    return [value for cls in classes for value in q.member(cls, name)]


def _exported(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """What a file says that it exports under a name."""
    for expression in unit.exports.get(name, ()):
        if found := q.values(unit, FILE, expression):
            return [value.found(How.IMPORT) for value in found]
    if name == "default":
        written = [*unit.children_of("module", "exports")]
    else:
        written = [*unit.children_of("module.exports", name), *unit.children_of("exports", name)]
    if written or name == "default":
        return [value for one in written for value in q.defined(unit, one, How.IMPORT)]
    return of_import(q, unit, unit.reexports[name]) if name in unit.reexports else ()


def _offered(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """What a file defines, assigns or imports under a name."""
    if unit.rules.gives_one_value and "default" in unit.exports:
        return ()
    return q.top(unit, name, How.IMPORT) or [value for step in imported(q, unit, name) for value in step]


def _passed_on(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """What is in one of the modules of which a file imports or exports all."""
    for module in (*map(_whole, unit.reexported), *unit.wildcards):
        if module.scope:
            continue
        found = of_import(q, unit, named(module, name))
        if inside := [value for value in found if value.kind != "external"]:
            return inside
    return ()


def _below(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """A module of the package that a file opens."""
    folder, _, file = unit.path.rpartition("/")
    if unit.rules.has_module_paths:
        return files_of(q, unit, f"self.{name}")
    if file not in {"__init__.py", "__init__.pyi"}:
        return ()
    return [Value("module", found, "") for found in _submodules(q, f"{folder}/".lstrip("/"), name)]


def _in_folder(q: Queries, folder: str, name: str) -> Values:
    """What the files of a folder define under a name, in a language whose files share their names."""
    return tuple(
        value
        for family in _SHARING_FOLDERS
        for path, _ in q.program.tops.get(family, f"{folder.rstrip('/')}::{name}")
        if not q.unit(path).is_test
        for value in q.top(q.unit(path), name, How.IMPORT)
    )


def _submodules(q: Queries, folder: str, name: str) -> Iterator[str]:
    for path in (f"{folder}{name}.py", f"{folder}{name}/__init__.py"):
        if q.program.is_file(path):
            yield path
            return
    if q.program.is_folder(f"{folder}{name}"):
        yield f"{folder}{name}/"


def shared(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """What files of the same folder or namespace, or all files, define under a name."""
    match unit.rules.sharing:
        case "folder":
            return _of_neighbours(q, unit, name)
        case "loaded":
            return _of_loaded(q, unit, name)
        case _:
            return _of_namespaces(q, unit, name)


def _of_namespaces(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """What files of the same namespace, or all files, define under a name."""
    rules = unit.rules
    is_global = rules.sharing == "global"
    classes: list[tuple[tuple[bool, ...], Unit, Definition]] = []  # of which each is a part of one
    for path, definition in q.program.named.get(rules.family, name):
        other = q.unit(path)
        if path == unit.path or definition.is_local:
            continue
        if definition.parent if is_global else not _is_outermost(other, definition):
            continue
        if rules.has_marked_variables and is_marked(other, definition):
            continue
        if definition.id in other.hidden or (is_global and not _is_loaded(q, unit, other, definition)):
            continue
        if is_global and rules.has_open_classes and is_class(definition):
            classes.append((_weight(other, definition, rules), other, definition))
        elif is_global or full_name(other, definition.parent) == unit.namespace:
            yield from q.defined(other, definition, How.PACKAGE)
    if classes:
        _, other, definition = max(classes, key=itemgetter(0))
        yield from q.defined(other, definition, How.PACKAGE)


def _is_loaded(q: Queries, unit: Unit, other: Unit, definition: Definition) -> bool:
    """Whether a function of another file is there because the file is imported; classes may be loaded unsaid."""
    if unit.rules.gives_one_value and _is_only(q, unit.rules.family, definition):
        return True
    return is_class(definition) or other.path in _loaded(q, unit)


def _is_only(q: Queries, family: str, definition: Definition) -> bool:
    """Whether no other file defines a name for all."""
    named = q.program.named.get(family, definition.name)
    known = [path for path, one in named if not one.parent and one.id not in q.unit(path).hidden]
    return len(set(known)) == 1


def _loaded(q: Queries, unit: Unit) -> set[str]:
    """The files that a file imports, and those import."""
    stack, found = [unit.path], {unit.path}
    while stack:
        importer = q.unit(stack.pop())
        for imports in importer.imports.values():
            for one in imports:
                paths = q.program.find_module(importer, one.module)
                new = [path for path in paths if path not in found and path in q.program.units]
                found.update(new)
                stack += new
    return found


def _of_loaded(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """A function of a file that this one loads, or that one loads which loads this one."""
    known = [
        (path, one)
        for path, one in q.program.named.get(unit.rules.family, name.rpartition(".")[2])
        if path != unit.path and called_name(one, q.unit(path).definitions) == name
    ]
    if not known:
        return
    loaded = _loaded(q, unit)
    if own := [(path, one) for path, one in known if path in loaded]:
        for path, one in _last_loaded(q, unit, own):
            yield from q.defined(q.unit(path), one, How.IMPORT)
        return
    for other in _loading(q, unit):
        beside = _loaded(q, other)
        found = [(path, one) for path, one in known if path in beside] if unit.path in beside else []
        for path, one in [item for item in found if item[0] == other.path] or _last_loaded(q, other, found):
            yield from q.defined(q.unit(path), one, How.PACKAGE)


def _last_loaded(q: Queries, unit: Unit, found: Sequence[tuple[str, Definition]]) -> Sequence[tuple[str, Definition]]:
    """Of functions of one name those of the files that are loaded last, which may be several."""
    for one in reversed(unit.imported if len(found) > 1 else ()):
        files = q.program.find_module(unit, one.module)
        if inside := [(path, definition) for path, definition in found if path in files]:
            return inside
    return found[-1:]


def _loading(q: Queries, unit: Unit) -> Iterator[Unit]:
    """Other files that load some."""
    for path in dict.fromkeys(path for path, _ in q.program.callers.get(unit.rules.family, _LOADING)):
        if path != unit.path:
            yield q.unit(path)


def _of_neighbours(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    folder = unit.path.rpartition("/")[0]
    for path, _ in q.program.tops.get(unit.rules.family, f"{folder}::{name}"):
        other = q.unit(path)
        if path != unit.path and other.namespace == unit.namespace:
            is_local = any(one.is_local for one in other.children_of(FILE, name))
            yield from () if is_local else q.top(other, name, How.PACKAGE)


def all_exported(q: Queries, path: str) -> list[Value]:
    """All functions that a module puts into an object for others."""
    if path not in q.program.units:
        return []
    unit = q.unit(path)
    names = [*unit.exports, *unit.children.get("exports", ()), *unit.children.get("module.exports", ())]
    if "default" in names or len(names) > MOST_VALUES:
        return []
    found = [one for name in dict.fromkeys(names) for one in _exported(q, unit, name)]
    return [one.found(How.ELEMENT) for one in found if one.kind == "function"]


def made(q: Queries, value: Value) -> Values:
    """Of what an object is made where the expression is no class itself."""
    if is_file(value):
        found = q.in_module(value.path, "default")
        inner = [one for module in found if is_file(module) for one in q.in_module(module.path, "default")]
        return tuple(one for one in (*found, *inner) if one.kind != "module")
    is_maker = value.kind == "function" and not q.rules(value).is_made_by_name
    return (value,) if is_maker else ()


def is_marked(unit: Unit, definition: Definition) -> bool:
    """Whether a function has its name as the value of a variable that is marked as one."""
    return bool(unit.binds(definition.id, f"${definition.name}"))


def _weight(unit: Unit, definition: Definition, rules: Rules) -> tuple[bool, ...]:
    """How much one of the parts of a class is what is meant by it."""
    makes = any(unit.children_of(definition.qualified, name) for name in rules.constructors)
    return not unit.is_test, makes, definition.id in unit.bases


def _is_outermost(unit: Unit, definition: Definition) -> bool:
    """Whether nothing but namespaces is around a definition."""
    return all(around.kind == "module" for around in unit.around(definition.id) if around.id != definition.id)
