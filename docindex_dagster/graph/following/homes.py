"""Where an expression may be followed instead of where it stands: in the class or file around it.

Most of what functions name comes from outside of them. Where no function around a place introduces the name that an
expression begins with, it means the same in the class or file around, and is followed once for all functions there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from docindex_dagster.graph import spaces
from docindex_dagster.graph.notation import Called, Expression, Item, Made, Member, Name, Typed
from docindex_dagster.graph.offers import is_class
from docindex_dagster.graph.units import CLASSES, FILE, FUNCTIONS, Definition, Unit

_CHAINS = (Member, Called, Item, Made)
_WORDS = re.compile(r"\w+")
_NOT_ELSEWHERE = frozenset({"super", "crate", "class", "Self", "self", "static"})


@dataclass(frozen=True, slots=True)
class _Home:
    """The place for what a scope names, but for some names; that for `this`."""

    scope: str
    this: str
    names: frozenset[str]


@dataclass(frozen=True, eq=False)
class Homes:
    """Of one file."""

    unit: Unit
    _known: dict[str, _Home] = field(default_factory=dict)

    def of(self, scope: str, expression: Expression) -> str:
        """The outermost scope, up to the class where members need no object, where an expression means the same."""
        root = expression
        while isinstance(root, _CHAINS):
            root = root.of
        if isinstance(root, Name):
            home = self._known.get(scope) or self._known.setdefault(scope, self._found(scope))
            if root.name == "this":
                return home.this
            if root.name in home.names or (root.wanted == "function" and root.name in self._functions_elsewhere):
                return scope
            return home.scope
        if isinstance(root, Typed):
            home = self._known.get(scope) or self._known.setdefault(scope, self._found(scope))
            return home.scope if home.names.isdisjoint(_WORDS.findall(root.type)) else scope
        return scope

    @cached_property
    def _functions_elsewhere(self) -> frozenset[str]:
        """Names of functions that may be added to a type: whether they are seen depends on the place."""
        policy = self.unit.policy
        has_added = policy.extends_receiver or policy.has_partial_classes
        return frozenset(self.unit.imports) if has_added else frozenset()

    @cached_property
    def _reserved(self) -> frozenset[str]:
        policy = self.unit.policy
        return _NOT_ELSEWHERE | policy.selves | policy.makers

    def _found(self, scope: str) -> _Home:
        unit, policy = self.unit, self.unit.policy
        stay = _Home(scope, scope, frozenset())
        names = {*self._reserved}
        outermost = None
        around = [*unit.around(scope)]
        if unit.receivers or (around and is_class(around[0])):
            return stay
        for one in around:
            if not self._is_plain(one):
                return stay
            if is_class(one) and (policy.has_implicit_members or one.kind == "module"):
                return _Home(one.id, self._of_this(around, scope), frozenset({*names, *self._tested(one.id)}))
            names.update(self._introduced(one))
            outermost = one
        if policy.sharing == "included" and outermost is not None and spaces.space_of(unit, outermost):
            return stay
        return _Home(FILE, self._of_this(around, scope), frozenset({*names, *self._tested(FILE)}))

    def _is_plain(self, around: Definition) -> bool:
        """Whether the names that a definition introduces are all that it changes."""
        unit = self.unit
        if around.parent and around.parent not in unit.definitions:  # in a literal
            return False
        if is_class(around):
            return True
        return around.id not in unit.bases and around.qualified not in self._with_stars

    @cached_property
    def _with_stars(self) -> frozenset[str]:
        return frozenset(star.scope for star in self.unit.stars)

    def _introduced(self, around: Definition) -> Iterator[str]:
        unit = self.unit
        for name in unit.binds.get(around.id, ()):
            yield from (name, _root(name))
        yield from unit.taken.get(around.id, ())
        yield from (name for name, _ in unit.generics.get(around.id, ()))
        for name in unit.children.get(around.qualified, ()):
            yield from (name, f"${name}")
        yield from self._imported.get(around.qualified, ())
        yield from self._imported.get(around.id, ())

    @cached_property
    def _imported(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, imports in self.unit.imports.items():
            for imported in imports:
                if imported.scope:
                    found.setdefault(imported.scope, []).append(name)
        return found

    def _tested(self, scope: str) -> Iterator[str]:
        """What is tested for its type in a place itself: that tells nothing of what is in it."""
        return (_root(name) for name in self.unit.binds.get(scope, ()) if name.startswith("is "))

    def _of_this(self, around: list[Definition], scope: str) -> str:
        """The class whose object all functions up to it call `this`; the place itself where that is not sure."""
        policy = self.unit.policy
        at = next((at for at, one in enumerate(around) if one.kind in CLASSES), None)
        if at is None or policy.has_module_paths or policy.sharing == "included":
            return scope
        functions, cls, outer = around[:at], around[at], around[at + 1 :]
        if any(one.kind not in FUNCTIONS for one in functions):
            return scope
        if policy.self_name:
            *inner, _ = functions
            taken = [(one, name) for one in functions for name in (policy.class_name, policy.self_name)]
            odd = [name for one, name in taken if self.unit.takes(one.id, name) and (one in inner or name == "cls")]
            return scope if odd or outer else cls.id
        if policy.has_prototypes and any(one.kind == "method" for one in functions[:-1]):
            return scope
        return cls.id if policy.has_prototypes or policy.has_implicit_members else scope


def _root(name: str) -> str:
    """The first name of what is tested or assigned."""
    return name.removeprefix("is ").lstrip(".:<*&").partition(".")[0].partition("[")[0]
