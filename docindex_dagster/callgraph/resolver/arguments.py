"""Values of parameters: declared types, arguments of callers, and arguments passed to callbacks."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.resolver import builtins
from docindex_dagster.callgraph.resolver.hierarchy import function_around
from docindex_dagster.callgraph.resolver.queries import MOST_CALLERS, Queries, argument_at
from docindex_dagster.callgraph.resolver.types import is_open, may_be_function
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    collection,
    distinct,
    found_by,
    functions,
)
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_FUNCTION_TYPES = frozenset({"fun", "Action", "Func", "Predicate", "Consumer", "Function", "BiConsumer", "BiFunction"})


def callback_argument(q: Queries, unit: Unit, scope: str, wanted: ir.CallbackArgument) -> list[Value]:
    """Return the values that a function passes to its callback."""
    if wanted.argument == ir.ANY:
        return [
            found
            for value in q.callees(unit, scope, wanted.of)
            for found in _for_last_parameter(q, value, wanted.position)
        ]
    values = q.values(unit, scope, wanted.of)
    return [found for value in values for found in to_callback(q, value, wanted.argument, wanted.position)]


def _for_last_parameter(q: Queries, value: Value, position: int) -> Sequence[Value]:
    """Return the values passed to the callback in the last parameter, by its declared type."""
    parameters = q.unit(value.path).parameters.get(value.name, ()) if value.kind in {"function", "class"} else ()
    declared = parameters[-1].value if parameters else None
    if not isinstance(declared, ir.Instance) or declared.type.name not in _FUNCTION_TYPES:
        return ()
    at = position if declared.type.name == "fun" else position - 1
    types = declared.type.arguments[at : at + 1] if at >= 0 else ()
    return [one for written in types for one in q.typed(q.unit(value.path), value.name, written, None)]


def to_callback(q: Queries, value: Value, argument: int, position: int) -> Values:
    """Return the values that a function passes at a position to one of its callback arguments."""
    if value.kind == "function":
        return tuple(found_by(_passed(q, value, argument, position), Resolution.ARGUMENT))
    if value.kind == "external" and value.held and builtins.gives_elements(value.name, position):
        return tuple(found_by(value.held, Resolution.ELEMENT))
    return ()


def _passed(q: Queries, value: Value, argument: int, position: int) -> Iterator[Value]:
    unit = q.unit(value.path)
    names, rules = _callback_names(q, value, argument), unit.rules
    for call in q.program.calls_in(unit, value.name):
        callee, arguments = call.callee, call.arguments
        is_method = isinstance(callee, ir.Attribute) and callee.name in rules.call_methods and _name(callee.of) in names
        if is_method or (isinstance(callee, ir.Name) and callee.text in names and position < len(arguments)):
            at = position + (is_method and rules.has_prototypes)
            yield from q.each(unit, call.scope, [one.value for one in arguments[at : at + 1]])
        else:
            for at, one in enumerate(arguments):
                if not one.name and _name(one.value) in names:
                    yield from q.values(unit, call.scope, ir.CallbackArgument(callee, _number(one, at), position))


def _callback_names(q: Queries, function: Value, argument: int) -> Sequence[str]:
    """Return the names that a function uses to call a callback argument."""
    parameters = q.parameters(function)
    if argument == ir.BLOCK:
        return ["yield", *(one.name for one in parameters if one.kind == "block")]
    is_callback = argument < len(parameters) and parameters[argument].kind != "block"
    return [parameters[argument].name] if is_callback else []


def _name(expression: ir.Expression) -> str:
    return expression.text if isinstance(expression, (ir.Name, ir.NameOrCall)) else ""


def _number(argument: ir.Argument, at: int) -> int:
    """Return the number that identifies a callback argument."""
    return ir.BLOCK if argument.is_block else min(at, ir.LAST_ARGUMENT)


def parameter(q: Queries, unit: Unit, function: ir.Definition, name: str) -> Values:
    """Return the values of a parameter."""
    parameters = [one for one in unit.parameters[function.id] if one.name == name]
    declared = [one.value for one in parameters]
    target = Value("function", unit.path, function.id)
    found: list[Value] = []
    for expression in declared:
        found += q.values(unit, function.id if isinstance(expression, ir.Instance) else function.parent, expression)
    hooks = unit.rules.hooks
    if not found and hooks.injected is not None and (source := hooks.injected(q, unit, function, name)):
        return tuple(found_by(q.returned(source), Resolution.ARGUMENT))
    is_rest = unit.rules.has_namespaces and any(one.kind == "rest" for one in parameters)
    if is_rest and any(value.kind == "object" for value in found):
        return (collection(distinct(found), Resolution.RECEIVER),)
    is_declared = any(isinstance(expression, ir.Instance) for expression in declared)
    if not is_declared:
        wanted = _by_literal(q, unit, function, name) if unit.rules.has_prototypes else ()
        return wanted or (*found, *_by_callers(q, target, name))
    is_closed = any(value.kind != "external object" and not is_open(q, value) for value in found)
    if is_closed:
        may_be_given = hooks.decorated is not None and may_be_function(q, found)
    elif unit.rules.separates_kinds:
        may_be_given = not (isinstance(declared[0], ir.Instance) and builtins.is_value(declared[0].type.name))
    else:
        return (*found, *_by_callers(q, target, name))
    return (*found, *(_given_functions(q, target, name) if may_be_given else ()))


def _by_callers(q: Queries, target: Value, name: str) -> Iterator[Value]:
    """Yield the arguments of callers, and those of functions that receive the function as a callback."""
    at, kind = _position(q, target, name)
    if kind == "":
        yield from q.passed_arguments(target, at, name)
        yield from _by_takers(q, target, at)
    elif kind == "rest":
        yield collection(
            distinct(value for one in range(at, at + MOST_VALUES) for value in q.passed_arguments(target, one, name))
        )


def _given_functions(q: Queries, target: Value, name: str) -> Sequence[Value]:
    """Return the functions that callers pass for a parameter."""
    at, kind = _position(q, target, name)
    return functions(q.passed_arguments(target, at, name)) if kind == "" else ()


def _position(q: Queries, function: Value, name: str) -> tuple[int, str | None]:
    """Return the position and kind of a parameter, preferring a plain one over a rest one; (0, None) if not found."""
    named = [
        (at, one.kind) for at, one in enumerate(q.parameters(function)) if one.name == name and one.kind != "block"
    ]
    return min(named, key=itemgetter(1), default=(0, None))


def _by_literal(q: Queries, unit: Unit, function: ir.Definition, name: str) -> Values:
    """Return the values of a parameter by the declared type of the literal that contains its function."""
    scope, _, literal = function.parent.rpartition(".")
    if not literal or function.parent in unit.definitions:
        return ()
    at = [one.name for one in unit.parameters[function.id]].index(name)
    declared = [one for one in unit.bindings_of(scope, literal) if isinstance(one, ir.Instance)]
    objects = [value for value in q.each(unit, scope, declared) if value.kind == "object"]
    found: list[Value] = []
    for method in functions(q.all_members(objects, function.name)):
        for one in q.parameters(method)[at : at + 1]:
            if isinstance(one.value, ir.Instance):
                found += q.typed(q.unit(method.path), method.name, one.value.type, None)
    return tuple(value for value in found if value.kind == "object")


def _by_takers(q: Queries, target: Value, position: int) -> Values:
    return q.table.asking_callers((), _from_takers, q, target, position)


def _from_takers(q: Queries, target: Value, position: int) -> Values:
    """Return the values that other functions pass to the function when they receive it as a callback."""
    found: list[Value] = []
    name = q.definition(target).name
    for other, (call, at) in q.in_files(q.program.takers, q.unit(target.path), name, MOST_CALLERS):
        argument = call.arguments[at]
        if any(value.is_same(target) for value in q.values(other, call.scope, argument.value)):
            found += q.values(other, call.scope, ir.CallbackArgument(call.callee, _number(argument, at), position))
    return distinct(found)


def passed_arguments(q: Queries, target: Value, position: int, name: str) -> Values:
    """Return the arguments that callers pass for a parameter."""
    return q.table.asking_callers((), _from_callers, q, target, position, name)


def _from_callers(q: Queries, target: Value, position: int, name: str) -> Values:
    unit = q.unit(target.path)
    definition = unit.definitions[target.name]
    called = definition.name
    owner = q.owner(unit, target.name)
    table = owner if owner is not None and unit.rules.has_tables and called in unit.rules.constructors else None
    if table is None and owner is not None and _is_constructor(q, definition, owner, unit.rules):
        target, called = owner, q.definition(owner).name
    exported = (other for other, of in unit.exports.items() if ir.Name(called) in of and other != called)
    names = [called, *([q.definition(table).name] if table else []), *exported]
    callers = [one for known in names for one in q.program.callers.get(unit.rules.family, known, MOST_CALLERS)]
    found: list[Value] = []
    for path, call in callers[:MOST_CALLERS]:
        other = q.unit(path)
        if isinstance(call, ir.Decorator):
            passed = _to_decorator(q, target, other, call) if position == 0 else ()
        else:
            passed = _from_caller(q, target, other, call, position, name, table)
        found += (one for one in passed if unit.is_test or not _is_of_test(q, one))
    return distinct(found)


def _to_decorator(q: Queries, target: Value, other: Unit, one: ir.Decorator) -> Sequence[Value]:
    """Return the decorated function if it is passed directly: the decorator has no arguments of its own."""
    is_passed = not isinstance(one.value, ir.Call) and _calls(q, other, one, target)
    return [Value("function", other.path, one.decorated, Resolution.ARGUMENT)] if is_passed else ()


def _from_caller(  # noqa: PLR0917 a call and a parameter
    q: Queries, target: Value, other: Unit, call: ir.CallSite, position: int, name: str, table: Value | None
) -> Sequence[Value]:
    """Return the values that a call passes for a parameter of a function; `table` is the table it constructs."""
    has_labels = q.rules(target).has_labels
    argument = argument_at(call.arguments, position, name.removeprefix("$"), has_labels=has_labels)
    if argument is None:
        is_partial = other.rules.is_curried and position >= len(call.arguments)
        return _from_callers_of_result(q, target, other, call, position) if is_partial else ()
    is_construction = table is not None and any(one.is_same(table) for one in q.values(other, call.scope, call.callee))
    if not is_construction and not _calls(q, other, call, target):
        return ()
    read = q.read if other.rules.has_bare_calls else q.values
    return found_by(read(other, call.scope, argument.value), Resolution.ARGUMENT)


def _calls(q: Queries, unit: Unit, call: ir.CallSite | ir.Decorator, target: Value) -> bool:
    """Return whether a call reaches a function or another clause of it."""
    return any(_is_called(q, value, target) for value in q.table.without_callers(q.targets, unit, call))


def _from_callers_of_result(
    q: Queries, target: Value, other: Unit, call: ir.CallSite, position: int
) -> Sequence[Value]:
    """Return the arguments that callers pass to a partially applied function returned by the enclosing function."""
    around = function_around(other, call.scope)
    applied: ir.Expression = call.callee
    for _ in call.arguments:
        applied = ir.Call(applied)
    if around is None or applied not in other.returns.get(around.id, ()):
        return ()
    reached = q.table.without_callers(q.targets, other, call)
    at = position - len(call.arguments) + len(other.parameters.get(around.id, ()))
    is_reached = any(value.is_same(target) for value in reached)
    return q.passed_arguments(Value("function", other.path, around.id), at, "") if is_reached else ()


def _is_called(q: Queries, value: Value, target: Value) -> bool:
    """Return whether a reached value is a function or another clause of it."""
    is_clause = q.rules(target).hooks.is_clause
    return value.is_same(target) or (is_clause is not None and is_clause(q, value, target))


def _is_of_test(q: Queries, value: Value) -> bool:
    """Return whether a function or class is defined in a test; tested code calls it only there."""
    return value.path in q.program.units and q.unit(value.path).is_test


def _is_constructor(q: Queries, definition: ir.Definition, owner: Value, rules: Rules) -> bool:
    """Return whether a function runs when an object of a class is created."""
    has_its_name = definition.name == q.definition(owner).name
    return definition.name in rules.constructors or (
        has_its_name and (rules.separates_kinds or rules.has_named_constructors)
    )
