"""Hoisting: evaluation of an expression in an enclosing class or file instead of its own scope.

Most names used in a function come from outside it. If no enclosing function declares the first name of an expression,
the expression has the same meaning in the enclosing class or file. It is then evaluated once for all functions there.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from docindex_dagster.callgraph.ir import FILE, Definition, Expression, Instance, Name, TypeRef, head
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS, is_class
from docindex_dagster.callgraph.units import Unit

_SCOPE_DEPENDENT = frozenset({"super", "crate", "class", "Self", "self", "static"})
_WITH_FIXTURE = frozenset({"TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "BENCHMARK_F", "BENCHMARK_DEFINE_F"})


class _Outer(NamedTuple):
    """The outermost scope for expressions in a scope, except those with some names; and the one for `this`."""

    scope: str
    this: str
    excluded: frozenset[str] = frozenset()

    def applies_to(self, written: TypeRef) -> bool:
        """Return whether a type contains none of the excluded names."""
        return self.excluded.isdisjoint(written.name.split(".")) and all(map(self.applies_to, written.arguments))


@dataclass(frozen=True, eq=False)
class Hoisting:
    """The outermost scopes for the expressions of a file."""

    unit: Unit
    _outer: dict[str, _Outer] = field(default_factory=dict)  # by scope
    _names: dict[str, frozenset[str]] = field(default_factory=dict)  # names declared by a definition, by its id

    def of(self, scope: str, expression: Expression) -> str:
        """Return the outermost scope with the same meaning; with implicit members, at most the enclosing class."""
        outer = self._outer.get(scope)
        if outer is None:
            outer = self._outer[scope] = self._outermost(scope)
        if outer.scope == outer.this == scope:
            return scope
        root = head(expression)
        if not isinstance(root, (Name, Instance)):
            return scope
        if isinstance(root, Instance):
            return outer.scope if outer.applies_to(root.type) else scope
        if root.text == "this":
            return outer.this
        may_be_extension = root.space == "function" and root.text in self._imported_extensions
        return scope if root.text in outer.excluded or may_be_extension else outer.scope

    @cached_property
    def _imported_extensions(self) -> frozenset[str]:
        """Imported names that may be extension functions, whose visibility depends on the scope."""
        rules = self.unit.rules
        has_extension_functions = rules.extends_receiver or rules.has_partial_classes
        return frozenset(self.unit.imports) if has_extension_functions else frozenset()

    def _outermost(self, scope: str) -> _Outer:
        unit, rules = self.unit, self.unit.rules
        stay = _Outer(scope, scope)
        names = _SCOPE_DEPENDENT | rules.self_names | rules.factories
        outermost = None
        around = [*unit.around(scope)]
        if unit.receivers or (around and is_class(around[0])):
            return stay
        for one in around:
            if not self._is_hoistable(one):
                return stay
            if is_class(one) and (rules.has_implicit_members or one.kind == "module"):
                return _Outer(one.id, self._of_this(around, scope), names | self._tested(one.id))
            names |= self._declared(one)
            outermost = one
        if rules.sharing == "included" and outermost is not None and space_of(unit, outermost):
            return stay
        return _Outer(FILE, self._of_this(around, scope), names | self._tested(FILE))

    def _is_hoistable(self, around: Definition) -> bool:
        """Return whether a definition only affects the names it declares; False inside literals."""
        unit = self.unit
        if around.parent and around.parent not in unit.definitions:
            return False
        return is_class(around) or (around.id not in unit.bases and around.qualified not in self._with_wildcards)

    @cached_property
    def _with_wildcards(self) -> frozenset[str]:
        return frozenset(one.scope for one in self.unit.wildcards)

    def _declared(self, around: Definition) -> frozenset[str]:
        unit = self.unit
        if around.id not in self._names:
            inside = unit.children.get(around.qualified, ())
            self._names[around.id] = unit.parameter_names(around.id).union(
                unit.bindings.get(around.id, ()),
                unit.roots.get(around.id, ()),
                (one.name for one in unit.generics.get(around.id, ())),
                inside,
                (f"${name}" for name in inside if unit.rules.has_marked_variables),
                self._imported.get(around.qualified, ()),
                self._imported.get(around.id, ()),
            )
        return self._names[around.id]

    @cached_property
    def _imported(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, imports in self.unit.imports.items():
            for imported in imports:
                found[imported.scope].append(name)
        return found

    def _tested(self, scope: str) -> frozenset[str]:
        """Return the first names of paths tested for a type in a scope; such tests do not apply to nested scopes."""
        return frozenset(path.partition(".")[0] for path in self.unit.tested.get(scope, ()))

    def _of_this(self, around: list[Definition], scope: str) -> str:
        """Return the class that `this` refers to in all functions up to it; the scope itself if this is uncertain."""
        rules = self.unit.rules
        at = next((at for at, one in enumerate(around) if one.kind in CLASSES), None)
        if at is None or rules.has_module_paths or rules.sharing == "included":
            return scope
        functions, cls, outer = around[:at], around[at], around[at + 1 :]
        if any(one.kind not in FUNCTIONS for one in functions):
            return scope
        if (shares_this := rules.hooks.shares_this) is not None:
            return scope if outer or not shares_this(self.unit, functions) else cls.id
        if rules.has_prototypes and any(one.kind == "method" for one in functions[:-1]):
            return scope
        return cls.id if rules.has_prototypes or rules.has_implicit_members else scope


def space_of(unit: Unit, definition: Definition) -> str:
    """Return the namespace or class that contains a definition; for a test with a fixture, the fixture."""
    if definition.name in _WITH_FIXTURE and (parameters := unit.parameters.get(definition.id)):
        value = parameters[0].value
        fixture = value.type.name if isinstance(value, Instance) else ""
        return f"{definition.parent}.{fixture}" if definition.parent else fixture
    return definition.parent
