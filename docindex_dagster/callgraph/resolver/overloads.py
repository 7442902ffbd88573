"""Which of the definitions of one name a call means, by the number and types of what it gives (overload resolution)."""

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
_MOST_GIVEN = 8  # arguments for one parameter
_NUMBER_MISSING = 10.0  # a wrong number of arguments weighs more than all types


def arguments_of(call: CallSite | Decorator) -> Sequence[Argument]:
    """What a call gives; a decorator has none of its own."""
    return call.arguments if isinstance(call, CallSite) else ()


def has_labels_of(q: Queries, function: Value, call: CallSite | Decorator) -> bool:
    """Whether a function has the labels of a call, in this order, where the call names it."""
    if function.kind != "function" or not isinstance(call, CallSite):
        return True
    definition, rules = q.definition(function), q.rules(function)
    if last_name(call.callee) != definition.name and definition.name not in rules.runs:
        return True
    taken = q.parameters(function)
    labels = iter([one.label or one.name for one in taken for _ in range(_MOST_GIVEN if one.kind else 1)])
    is_closure = Literal("fun")
    return all(given.value is is_closure or (given.name or "_") in labels for given in call.arguments)


def best_overloads(q: Queries, unit: Unit, call: CallSite | Decorator, found: Iterable[Value]) -> list[Value]:
    """The targets without those overloads that fit less well than another one."""
    groups: dict[tuple[str, ...], list[Value]] = defaultdict(list)
    for value in found:
        groups[_group(q, unit, value)].append(value)
    chosen: list[Value] = []
    for group in groups.values():
        is_one = len(group) == 1 or not group[0].path
        chosen += group[:1] if is_one else _best(q, unit, call, group)
    return chosen


def _group(q: Queries, unit: Unit, value: Value) -> tuple[str, ...]:
    """What overloads of one function have in common."""
    if unit.rules.has_companions and value.kind in {"function", "class"}:
        definition = q.definition(value)
        if value.kind == "class" or definition.name == "apply":
            return (value.path, "apply", definition.qualified if value.kind == "class" else definition.parent)
    if unit.rules.separates_kinds and value.kind == "function":
        return (q.definition(value).name, *(part for one in value.held for part in (one.path, one.name)))
    name = value.name.partition("~")[0] if value.kind == "function" else value.name
    is_declared = unit.language == "cpp" and value.resolution in _DECLARED  # in one of several headers
    return ("" if is_declared else value.path, name)


def _best(q: Queries, unit: Unit, call: CallSite | Decorator, group: Sequence[Value]) -> Sequence[Value]:
    """The overloads that fit best: none where there are several and nothing says which is meant."""
    given, rules = arguments_of(call), unit.rules
    taken = [_taken(q, value) for value in group]
    fitting = [(value, one) for value, one in zip(group, taken, strict=True) if len(one) == len(given)]
    fitting = fitting or [*zip(group, taken, strict=True)]
    if len(fitting) > 1:
        read = q.read if rules.has_bare_calls else q.values

        @cache
        def values_of(at: int) -> Sequence[Value]:
            """What an argument may be."""
            return known(q.table.without_callers(read, unit, call.scope, given[at].value))

        literals = [_literal(one, rules) for one in given]
        scores = [_fit(q, literals, values_of, value, one, rules) for value, one in fitting]
        highest = max(scores)
        fitting = [item for item, score in zip(fitting, scores, strict=True) if score == highest]
    parents = {q.definition(value).parent for value, _ in fitting}
    types = {tuple([one.value for one in parameters]) for _, parameters in fitting}
    is_plain = not rules.separates_kinds or len(fitting) == 1 or len(parents) == len(fitting) or len(types) == 1
    return [fitting[0][0]] if is_plain else ()


def _literal(given: Argument, rules: Rules) -> str:
    """The type of a literal; "" for anything else."""
    if not isinstance(given.value, Literal) or (given.name and not rules.has_labels):
        return ""
    return _ALIASES.get(given.value.type, given.value.type)


def _fit(  # noqa: PLR0917 a call and one of those that it may mean
    q: Queries,
    literals: Sequence[str],
    values_of: Callable[[int], Sequence[Value]],
    value: Value,
    taken: Sequence[Parameter],
    rules: Rules,
) -> float:
    """How well a function fits a call, by the literals that this gives, and what else it gives at a position."""
    missing = abs(len(literals) - len(taken))
    score = -_NUMBER_MISSING - missing if missing else 0.0
    for at, (literal, parameter) in enumerate(zip(literals, taken, strict=False)):
        declared = parameter.value
        if not isinstance(declared, Instance):
            continue
        wanted = declared.type.name
        if literal:
            score += max(_literal_fit(literal, name) for name in (wanted, *_aliased(q, value, declared)))
        elif not values_of(at):  # of a class of the program it would be known
            score += 0.1 if is_value(wanted) or _is_type_parameter(wanted) else 0
        else:
            for typed in values_of(at):
                is_taken = not rules.separates_kinds and _takes(q, value, declared, typed)
                score += 1 if is_taken else _type_fit(q, typed, wanted)
    return score


def _taken(q: Queries, value: Value) -> Sequence[Parameter]:
    """The parameters of a function; of a class, those of the part of it that has some."""
    if value.kind != "class" or not q.rules(value).has_companions:
        return q.parameters(value)
    several = (unit.parameters.get(definition.id, ()) for unit, definition in parts_of(q, value))
    return next(filter(None, several), ())


def _aliased(q: Queries, function: Value, declared: Instance) -> list[str]:
    """The types of the library for which the name of a type stands."""
    unit = q.unit(function.path)
    if function.kind != "function" or not unit.rules.has_pointers:
        return []
    known = q.values(unit, function.name, declared)
    return [one.name for one in known if one.kind == "external object" and not one.held]


def _literal_fit(literal: str, wanted: str) -> float:
    """How well a literal fits a declared type."""
    if literal == "fun":
        return 1 if wanted in _FUNCTIONS else -1 if is_value(wanted) else 0
    if literal == "null":
        return 0
    if anything := _anything_fit(wanted):
        return anything
    score = 1.0 if wanted in _LITERALS.get(literal, {literal}) else _number_fit(literal, wanted) or -1
    return score + (0.5 if literal.lower() in wanted.lower() else 0)


def _type_fit(q: Queries, typed: Value, wanted: str) -> float:
    """How well a value fits a declared type."""
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
    """How well anything fits a declared type that takes anything; 0 for another one."""
    return 0.25 if wanted in _ANYTHING else 0.3 if _is_type_parameter(wanted) else 0


def _is_type_parameter(name: str) -> bool:
    return len(name) == 1 and name.isupper()


def _number_fit(given: str, wanted: str) -> float:
    """How well a number may be given where another sort of number is wanted; 0 for not at all."""
    first, second = (_SAME_NUMBERS.get(name.lower(), name.lower()) for name in (given, wanted))
    if first not in _NUMBERS or second not in _NUMBERS:
        return 0
    steps = _NUMBERS.index(second) - _NUMBERS.index(first)
    return 1.5 if steps == 0 else 1 - steps / 10 if steps > 0 else 0


def _takes(q: Queries, function: Value, declared: Instance, given: Value) -> bool:
    """Whether something is of the type of a parameter, or of a class that inherits from it."""
    if function.kind != "function":
        return False
    wanted = {(one.kind, one.path, one.name) for one in q.values(q.unit(function.path), function.name, declared)}
    of = ancestors(q, given) if given.kind == "object" else (given,)
    return any((given.kind, one.path, one.name) in wanted for one in of)
