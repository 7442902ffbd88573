"""What a name stands for by imports: the modules, files and folders to which they lead."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from docindex_dagster.graph import notation, spaces
from docindex_dagster.graph.modules_go import go_package_name
from docindex_dagster.graph.notation import (
    Name,
)
from docindex_dagster.graph.offers import full_name, is_class
from docindex_dagster.graph.policies import POLICIES, Policy
from docindex_dagster.graph.resolution.base import MOST_VALUES, PATH_WORDS, NameResolver, Values, distinct, is_marked
from docindex_dagster.graph.units import FILE, Definition, Import, Unit
from docindex_dagster.graph.values import How, Kind, Value

_OUTSIDE = "\0"  # the place of who looks at a file from another one
_SHARING_FOLDERS = sorted({policy.family for policy in POLICIES.values() if policy.sharing == "folder"})


class Imports(NameResolver):
    """What a name stands for by imports."""

    def _macros(self, unit: Unit, name: str) -> Iterator[Value]:
        """The macros of a name: of this file, else of the crate, else all; none where it is imported from elsewhere."""
        imported = (value for one in unit.imports.get(name, ()) for value in self._of_import(unit, one))
        if any(value.kind is Kind.EXTERNAL for value in imported):
            return
        family = unit.policy.family
        found = [
            (path, definition)
            for path, definition in self.program.named.get((family, name.rpartition(".")[2]), ())
            if definition.kind == "macro"
        ]
        folder = unit.path.partition("src/")[0]
        for near in (lambda path: path == unit.path, lambda path: path.startswith(f"{folder}src/"), lambda _: True):
            nearest = [item for item in found if near(item[0])]
            if nearest:
                path, definition = nearest[0]
                yield Value(Kind.FUNCTION, path, definition.id, How.FILE if path == unit.path else How.PACKAGE)
                return

    def _path_word(self, unit: Unit, scope: str, word: str) -> Iterable[Value]:
        """The module around a place, the one around that, or the first of the crate."""
        modules = [around for around in unit.around(scope) if around.kind == "module"]
        if word == "crate":
            return self._files_of(unit, "crate")
        inner = modules[1 if word == "super" else 0 :]
        if inner:
            return [Value(Kind.CLASS, unit.path, inner[0].id)]
        if word == "this" or modules:
            return [Value(Kind.MODULE, unit.path, "")]
        return self._files_of(unit, "super")

    def _files_of(self, unit: Unit, module: str) -> list[Value]:
        files = self.program.find_module(unit, module)
        return [Value(Kind.MODULE, path, "") for path in files if path in self.program.units]

    def _of_path(self, unit: Unit, imported: Import) -> Iterable[Value]:
        """What a path leads to that is imported."""
        first, *others = [*filter(None, imported.module.split(".")), *filter(None, [imported.name])] or [""]
        found = self._first_of_path(unit, imported.scope, "this" if first == "self" else first)
        for name in others:
            found = distinct(inner for value in found for inner in self.member(value, name))
        return found

    def _first_of_path(self, unit: Unit, scope: str, name: str) -> Iterable[Value]:
        if name in PATH_WORDS:
            return self._path_word(unit, scope, name)
        below = self._files_of(unit, f"self.{name}")
        return (
            below
            or self._values(unit, scope, Name(name))
            or self._files_of(unit, name)
            or [Value(Kind.EXTERNAL, "", name)]
        )

    def _used_in(self, unit: Unit, scope: str, name: str) -> list[Value]:
        """What a module that is written in a file imports under a name."""
        for imported in unit.imports.get(name, ()):
            if imported.scope == scope and (found := [*self._of_import(unit, imported)]):
                return [value.found(How.IMPORT) for value in found]
        for star in unit.stars:
            if star.scope == scope:
                found = [value for value in self._of_import(unit, star.named(name)) if value.kind is not Kind.EXTERNAL]
                if found:
                    return [value.found(How.IMPORT) for value in found]
        return []

    def _imported(self, unit: Unit, name: str) -> Iterator[Iterable[Value]]:
        for imported in unit.imports.get(name, ()):
            if imported.scope:
                continue
            yield [value.found(How.IMPORT) for value in self._of_import(unit, imported)]
        if unit.policy.names_packages:
            for module in self._packages(unit).get(name, ()):
                yield self._of_module(unit, module, "")
            return
        if name not in unit.imports and name in unit.packages:
            yield self._of_import(unit, Import(name, "", 0))

    def _packages(self, unit: Unit) -> Mapping[str, Sequence[str]]:
        """The packages that a file imports without a name, by their names."""
        none: dict[str, list[str]] = {}
        return self.memo.settled(("packages", unit.path), none, self._found_packages, unit)

    def _found_packages(self, unit: Unit) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for module in unit.imports:
            found[self._package_name(unit, module)].append(module)
        return found

    def _package_name(self, unit: Unit, module: str) -> str:
        """The name of a package that is imported without one."""
        for folder in self.program.find_module(unit, module):
            for path in self.program.sharing(unit.policy.family, folder.rstrip("/")):
                return self.program.units[path].namespace
        return go_package_name(module) if "/" in module else ""

    def _of_import(self, unit: Unit, imported: Import) -> Iterable[Value]:
        if unit.policy.has_module_paths:
            return self._of_path(unit, imported)
        return self._of_module(unit, imported.module, imported.name)

    def _of_module(self, unit: Unit, module: str, name: str) -> list[Value]:
        """What a module has under a name; without one, the module."""
        policy = unit.policy
        if policy.separates_kinds:
            return self._of_namespace(policy, module, name, unit.path)
        if policy.has_namespaces:
            full = ".".join(filter(None, (module.replace("\\", "."), name)))
            return spaces.in_space(self, unit, full) or [Value(Kind.EXTERNAL, "", full)]
        files = self.program.find_module(unit, module)
        if not files:
            full = ".".join(filter(None, (module.lstrip("."), name)))
            return [Value(Kind.EXTERNAL, "", full)]
        modules = [Value(Kind.MODULE, path, "") for path in files]
        found = [value for path in files for value in self._in_module(path, name)] if name else modules
        return found or (modules if name == "default" else [])

    def _in_module(self, path: str, name: str) -> list[Value]:
        """What other files find in a file or folder under a name."""
        if path.endswith("/"):
            if found := self._in_folder(path, name):
                return found
            return [Value(Kind.MODULE, found, "") for found in self._submodules(path, name)]
        if path not in self.program.units:
            return []
        none: Values = ()
        return [*self.memo.settled((path, _OUTSIDE, name), none, self._offering, path, name)]

    def _offering(self, path: str, name: str) -> Values:
        return distinct(self._inside(self.unit(path), name))

    def _inside(self, unit: Unit, name: str) -> list[Value]:
        if name == "super" and unit.policy.has_module_paths:
            return self._files_of(unit, name)
        for find in (self._exported, self._offered, self._passed_on, self._below):
            if found := find(unit, name):
                return found
        return [
            member
            for expression in unit.exports.get("default", ())
            for value in self._values(unit, FILE, notation.parse(expression))
            for member in self.member(value, name)
        ]

    def _exported(self, unit: Unit, name: str) -> list[Value]:
        """What a file says that it exports under a name."""
        for expression in unit.exports.get(name, ()):
            if found := self._values(unit, FILE, notation.parse(expression)):
                return [value.found(How.IMPORT) for value in found]
        if name == "default":
            assigned = unit.children.get("module", {}).get("exports", ())
            return [value for one in assigned for value in self.defined(unit, one, How.IMPORT)]
        written = [
            *unit.children.get("module.exports", {}).get(name, ()),
            *unit.children.get("exports", {}).get(name, ()),
        ]
        if written:
            return [value for one in written for value in self.defined(unit, one, How.IMPORT)]
        return [*self._of_import(unit, unit.reexports[name])] if name in unit.reexports else []

    def _offered(self, unit: Unit, name: str) -> list[Value]:
        """What a file defines, assigns or imports under a name."""
        return self._top(unit, name, How.IMPORT) or [value for step in self._imported(unit, name) for value in step]

    def _passed_on(self, unit: Unit, name: str) -> list[Value]:
        """What is in one of the modules of which a file imports or exports all."""
        for module in (*(Import(module, "", 0) for module in unit.reexported), *unit.stars):
            if module.scope:
                continue
            found = self._of_import(unit, module.named(name))
            inside = [value for value in found if value.kind is not Kind.EXTERNAL]
            if inside:
                return inside
        return []

    def _below(self, unit: Unit, name: str) -> list[Value]:
        """A module of the package that a file opens."""
        folder, _, file = unit.path.rpartition("/")
        if unit.policy.has_module_paths:
            return self._files_of(unit, f"self.{name}")
        if file not in {"__init__.py", "__init__.pyi"}:
            return []
        return [Value(Kind.MODULE, found, "") for found in self._submodules(f"{folder}/".lstrip("/"), name)]

    def _in_folder(self, folder: str, name: str) -> list[Value]:
        """What the files of a folder define under a name, in a language whose files share their names."""
        return [
            value
            for family in _SHARING_FOLDERS
            for path, _ in self.program.tops.get((family, f"{folder.rstrip('/')}::{name}"))
            if not self.program.units[path].is_test
            for value in self._top(self.unit(path), name, How.IMPORT)
        ]

    def _submodules(self, folder: str, name: str) -> Iterator[str]:
        for path in (f"{folder}{name}.py", f"{folder}{name}/__init__.py"):
            if self.program.is_file(path):
                yield path
                return
        if self.program.is_folder(f"{folder}{name}"):
            yield f"{folder}{name}/"

    def _shared(self, unit: Unit, name: str, policy: Policy) -> Iterator[Value]:
        """What files of the same folder or namespace, or all files, define under a name."""
        if policy.sharing == "folder":
            yield from self._of_neighbours(unit, name, policy)
            return
        is_global = policy.sharing == "global"
        classes: list[tuple[tuple[bool, ...], Unit, Definition]] = []  # of which each is a part of one
        for path, definition in self.program.named.get((policy.family, name), ()):
            other = self.program.units[path]
            if path == unit.path or definition.is_local:
                continue
            if definition.parent if is_global else not _is_outermost(other, definition):
                continue
            if policy.has_marked_variables and is_marked(other, definition):
                continue
            if is_global and not self._is_loaded(unit, other, definition):
                continue
            if is_global and policy.has_open_classes and is_class(definition):
                classes.append((_weight(other, definition, policy), other, definition))
            elif is_global or _is_beside(unit, other, definition):
                yield from self.defined(other, definition, How.PACKAGE)
        if classes:
            _, other, definition = max(classes, key=itemgetter(0))
            yield from self.defined(other, definition, How.PACKAGE)

    def _is_loaded(self, unit: Unit, other: Unit, definition: Definition) -> bool:
        """Whether a function of another file is there because the file is imported; classes may be loaded unsaid."""
        return is_class(definition) or other.path in self._loaded(unit)

    def _loaded(self, unit: Unit) -> set[str]:
        """The files that a file imports, and those import."""
        stack, found = [unit.path], {unit.path}
        while stack:
            importer = self.program.units[stack.pop()]
            for imports in importer.imports.values():
                for imported in imports:
                    paths = self.program.find_module(importer, imported.module)
                    new = [path for path in paths if path not in found and path in self.program.units]
                    found.update(new)
                    stack += new
        return found

    def _of_neighbours(self, unit: Unit, name: str, policy: Policy) -> Iterator[Value]:
        folder = unit.path.rpartition("/")[0]
        for path, _ in self.program.tops.get((policy.family, f"{folder}::{name}")):
            other = self.program.units[path]
            if path != unit.path and other.namespace == unit.namespace:
                is_local = any(one.is_local for one in other.children.get(FILE, {}).get(name, ()))
                yield from () if is_local else self._top(other, name, How.PACKAGE)

    def _all_exported(self, value: Value) -> Iterable[Value]:
        """All functions that a module puts into an object for others."""
        if value.path not in self.program.units:
            return ()
        unit = self.unit(value.path)
        names = [*unit.exports, *unit.children.get("exports", ()), *unit.children.get("module.exports", ())]
        if "default" in names or len(names) > MOST_VALUES:
            return ()
        found = [one for name in dict.fromkeys(names) for one in self._exported(unit, name)]
        return [one.found(How.ELEMENT) for one in found if one.kind is Kind.FUNCTION]


def _weight(unit: Unit, definition: Definition, policy: Policy) -> tuple[bool, ...]:
    """How much one of the parts of a class is what is meant by it."""
    makes = any(name in unit.children.get(definition.qualified, ()) for name in policy.constructors)
    return not unit.is_test, makes, definition.id in unit.bases


def _is_beside(unit: Unit, other: Unit, definition: Definition) -> bool:
    """Whether a definition is in the namespace of a file."""
    return full_name(other, definition.parent) == unit.namespace


def _is_outermost(unit: Unit, definition: Definition) -> bool:
    """Whether nothing but namespaces is around a definition."""
    return all(around.kind == "module" for around in unit.around(definition.id) if around.id != definition.id)
