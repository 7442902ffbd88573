"""What `this`, `super` and the names of the class itself stand for."""

from collections.abc import Sequence
from itertools import dropwhile

from docindex_dagster.callgraph.resolver.classes import members
from docindex_dagster.callgraph.resolver.hierarchy import (
    ancestors,
    bases_of_unnamed,
    class_around,
    derived_classes,
    function_around,
)
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import Value
from docindex_dagster.callgraph.units import Unit


def of_itself(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:
    """What a name stands for by which a class or object names itself; None of any other name."""
    rules = unit.rules
    if (word := rules.hooks.itself) is not None and (found := word(q, unit, scope, name)) is not None:
        return found
    if name == "this":
        return _this(q, unit, scope)
    if name == "super":
        return _inherited_method(q, unit, scope) if rules.has_method_super else _super(q, unit, scope)
    if name in rules.selves:
        owner = q.owner(unit, scope)
        return [owner] if owner else ()
    if name in rules.makers and rules.has_implicit_members and (cls := class_around(unit, scope)):
        return [Value("class", unit.path, cls.id)]
    return None


def _this(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """What a place calls `this`: what its language says, else the object of the class around it."""
    hook = unit.rules.hooks.this
    found = hook(q, unit, scope) if hook is not None else None
    return _object_around(q, unit, scope) if found is None else found


def _object_around(q: Queries, unit: Unit, scope: str) -> list[Value]:
    owner = q.owner(unit, scope)
    return [owner.as_kind("object")] if owner else []


def _super(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    owner = q.owner(unit, scope)
    if owner is not None:
        return [owner.as_kind("object" if _is_of_constant(unit, scope) else "parent")]
    bases = bases_of_unnamed(q, unit, unit.holder(scope)[0]) if unit.rules.has_prototypes else ()
    return [base.as_kind("object") for base in bases]


def _is_of_constant(unit: Unit, scope: str) -> bool:
    """Whether a method is written in the body of a constant of an enumeration."""
    method = next(iter(unit.around(scope)), None)
    enum = unit.definitions.get(method.parent.rpartition(".")[0]) if method else None
    return method is not None and method.parent not in unit.definitions and enum is not None and enum.kind == "enum"


def _inherited_method(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """The method that the one around a place overrides."""
    method, cls = function_around(unit, scope), class_around(unit, scope)
    if method is None or cls is None:
        return ()
    first, *others = ancestors(q, Value("class" if unit.rules.has_function_names else "object", unit.path, cls.id))
    found = members(q, first, others, method.name)
    return found or [one for host in derived_classes(q, first) for one in _behind(q, host, first, method.name)]


def _behind(q: Queries, host: Value, module: Value, name: str) -> Sequence[Value]:
    """The method that a class inherits behind one of its modules."""
    above = [*dropwhile(lambda one: not one.is_same(module), ancestors(q, host))]
    return members(q, host, above[1:], name) if above else ()
