"""What `this`, `super` and the names of the class itself stand for."""

from collections.abc import Sequence
from itertools import dropwhile

from docindex_dagster.callgraph.ir import FILE, Definition
from docindex_dagster.callgraph.nesting import FUNCTIONS
from docindex_dagster.callgraph.offers import is_class
from docindex_dagster.callgraph.resolver.classes import members
from docindex_dagster.callgraph.resolver.hierarchy import (
    ancestors,
    bases_of_unnamed,
    class_around,
    derived_classes,
    function_around,
)
from docindex_dagster.callgraph.resolver.queries import PATH_WORDS, Queries
from docindex_dagster.callgraph.resolver.values import Value, Values
from docindex_dagster.callgraph.units import Unit


def of_itself(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:  # noqa: PLR0911 one a word
    """What a name stands for by which a class or object names itself; None of any other name."""
    rules = unit.rules
    if name in PATH_WORDS and rules.has_module_paths:
        owner = q.owner(unit, scope) if name == "this" else None
        return [owner.as_kind("object")] if owner else q.path_word(unit, scope, name)
    if name == "this":
        return _this(q, unit, scope)
    if name == "super":
        return _inherited_method(q, unit, scope) if rules.has_method_super else _super(q, unit, scope)
    if name in rules.selves:
        owner = q.owner(unit, scope)
        return [owner] if owner else ()
    if name == "class" and rules.has_prototypes:
        return _unnamed_class(unit, scope)
    if name in rules.makers and rules.has_implicit_members and (cls := class_around(unit, scope)):
        return [Value("class", unit.path, cls.id)]
    return None


def _this(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:  # noqa: PLR0911 one a way to write it
    """What a class, a constructor or a literal calls `this`."""
    rules = unit.rules
    if rules.has_file_types:
        return _container(unit, scope)
    if rules.has_tables:
        return _table(q, unit, scope)
    if (receiver := _receiver(q, unit, scope)) is not None:
        return receiver
    if rules.self_name:
        return _by_parameter(q, unit, scope)
    if not rules.has_prototypes:
        return _object_around(q, unit, scope)
    holder, is_literal = unit.holder(scope)
    if is_literal:
        owner = unit.class_around(scope)  # that of an arrow function in it
        of_class = [Value("object", unit.path, owner.id)] if owner else []
        return [Value("literal", unit.path, holder), *of_class]
    return [Value("object", unit.path, holder)] if holder in unit.definitions else ()


def _container(unit: Unit, scope: str) -> Sequence[Value]:
    """The type around a place: a struct, what a function gives that has methods, or the file."""
    for around in unit.around(scope):
        if is_class(around):
            return [Value("object", unit.path, around.id)]
        if around.kind == "function" and is_type_function(unit, around):
            return [Value("function", unit.path, around.id)]
    return [Value("module", unit.path, "")]


def is_type_function(unit: Unit, function: Definition) -> bool:
    """Whether a function gives a type, which is written in it."""
    inside = unit.children.get(function.qualified, {})
    return any(one.kind == "method" for some in inside.values() for one in some)


def _table(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """What `self` is where it is a name as any other, which methods are given: a variable, or the table around."""
    for around in unit.around(scope):
        if around.kind in FUNCTIONS:
            if unit.binds(around.id, "this"):
                return q.bound(unit, around.id, f"{around.qualified}.self", "this")
            takes = unit.takes(around.id, "self")
            if takes or around.kind == "method":
                given = _object_around(q, unit, around.id)
                return given or (q.parameter(unit, around, "self") if takes else ())
    return q.bound(unit, FILE, "self", "this")


def _receiver(q: Queries, unit: Unit, scope: str) -> list[Value] | None:
    """What `this` is in a function that is added to a type."""
    for around in unit.around(scope) if unit.rules.extends_receiver and unit.receivers else ():
        if is_class(around):
            return None
        if around.id in unit.receivers:
            return q.typed(unit, around.id, unit.receivers[around.id], None)
    return None


def _object_around(q: Queries, unit: Unit, scope: str) -> list[Value]:
    owner = q.owner(unit, scope)
    return [owner.as_kind("object")] if owner else []


def _by_parameter(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """The object, or class, that a method is given; what a function outside of a class declares its like to be."""
    rules = unit.rules
    for around in unit.around(scope):
        name = next((one for one in (rules.class_name, rules.self_name) if unit.takes(around.id, one)), None)
        if name is not None:
            is_method = around.parent in unit.definitions and is_class(unit.definitions[around.parent])
            if not is_method and (declared := q.parameter(unit, around, name)):
                return declared
            owner = q.owner(unit, scope)
            return [owner.as_kind("class" if name == rules.class_name else "object")] if owner else []
    return _object_around(q, unit, scope)


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


def _unnamed_class(unit: Unit, scope: str) -> Values:
    """The class without a name that a function gives, whose methods are the function's."""
    function = function_around(unit, scope)
    return (Value("literal", unit.path, function.qualified),) if function else ()
