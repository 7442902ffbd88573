"""Overload resolution by the number and types of arguments."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from docindex_dagster.callgraph.ir import Argument, CallSite, Decorator, Instance, Literal, Parameter, last_name
from docindex_dagster.callgraph.resolver.builtins import is_same_type, is_value
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, parts_of
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import Resolution, Value, known
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit

_TEXTS = "str String string CharSequence Object std.string char string_view std.string_view any"
_INTEGERS = "int Int long Long Integer short number float double Double size_t any"
_LITERALS = {
    "str": frozenset(_TEXTS.split()),
    "int": frozenset(_INTEGERS.split()),
    "float": frozenset({"float", "double", "Double", "Float", "number", "any"}),
    "bool": frozenset({"bool", "Boolean", "boolean", "any"}),
}
_FUNCTIONS = frozenset(
    {"fun", "Func", "Action", "Function", "Consumer", "Supplier", "Predicate", "Runnable", "Callable"}
)
_ANYTHING = frozenset({"Object", "object", "Any", "dynamic"})
_ALIASES = {
    "boolean": "bool",
    "Int": "int",
    "Double": "float",
    "double": "float",
    "Float": "float",
    "String": "str",
    "string": "str",
    "Number": "int",
    "Boolean": "bool",
    "number": "int",
}
_NUMBERS = ("byte", "short", "char", "int", "long", "float", "double", "decimal", "number")
_SAME_NUMBERS = {"integer": "int", "int32": "int", "int64": "long", "single": "float"}
_DECLARED = frozenset({Resolution.FILE, Resolution.IMPORT})
_MOST_ARGUMENTS = 8  # for a single variadic parameter
_COUNT_PENALTY = 10.0  # a wrong number of arguments outweighs all types


def arguments_of(call: CallSite | Decorator) -> Sequence[Argument]:
    """Return the arguments of a call; a decorator has none."""
    return call.arguments if isinstance(call, CallSite) else ()


def has_labels_of(q: Queries, function: Value, call: CallSite | Decorator) -> bool:
    """Return whether a function has the argument labels of a call, in order; always True if called by another name."""
    if function.kind != "function" or not isinstance(call, CallSite):
        return True
    definition, rules = q.definition(function), q.rules(function)
    if last_name(call.callee) != definition.name and definition.name not in rules.runs:
        return True
    parameters = q.parameters(function)
    labels = iter([one.label or one.name for one in parameters for _ in range(_MOST_ARGUMENTS if one.kind else 1)])
    closure = Literal("fun")
    return all(argument.value is closure or (argument.name or "_") in labels for argument in call.arguments)


def best_overloads(q: Queries, unit: Unit, call: CallSite | Decorator, found: Iterable[Value]) -> list[Value]:
    """Drop the overloads that fit a call less well than another overload of the same function."""
    groups: dict[tuple[str, ...], list[Value]] = defaultdict(list)
    for value in found:
        groups[_group(q, unit, value)].append(value)
    chosen: list[Value] = []
    for group in groups.values():
        is_single = len(group) == 1 or not group[0].path
        chosen += group[:1] if is_single else _best(q, unit, call, group)
    return chosen


def _group(q: Queries, unit: Unit, value: Value) -> tuple[str, ...]:
    """Return a key shared by the overloads of a function."""
    if unit.rules.has_companions and value.kind in {"function", "class"}:
        definition = q.definition(value)
        if value.kind == "class" or definition.name == "apply":
            return (value.path, "apply", definition.qualified if value.kind == "class" else definition.parent)
    if unit.rules.separates_kinds and value.kind == "function":
        return (q.definition(value).name, *(part for one in value.held for part in (one.path, one.name)))
    name = value.name.partition("~")[0] if value.kind == "function" else value.name
    is_declared = unit.language == "cpp" and value.resolution in _DECLARED  # possibly in several headers
    return ("" if is_declared else value.path, name)


def _best(q: Queries, unit: Unit, call: CallSite | Decorator, group: Sequence[Value]) -> Sequence[Value]:
    """Return the best overload; none if several fit equally well and the call is ambiguous."""
    arguments, rules = arguments_of(call), unit.rules
    signatures = [_parameters(q, value) for value in group]
    fitting = [(value, one) for value, one in zip(group, signatures, strict=True) if len(one) == len(arguments)]
    fitting = fitting or [*zip(group, signatures, strict=True)]
    if len(fitting) > 1:
        read = q.read if rules.has_bare_calls else q.values

        @cache
        def values_of(at: int) -> Sequence[Value]:
            """Return the values of an argument."""
            return known(q.table.without_callers(read, unit, call.scope, arguments[at].value))

        literals = [_literal(one, rules) for one in arguments]
        scores = [_fit(q, literals, values_of, value, one, rules) for value, one in fitting]
        highest = max(scores)
        fitting = [item for item, score in zip(fitting, scores, strict=True) if score == highest]
    parents = {q.definition(value).parent for value, _ in fitting}
    types = {tuple([one.value for one in parameters]) for _, parameters in fitting}
    is_plain = not rules.separates_kinds or len(fitting) == 1 or len(parents) == len(fitting) or len(types) == 1
    return [fitting[0][0]] if is_plain else ()


def _literal(argument: Argument, rules: Rules) -> str:
    """Return the type of a literal argument; "" for any other argument."""
    if not isinstance(argument.value, Literal) or (argument.name and not rules.has_labels):
        return ""
    return _ALIASES.get(argument.value.type, argument.value.type)


def _fit(  # noqa: PLR0917 a call and a candidate
    q: Queries,
    literals: Sequence[str],
    values_of: Callable[[int], Sequence[Value]],
    value: Value,
    parameters: Sequence[Parameter],
    rules: Rules,
) -> float:
    """Return a score for how well a function fits a call, from the literals and other values passed as arguments."""
    missing = abs(len(literals) - len(parameters))
    score = -_COUNT_PENALTY - missing if missing else 0.0
    for at, (literal, parameter) in enumerate(zip(literals, parameters, strict=False)):
        declared = parameter.value
        if not isinstance(declared, Instance):
            continue
        wanted = declared.type.name
        if literal:
            score += max(_literal_fit(literal, name) for name in (wanted, *_aliased(q, value, declared)))
        elif not values_of(at):  # an instance of a class in the program would be known
            score += 0.1 if is_value(wanted) or _is_type_parameter(wanted) else 0
        else:
            for typed in values_of(at):
                is_accepted = not rules.separates_kinds and _accepts(q, value, declared, typed)
                score += 1 if is_accepted else _type_fit(q, typed, wanted)
    return score


def _parameters(q: Queries, value: Value) -> Sequence[Parameter]:
    """Return the parameters of a function, or of the first part of a class that has parameters."""
    if value.kind != "class" or not q.rules(value).has_companions:
        return q.parameters(value)
    several = (unit.parameters.get(definition.id, ()) for unit, definition in parts_of(q, value))
    return next(filter(None, several), ())


def _aliased(q: Queries, function: Value, declared: Instance) -> list[str]:
    """Return the names of the library types that a declared type is an alias of."""
    unit = q.unit(function.path)
    if function.kind != "function" or not unit.rules.has_pointers:
        return []
    known = q.values(unit, function.name, declared)
    return [one.name for one in known if one.kind == "external object" and not one.held]


def _literal_fit(literal: str, wanted: str) -> float:
    """Return a score for how well a literal fits a declared type."""
    if literal == "fun":
        return 1 if wanted in _FUNCTIONS else -1 if is_value(wanted) else 0
    if literal == "null":
        return 0
    if anything := _anything_fit(wanted):
        return anything
    score = 1.0 if wanted in _LITERALS.get(literal, {literal}) else _number_fit(literal, wanted) or -1
    return score + (0.5 if literal.lower() in wanted.lower() else 0)


def _type_fit(q: Queries, typed: Value, wanted: str) -> float:
    """Return a score for how well a value fits a declared type."""
    last = wanted.rpartition(".")[2]
    name = typed.name.rpartition(".")[2].partition("~")[0]
    if name == last:
        return 1
    if anything := _anything_fit(last):
        return anything
    if typed.kind == "object" and last in q.ancestor_names(typed):
        return 0.75
    if typed.kind == "collection" and is_same_type(name, last):
        return 1
    return (_number_fit(name, last) if typed.kind == "external object" else 0) or -0.5


def _anything_fit(wanted: str) -> float:
    """Return the score of any value for a declared type that accepts everything; 0 for other types."""
    return 0.25 if wanted in _ANYTHING else 0.3 if _is_type_parameter(wanted) else 0


def _is_type_parameter(name: str) -> bool:
    return len(name) == 1 and name.isupper()


def _number_fit(actual: str, wanted: str) -> float:
    """Return a score for passing a number where another number type is declared; 0 if it does not fit."""
    first, second = (_SAME_NUMBERS.get(name.lower(), name.lower()) for name in (actual, wanted))
    if first not in _NUMBERS or second not in _NUMBERS:
        return 0
    steps = _NUMBERS.index(second) - _NUMBERS.index(first)
    return 1.5 if steps == 0 else 1 - steps / 10 if steps > 0 else 0


def _accepts(q: Queries, function: Value, declared: Instance, value: Value) -> bool:
    """Return whether a value has the declared type of a parameter or a derived class of it."""
    if function.kind != "function":
        return False
    wanted = {(one.kind, one.path, one.name) for one in q.values(q.unit(function.path), function.name, declared)}
    classes = ancestors(q, value) if value.kind == "object" else (value,)
    return any((value.kind, one.path, one.name) in wanted for one in classes)
