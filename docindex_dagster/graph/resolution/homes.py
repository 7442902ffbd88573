"""Where an expression may be followed instead of where it stands: in the class or file around it.

Most of what functions name comes from outside of them. Where no function around a place introduces the name that an
expression begins with, it means the same in the class or file around, and is followed once for all functions there.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

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
    names: tuple[frozenset[str], ...] = ()

    def is_for(self, name: str) -> bool:
        """Whether a name is none of them."""
        return not any(name in some for some in self.names)


@dataclass(frozen=True, eq=False)
class Homes:
    """The homes of what one file says."""

    unit: Unit
    _known: dict[str, _Home] = field(default_factory=dict)  # by scope
    _names: dict[str, frozenset[str]] = field(default_factory=dict)  # that definitions introduce

    def of(self, scope: str, expression: Expression) -> str:
        """The outermost scope, up to the class where members need no object, where an expression means the same."""
        root = expression
        while isinstance(root, _CHAINS):
            root = root.of
        if isinstance(root, Name):
            home = self._known.get(scope) or self._known.setdefault(scope, self._found(scope))
            if root.name == "this":
                return home.this
            is_elsewhere = root.wanted == "function" and root.name in self._functions_elsewhere
            return home.scope if home.is_for(root.name) and not is_elsewhere else scope
        if isinstance(root, Typed):
            home = self._known.get(scope) or self._known.setdefault(scope, self._found(scope))
            return home.scope if all(map(home.is_for, _WORDS.findall(root.type))) else scope
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
        stay = _Home(scope, scope)
        names = [self._reserved]
        outermost = None
        around = [*unit.around(scope)]
        if unit.receivers or (around and is_class(around[0])):
            return stay
        for one in around:
            if not self._is_plain(one):
                return stay
            if is_class(one) and (policy.has_implicit_members or one.kind == "module"):
                return _Home(one.id, self._of_this(around, scope), (*names, self._tested(one.id)))
            names.append(self._introduced(one))
            outermost = one
        if policy.sharing == "included" and outermost is not None and spaces.space_of(unit, outermost):
            return stay
        return _Home(FILE, self._of_this(around, scope), (*names, self._tested(FILE)))

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

    def _introduced(self, around: Definition) -> frozenset[str]:
        unit = self.unit
        if around.id not in self._names:
            inside = unit.children.get(around.qualified, ())
            self._names[around.id] = frozenset(
                {
                    *chain.from_iterable((name, _root(name)) for name in unit.binds.get(around.id, ())),
                    *unit.taken.get(around.id, ()),
                    *(name for name, _ in unit.generics.get(around.id, ())),
                    *inside,
                    *((f"${name}" for name in inside) if unit.policy.has_marked_variables else ()),
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
        return frozenset(_root(name) for name in self.unit.binds.get(scope, ()) if name.startswith("is "))

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
            takes = self.unit.takes
            is_odd = any(takes(one.id, policy.class_name) for one in functions)
            is_odd |= any(takes(one.id, policy.self_name) for one in inner)
            return scope if is_odd or outer else cls.id
        if policy.has_prototypes and any(one.kind == "method" for one in functions[:-1]):
            return scope
        return cls.id if policy.has_prototypes or policy.has_implicit_members else scope


def _root(name: str) -> str:
    """The first name of what is tested or assigned."""
    return name.removeprefix("is ").lstrip(".:<*&").partition(".")[0].partition("[")[0]
