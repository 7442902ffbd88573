"""Hoisting: where an expression may be evaluated instead of where it stands, in the class or file around it.

Most of what functions name comes from outside of them. Where no function around a place introduces the name that an
expression begins with, it means the same in the class or file around, and is evaluated once for all functions there.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from docindex_dagster.callgraph.ir import FILE, Definition, Expression, Instance, Name, TypeRef, head
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS, is_class
from docindex_dagster.callgraph.units import Unit

_NOT_ELSEWHERE = frozenset({"super", "crate", "class", "Self", "self", "static"})
_WITH_FIXTURE = frozenset({"TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "BENCHMARK_F", "BENCHMARK_DEFINE_F"})


class _Outer(NamedTuple):
    """The outermost place for what a scope names, but for some names; that for `this`."""

    scope: str
    this: str
    names: frozenset[str] = frozenset()

    def is_for(self, written: TypeRef) -> bool:
        """Whether no part of a type is one of the names."""
        return self.names.isdisjoint(written.name.split(".")) and all(map(self.is_for, written.arguments))


@dataclass(frozen=True, eq=False)
class Hoisting:
    """The outermost places of what one file says."""

    unit: Unit
    _outer: dict[str, _Outer] = field(default_factory=dict)  # by scope
    _names: dict[str, frozenset[str]] = field(default_factory=dict)  # that definitions introduce

    def of(self, scope: str, expression: Expression) -> str:
        """The outermost scope, up to the class where members need no object, where an expression means the same."""
        outer = self._outer.get(scope)
        if outer is None:
            outer = self._outer[scope] = self._outermost(scope)
        if outer.scope == outer.this == scope:
            return scope
        root = head(expression)
        if not isinstance(root, (Name, Instance)):
            return scope
        if isinstance(root, Instance):
            return outer.scope if outer.is_for(root.type) else scope
        if root.text == "this":
            return outer.this
        is_elsewhere = root.space == "function" and root.text in self._functions_elsewhere
        return scope if root.text in outer.names or is_elsewhere else outer.scope

    @cached_property
    def _functions_elsewhere(self) -> frozenset[str]:
        """Names of functions that may be added to a type: whether they are seen depends on the place."""
        rules = self.unit.rules
        has_added = rules.extends_receiver or rules.has_partial_classes
        return frozenset(self.unit.imports) if has_added else frozenset()

    def _outermost(self, scope: str) -> _Outer:
        unit, rules = self.unit, self.unit.rules
        stay = _Outer(scope, scope)
        names = _NOT_ELSEWHERE | rules.self_names | rules.factories
        outermost = None
        around = [*unit.around(scope)]
        if unit.receivers or (around and is_class(around[0])):
            return stay
        for one in around:
            if not self._is_plain(one):
                return stay
            if is_class(one) and (rules.has_implicit_members or one.kind == "module"):
                return _Outer(one.id, self._of_this(around, scope), names | self._tested(one.id))
            names |= self._introduced(one)
            outermost = one
        if rules.sharing == "included" and outermost is not None and space_of(unit, outermost):
            return stay
        return _Outer(FILE, self._of_this(around, scope), names | self._tested(FILE))

    def _is_plain(self, around: Definition) -> bool:
        """Whether the names that a definition introduces are all that it changes; not in a literal."""
        unit = self.unit
        if around.parent and around.parent not in unit.definitions:
            return False
        return is_class(around) or (around.id not in unit.bases and around.qualified not in self._with_wildcards)

    @cached_property
    def _with_wildcards(self) -> frozenset[str]:
        return frozenset(one.scope for one in self.unit.wildcards)

    def _introduced(self, around: Definition) -> frozenset[str]:
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
        """What is tested for its type in a place itself: that tells nothing of what is in it."""
        return frozenset(path.partition(".")[0] for path in self.unit.tested.get(scope, ()))

    def _of_this(self, around: list[Definition], scope: str) -> str:
        """The class whose object all functions up to it call `this`; the place itself where that is not sure."""
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
    """The namespace or class that a definition is written into; of a test that has a fixture this."""
    if definition.name in _WITH_FIXTURE and (taken := unit.parameters.get(definition.id)):
        value = taken[0].value
        fixture = value.type.name if isinstance(value, Instance) else ""
        return f"{definition.parent}.{fixture}" if definition.parent else fixture
    return definition.parent
