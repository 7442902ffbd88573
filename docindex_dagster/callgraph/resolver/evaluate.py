"""What an expression stands for: one rule a form of expression."""

from collections.abc import Callable, Iterable
from typing import Any

from docindex_dagster.callgraph.ir import (
    FILE,
    THIS,
    Attribute,
    Call,
    CallbackArgument,
    Collection,
    Element,
    Expression,
    Function,
    Implicit,
    Instance,
    Literal,
    Module,
    Name,
    NameOrCall,
    New,
    Record,
    TypeRef,
    Union,
)
from docindex_dagster.callgraph.languages.lua_tables import INDEX
from docindex_dagster.callgraph.resolver.arguments import callback_argument
from docindex_dagster.callgraph.resolver.imports import of_module, shared
from docindex_dagster.callgraph.resolver.members import tested
from docindex_dagster.callgraph.resolver.namespaces import implicit
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.results import new, result
from docindex_dagster.callgraph.resolver.scopes import function_named, lookup, name_or_call
from docindex_dagster.callgraph.resolver.types import typed
from docindex_dagster.callgraph.resolver.values import Value, Values, collection, distinct, external_object
from docindex_dagster.callgraph.units import Unit


def evaluated(q: Queries, unit: Unit, scope: str, expression: Expression) -> Values:
    """What an expression stands for at a place; nothing where it is unknown."""
    rule = _RULES.get(type(expression))
    return distinct(rule(q, unit, scope, expression)) if rule is not None else ()


def _attribute(q: Queries, unit: Unit, scope: str, expression: Attribute) -> Iterable[Value]:
    of, name, rules = expression.of, expression.name, unit.rules
    if rules.globals_name and of == Name(rules.globals_name):
        return [*shared(q, unit, name)] or q.values(unit, FILE, Name(name))
    values = q.read(unit, scope, of)
    if rules.separates_kinds and name in rules.callers:
        values = (*values, *_functions_held(q, unit, scope, of))
    return q.members_of(unit, scope, values, name) or tested(q, unit, scope, of, name)


def _functions_held(q: Queries, unit: Unit, scope: str, of: Expression) -> Iterable[Value]:
    """The functions that a variable holds, where a method is read that calls them."""
    written = of.text if isinstance(of, Name) else of.name if isinstance(of, Attribute) else ""
    functions = (value for value in q.values(unit, scope, of) if value.kind == "function")
    return (value for value in functions if q.definition(value).name != written)


def _call(q: Queries, unit: Unit, scope: str, expression: Call) -> Iterable[Value]:
    callee = expression.callee
    if isinstance(callee, Attribute) and callee.name in unit.rules.binders:
        return [value for value in q.values(unit, scope, callee.of) if value.kind == "function"]
    if isinstance(callee, Attribute) and callee.name in unit.rules.peeking:
        return q.values(unit, scope, callee)
    return [found for value in q.callees(unit, scope, callee) for found in result(q, unit, value)]


def _new(q: Queries, unit: Unit, scope: str, expression: New) -> Iterable[Value]:
    return new(q, unit, scope, expression.cls)


def _element(q: Queries, unit: Unit, scope: str, expression: Element) -> Iterable[Value]:
    values = q.read(unit, scope, expression.of)
    is_optional = unit.rules.has_optionals and expression.of is not THIS
    return [found for value in values for found in q.elements(value) or ([value] if is_optional else [])]


def _instance(q: Queries, unit: Unit, scope: str, expression: Instance) -> Iterable[Value]:
    return typed(q, unit, scope, expression.type)


def _literal(q: Queries, unit: Unit, _: str, expression: Literal) -> Iterable[Value]:
    rules = unit.rules
    if rules.has_open_classes and q.program.named.get(rules.family, expression.type):
        return q.values(unit, FILE, Instance(TypeRef(expression.type)))
    return [external_object(expression.type)]


def _union(q: Queries, unit: Unit, scope: str, expression: Union) -> Iterable[Value]:
    return [value for part in expression.parts for value in q.values(unit, scope, part)]


def _collection(q: Queries, unit: Unit, scope: str, expression: Collection) -> Iterable[Value]:
    return [collection(distinct(value for part in expression.parts for value in q.values(unit, scope, part)))]


def _record(q: Queries, unit: Unit, scope: str, expression: Record) -> Iterable[Value]:
    record = Value("record", unit.path, scope, record=expression)
    index = [part for name, part in expression.fields if name == INDEX] if unit.rules.has_tables else []
    return [record, *(value for part in index for value in q.values(unit, scope, part))]


def _function(q: Queries, unit: Unit, scope: str, expression: Function) -> Iterable[Value]:
    if unit.rules.has_function_names:
        return q.values(unit, scope, Name(expression.name, "function"))
    return function_named(unit, scope, expression.name)


def _module(q: Queries, unit: Unit, _: str, expression: Module) -> Iterable[Value]:
    return of_module(q, unit, expression.name)


def _name_or_call(q: Queries, unit: Unit, scope: str, expression: NameOrCall) -> Iterable[Value]:
    return name_or_call(q, unit, scope, expression.text)


_RULES: dict[type, Callable[[Queries, Unit, str, Any], Iterable[Value]]] = {
    Name: lookup,
    NameOrCall: _name_or_call,
    Implicit: implicit,
    Attribute: _attribute,
    Call: _call,
    New: _new,
    Element: _element,
    Instance: _instance,
    Literal: _literal,
    Union: _union,
    Collection: _collection,
    Record: _record,
    Function: _function,
    CallbackArgument: callback_argument,
    Module: _module,
}
