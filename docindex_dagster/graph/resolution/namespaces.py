"""What a name stands for where files share namespaces, and the functions that are added to types."""

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.graph import builtins, spaces
from docindex_dagster.graph.notation import (
    Either,
    Expression,
    Name,
)
from docindex_dagster.graph.offers import full_name, is_class, namespaces, with_parents
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.resolution.base import NameResolver, Values
from docindex_dagster.graph.units import Definition, Unit
from docindex_dagster.graph.values import How, Kind, Value

_OBJECTS = {Kind.OBJECT, Kind.EXTERNAL_OBJECT, Kind.COLLECTION, Kind.LITERAL}


class Namespaces(NameResolver):
    """What a name stands for where files share namespaces, and the functions that are added to types."""

    def visible(self, unit: Unit) -> frozenset[str]:
        """The paths of a file and of all that it includes."""
        return self.memo.settled(("visible", unit.path), frozenset(), spaces.included, self, unit)

    def _within(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """A name where the members of some objects need no object."""
        for part in of.parts if isinstance(of, Either) else (of,):
            found = [*self._members_of(unit, scope, self._read(unit, scope, part), name)]
            if known := [value for value in found if value.kind is not Kind.EXTERNAL]:
                return known
        return self._values(unit, scope, Name(name))

    def _in_namespaces(self, unit: Unit, wanted: Name, policy: Policy) -> Iterable[Value]:
        """What a name stands for outside of all classes, where files of one namespace share their names."""
        spaces = self.spaces(unit)
        for found in self._steps_outwards(unit, wanted.name, policy, spaces):
            known = [value for value in found if value.kind is not Kind.EXTERNAL]
            if wanted.wanted == "type":  # or an alias of one
                known = [value for value in known if value.kind is not Kind.FUNCTION]
            if fitting := known if wanted.wanted != "function" else self._implied(known, wanted, policy):
                return fitting
        for space in (*spaces, ""):
            full = f"{space}.{wanted.name}".lstrip(".")
            if (policy.sees_outer_namespaces or not space) and self.program.is_namespace(policy.family, full):
                return [Value(Kind.MODULE, unit.path, full)]
        imported = [value for step in self._imported(unit, wanted.name) for value in step]
        is_external = not imported and wanted.name[:1].isupper() and wanted.wanted != "function"
        return [Value(Kind.EXTERNAL, "", wanted.name)] if is_external else imported

    def _steps_outwards(
        self, unit: Unit, name: str, policy: Policy, spaces: Sequence[str]
    ) -> Iterator[Iterable[Value]]:
        """What a name stands for in the file, in what it imports, in its namespaces, and in those that it uses."""
        yield self._top(unit, name, How.FILE)
        yield from self._imported(unit, name)
        if any(not one.scope for one in unit.imports.get(name, ())):
            return
        for space in spaces:
            yield [value.found(How.PACKAGE) for value in self._in_namespace(policy, space, name, unit.path)]
        modules = dict.fromkeys((*(star.module for star in unit.stars), *self.program.everywhere(policy.family)))
        known = (value for module in modules for value in self._of_namespace(policy, module, name, unit.path))
        yield [value.found(How.IMPORT) for value in known]

    def spaces(self, unit: Unit) -> Sequence[str]:
        """The namespaces whose names a file sees without an import, the innermost first."""
        if unit.path not in self._known_spaces:
            own = sorted(namespaces(unit), key=lambda space: (-len(space), space))
            outer = (around for space in own for around in with_parents(space))
            sees_outer = unit.policy.sees_outer_namespaces
            self._known_spaces[unit.path] = tuple(dict.fromkeys([*outer, ""])) if sees_outer else own
        return self._known_spaces[unit.path]

    def _in_namespace(self, policy: Policy, space: str, name: str, importer: str) -> list[Value]:
        """What the files of a namespace define under a name: of classes the nearest."""
        known = self.program.full.get((policy.family, f"{space}.{name}" if space else name), ())
        classes = [item for item in known if is_class(item[1]) and item[1].kind != "module"]
        if len(classes) > 1:
            classes = [min(classes, key=lambda item: _distance(item[0], importer, name))]
        others = (item for item in known if not is_class(item[1]))
        return [
            value
            for path, definition in [*classes, *others]
            for value in self.defined(self.unit(path), definition, How.IMPORT)
        ]

    def _of_namespace(self, policy: Policy, module: str, name: str, importer: str) -> list[Value]:
        """What a namespace, or a class, has under a name."""
        if policy.extends_receiver:
            module, name = (module, "") if name == "Companion" else (module.removesuffix(".Companion"), name)
        if not name:
            module, _, name = module.rpartition(".")
        if found := self._in_namespace(policy, module, name, importer):
            return found
        space, _, owner = module.rpartition(".")
        classes = self._in_namespace(policy, space, owner, importer) if owner else ()
        found = [value for cls in classes if cls.kind is Kind.CLASS for value in self.member(cls, name)]
        return found or [Value(Kind.EXTERNAL, "", f"{module}.{name}".lstrip("."))]

    def _extensions(self, unit: Unit, scope: str, values: Values, name: str) -> Iterator[Value]:
        """The functions that are added to the type of some values, as far as they can be seen from a file."""
        policy = unit.policy
        named = {name: False}
        for imported in unit.imports.get(name, ()):
            named[imported.name] = True
        for real, is_imported in named.items():
            for path, function in self.program.extensions.get((policy.family, real), ()):
                other = self.unit(path)
                if (other is unit and function.id == scope) or not self._sees(unit, scope, other, function):
                    continue
                fits = [value for value in values if self._extends(other, function, value)]
                if fits or (not values and is_imported):
                    held = fits[:1] if fits and fits[0].kind is Kind.OBJECT else ()
                    yield Value(Kind.FUNCTION, path, function.id, How.RECEIVER if fits else How.IMPORT, tuple(held))

    def _sees(self, unit: Unit, scope: str, other: Unit, function: Definition) -> bool:
        """Whether a function that is added to a type can be used in a scope."""
        policy = unit.policy
        stars = {star.module for star in unit.stars}
        if not policy.extends_receiver:  # it is in a class, and its namespace is what is imported
            space = full_name(other, function.parent).rpartition(".")[0]
            return space in self.spaces(unit) or space in stars or space in self.program.everywhere(policy.family)
        receiver = other.receivers[function.id].partition("<")[0].rpartition(".")[2]
        holder = "" if function.parent.rpartition(".")[2] == receiver else function.parent
        if holder and unit is other and any(around.qualified == holder for around in unit.around(scope)):
            return True
        space = full_name(other, holder)
        if not holder and (space == unit.namespace or space in stars):
            return True
        listed = (one for imports in unit.imports.values() for one in imports)
        return any(one.module == space and one.name == function.name for one in listed)

    def _extends(self, unit: Unit, function: Definition, value: Value) -> bool:
        """Whether a function is added to the type of a value."""
        if value.kind not in _OBJECTS:
            return False
        written = unit.receivers[function.id]
        bounds = dict(unit.generics.get(function.id, ()))
        if written in bounds:
            if not bounds[written].startswith(":"):
                return True
            written = bounds[written][1:]
        wanted = written.partition("<")[0].rpartition(".")[2]
        if wanted in {"Any", "object", "Object"}:
            return True
        typed = self._typed(unit, function.id, written)
        classes = {(one.path, one.name) for one in typed if one.kind is Kind.OBJECT}
        if value.kind is Kind.OBJECT:
            return any(
                (one.path, one.name) in classes
                or (not classes and one.kind is Kind.EXTERNAL and one.name.rpartition(".")[2] == wanted)
                for one in self.ancestors(value)
            )
        return not classes and builtins.is_same_type(value.name.rpartition(".")[2], wanted)

    def _in_space(self, value: Value, name: str) -> list[Value]:
        """What a namespace that is written out has under a name."""
        policy = self._policy(value)
        if found := self._in_namespace(policy, value.name, name, ""):
            return found
        full = f"{value.name}.{name}"
        return [value._replace(name=full)] if self.program.is_namespace(policy.family, full) else []


def _distance(path: str, importer: str, name: str) -> tuple[int, bool, str]:
    """How far a file is from another one; of those in one folder first what is called like what it defines."""
    shared = posixpath.commonprefix([path.split("/")[:-1], importer.split("/")[:-1]])
    return -len(shared), posixpath.basename(path).rpartition(".")[0] != name, path
