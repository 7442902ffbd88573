"""Assembly of the resolver from its modules.

The resolver follows a name through enclosing scopes, imports, declared and inferred types, class hierarchies, return
values and the arguments of callers. Anything else stays unresolved: a wrong edge is worse than no edge.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.languages.lua import INDEX
from docindex_dagster.callgraph.program import Program
from docindex_dagster.callgraph.resolver import (
    arguments,
    calls,
    classes,
    header_visibility,
    hierarchy,
    imports,
    members,
    namespaces,
    results,
    scopes,
    types,
)
from docindex_dagster.callgraph.resolver.arguments import callback_argument
from docindex_dagster.callgraph.resolver.imports import of_module
from docindex_dagster.callgraph.resolver.members import tested
from docindex_dagster.callgraph.resolver.namespaces import implicit
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.results import new, result
from docindex_dagster.callgraph.resolver.scopes import function_named, lookup, name_or_call
from docindex_dagster.callgraph.resolver.types import typed
from docindex_dagster.callgraph.resolver.values import Value, Values, collection, distinct, external_object, functions
from docindex_dagster.callgraph.tabling import Table
from docindex_dagster.callgraph.units import Unit

# The queries that each module answers, with functions of the same names.
_ANSWERS: Mapping[ModuleType, str] = {
    arguments: "passed_arguments parameter to_callback",
    calls: "implementations may_reach reason targets",
    classes: "apply_targets as_member",
    hierarchy: "ancestor_names bases derived direct_bases impls owner parts",
    imports: (
        "constructed_classes import_targets in_module locally_imported packages path_word provided_names shared visible"
    ),
    members: "member members_of",
    namespaces: "extensions in_namespace of_namespace",
    results: "callable_of elements result returned",
    scopes: "bound defined top",
    header_visibility: (
        "classes_at included_types resolve_full_name template_parameters types_named visible_definitions"
    ),
    types: "type_names typed",
}


def resolver(program: Program, table: Table) -> Queries:
    """Return a resolver for the files of a program; it tables its answers."""
    q = Queries(program, table)
    for module, names in _ANSWERS.items():
        for name in names.split():
            q.answer(name, partial(getattr(module, name), q))
    q.answer("values", partial(values, q), partial(outermost, q))
    q.answer("possible_targets", partial(calls.possible_targets, q), partial(calls.outermost, q))
    return q


def outermost(q: Queries, unit: Unit, scope: str, expression: ir.Expression) -> tuple[Unit, str, ir.Expression]:
    """Move an expression to the outermost scope in which it has the same meaning."""
    return unit, q.hoisted(unit, scope, expression), expression


def values(q: Queries, unit: Unit, scope: str, expression: ir.Expression) -> Values:
    """Return the values of an expression in a scope; empty if it cannot be resolved."""
    rule = _RULES.get(type(expression))
    return distinct(rule(q, unit, scope, expression)) if rule is not None else ()


def _attribute(q: Queries, unit: Unit, scope: str, expression: ir.Attribute) -> Iterable[Value]:
    of, name, rules = expression.of, expression.name, unit.rules
    if (hook := rules.hooks.attribute) is not None and (own := hook(q, unit, of, name)) is not None:
        return own
    owners = q.read(unit, scope, of)
    if rules.separates_kinds and name in rules.call_methods:
        owners = (*owners, *_functions_held(q, unit, scope, of))
    return q.members_of(unit, scope, owners, name) or tested(q, unit, scope, of, name)


def _functions_held(q: Queries, unit: Unit, scope: str, of: ir.Expression) -> Iterable[Value]:
    """Return the functions held by a variable, for access to a method that calls them."""
    written = of.text if isinstance(of, ir.Name) else of.name if isinstance(of, ir.Attribute) else ""
    return (value for value in functions(q.values(unit, scope, of)) if q.definition(value).name != written)


def _call(q: Queries, unit: Unit, scope: str, expression: ir.Call) -> Iterable[Value]:
    callee = expression.callee
    if isinstance(callee, ir.Attribute) and callee.name in unit.rules.bind_methods:
        return functions(q.values(unit, scope, callee.of))
    if isinstance(callee, ir.Attribute) and callee.name in unit.rules.peek_attributes:
        return q.values(unit, scope, callee)
    return [found for value in q.callees(unit, scope, callee) for found in result(q, unit, value)]


def _element(q: Queries, unit: Unit, scope: str, expression: ir.Element) -> Iterable[Value]:
    collections = q.read(unit, scope, expression.of)
    is_optional = unit.rules.has_optionals and expression.of is not ir.THIS
    return [found for value in collections for found in q.elements(value) or ([value] if is_optional else [])]


def _literal(q: Queries, unit: Unit, _: str, expression: ir.Literal) -> Iterable[Value]:
    if unit.rules.has_open_classes and q.program.named.has(unit.rules.family, expression.type):
        return q.values(unit, ir.FILE, ir.Instance(ir.TypeRef(expression.type)))
    return [external_object(expression.type)]


def _record(q: Queries, unit: Unit, scope: str, expression: ir.Record) -> Iterable[Value]:
    index = [part for name, part in expression.fields if name == INDEX] if unit.rules.has_tables else []
    return [Value("record", unit.path, scope, record=expression), *q.each(unit, scope, index)]


def _function(q: Queries, unit: Unit, scope: str, expression: ir.Function) -> Iterable[Value]:
    if unit.rules.has_function_names:
        return q.values(unit, scope, ir.Name(expression.name, "function"))
    return function_named(unit, scope, expression.name)


_RULES: dict[type, Callable[[Queries, Unit, str, Any], Iterable[Value]]] = {
    ir.Name: lookup,
    ir.NameOrCall: lambda q, unit, scope, one: name_or_call(q, unit, scope, one.text),
    ir.Implicit: implicit,
    ir.Attribute: _attribute,
    ir.Call: _call,
    ir.New: lambda q, unit, scope, one: new(q, unit, scope, one.cls),
    ir.Element: _element,
    ir.Instance: lambda q, unit, scope, one: typed(q, unit, scope, one.type),
    ir.Literal: _literal,
    ir.Union: lambda q, unit, scope, one: q.each(unit, scope, one.parts),
    ir.Collection: lambda q, unit, scope, one: [collection(distinct(q.each(unit, scope, one.parts)))],
    ir.Record: _record,
    ir.Function: _function,
    ir.CallbackArgument: callback_argument,
    ir.Module: lambda q, unit, _, one: of_module(q, unit, one.name),
}
