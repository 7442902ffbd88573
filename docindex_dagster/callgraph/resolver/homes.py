"""Where an expression may be evaluated instead of where it stands: in the class or file around it (hoisting).

Most of what functions name comes from outside of them. Where no function around a place introduces the name that an
expression begins with, it means the same in the class or file around, and is evaluated once for all functions there.
"""

from dataclasses import dataclass, field
from functools import cached_property

from docindex_dagster.callgraph.ir import (
    FILE,
    Attribute,
    Call,
    Definition,
    Element,
    Expression,
    Instance,
    Name,
    New,
    TypeRef,
)
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS
from docindex_dagster.callgraph.offers import is_class
from docindex_dagster.callgraph.units import Unit

_NOT_ELSEWHERE = frozenset({"super", "crate", "class", "Self", "self", "static"})
_WITH_FIXTURE = frozenset({"TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "BENCHMARK_F", "BENCHMARK_DEFINE_F"})


@dataclass(frozen=True, slots=True)
class _Home:
    """The place for what a scope names, but for some names; that for `this`."""

    scope: str
    this: str
    names: tuple[frozenset[str], ...] = ()

    def is_for(self, name: str) -> bool:
        """Whether a name is none of them."""
        for some in self.names:  # noqa: SIM110 asked for each expression
            if name in some:
                return False
        return True

    def is_for_type(self, written: TypeRef) -> bool:
        """Whether no part of a type is one of them."""
        return all(map(self.is_for, written.name.split("."))) and all(map(self.is_for_type, written.arguments))


@dataclass(frozen=True, eq=False)
class Homes:
    """The homes of what one file says."""

    unit: Unit
    _homes: dict[str, _Home] = field(default_factory=dict)  # by scope
    _names: dict[str, frozenset[str]] = field(default_factory=dict)  # that definitions introduce

    def of(self, scope: str, expression: Expression) -> str:
        """The outermost scope, up to the class where members need no object, where an expression means the same."""
        root = expression
        while True:
            kind = type(root)
            if kind is Attribute or kind is Element:
                root = root.of  # type: ignore[union-attr]
            elif kind is Call:
                root = root.callee  # type: ignore[union-attr]
            elif kind is New:
                root = root.cls  # type: ignore[union-attr]
            else:
                break
        if isinstance(root, Name):
            home = self._homes.get(scope) or self._homes.setdefault(scope, self._home(scope))
            if root.text == "this":
                return home.this
            is_elsewhere = root.space == "function" and root.text in self._functions_elsewhere
            return home.scope if home.is_for(root.text) and not is_elsewhere else scope
        if isinstance(root, Instance):
            home = self._homes.get(scope) or self._homes.setdefault(scope, self._home(scope))
            return home.scope if home.is_for_type(root.type) else scope
        return scope

    @cached_property
    def _functions_elsewhere(self) -> frozenset[str]:
        """Names of functions that may be added to a type: whether they are seen depends on the place."""
        rules = self.unit.rules
        has_added = rules.extends_receiver or rules.has_partial_classes
        return frozenset(self.unit.imports) if has_added else frozenset()

    @cached_property
    def _reserved(self) -> frozenset[str]:
        rules = self.unit.rules
        return _NOT_ELSEWHERE | rules.selves | rules.makers

    def _home(self, scope: str) -> _Home:
        unit, rules = self.unit, self.unit.rules
        stay = _Home(scope, scope)
        names = [self._reserved]
        outermost = None
        around = [*unit.around(scope)]
        if unit.receivers or (around and is_class(around[0])):
            return stay
        for one in around:
            if not self._is_plain(one):
                return stay
            if is_class(one) and (rules.has_implicit_members or one.kind == "module"):
                return _Home(one.id, self._of_this(around, scope), (*names, self._tested(one.id)))
            names.append(self._introduced(one))
            outermost = one
        if rules.sharing == "included" and outermost is not None and space_of(unit, outermost):
            return stay
        return _Home(FILE, self._of_this(around, scope), (*names, self._tested(FILE)))

    def _is_plain(self, around: Definition) -> bool:
        """Whether the names that a definition introduces are all that it changes."""
        unit = self.unit
        if around.parent and around.parent not in unit.definitions:  # in a literal
            return False
        if is_class(around):
            return True
        return around.id not in unit.bases and around.qualified not in self._with_wildcards

    @cached_property
    def _with_wildcards(self) -> frozenset[str]:
        return frozenset(one.scope for one in self.unit.wildcards)

    def _introduced(self, around: Definition) -> frozenset[str]:
        unit = self.unit
        if around.id not in self._names:
            inside = unit.children.get(around.qualified, ())
            self._names[around.id] = frozenset(
                {
                    *unit.bindings.get(around.id, ()),
                    *unit.roots.get(around.id, ()),
                    *unit.taken(around.id),
                    *(one.name for one in unit.generics.get(around.id, ())),
                    *inside,
                    *((f"${name}" for name in inside) if unit.rules.has_marked_variables else ()),
                    *self._imported.get(around.qualified, ()),
                    *self._imported.get(around.id, ()),
                }
            )
        return self._names[around.id]

    @cached_property
    def _imported(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, imports in self.unit.imports.items():
            for imported in imports:
                if imported.scope:
                    found.setdefault(imported.scope, []).append(name)
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
        if rules.self_name:
            *inner, _ = functions
            takes = self.unit.takes
            is_odd = any(takes(one.id, rules.class_name) for one in functions)
            is_odd |= any(takes(one.id, rules.self_name) for one in inner)
            return scope if is_odd or outer else cls.id
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
