"""Which of the definitions of one name a call means, by the number and types of what it gives."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from docindex_dagster.graph.builtins import is_value
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.units import Reference, Unit, unnamed
from docindex_dagster.graph.values import How, Kind, Value

if TYPE_CHECKING:
    from docindex_dagster.graph.resolve import Resolver

_LITERALS = {
    "str": {
        "str",
        "String",
        "string",
        "CharSequence",
        "Object",
        "std.string",
        "char",
        "string_view",
        "std.string_view",
        "any",
    },
    "int": {"int", "Int", "long", "Long", "Integer", "short", "number", "float", "double", "Double", "size_t", "any"},
    "float": {"float", "double", "Double", "Float", "number", "any"},
    "bool": {"bool", "Boolean", "boolean", "any"},
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


def takes(resolver: "Resolver", function: Value, reference: Reference) -> bool:
    """Whether a function may be called with so many arguments."""
    taken = resolver.parameters(function)
    has_rest = any(name.startswith("*") for name, _ in taken)
    return has_rest or len(reference.arguments) <= len(taken)


def best_overloads(resolver: "Resolver", unit: Unit, reference: Reference, found: Sequence[Value]) -> tuple[Value, ...]:
    """The targets without those overloads that fit less well than another one."""
    groups: dict[tuple[str, ...], list[Value]] = defaultdict(list)
    given = [_Given(resolver, unit, reference.scope, argument) for argument in reference.arguments]
    separates_kinds = unit.policy.separates_kinds
    for value in found:
        if separates_kinds and value.kind is Kind.FUNCTION:
            groups[
                resolver.definition(value).name, *(part for one in value.held for part in (one.path, one.name))
            ].append(value)
            continue
        name = value.name.partition("~")[0] if value.kind is Kind.FUNCTION else value.name
        is_declared = unit.language == "cpp" and value.how in {How.FILE, How.IMPORT}  # in one of several headers
        groups["" if is_declared else value.path, name].append(value)
    kept = []
    for group in groups.values():
        if len(group) == 1 or not group[0].path:
            kept += group[:1]
            continue
        scores = [_fit(resolver, given, value, unit.policy) for value in group]
        highest = max(scores)
        best = [value for value, score in zip(group, scores, strict=True) if score == highest]
        parents = {resolver.definition(value).parent for value in best}
        types = {tuple(parameter for _, parameter in resolver.parameters(value)) for value in best}
        if not separates_kinds or len(best) == 1 or len(parents) == len(best) or len(types) == 1:
            kept += best[:1]
    return tuple(kept)


@dataclass(frozen=True, eq=False)
class _Given:
    """What a call gives for a parameter."""

    resolver: "Resolver"
    unit: Unit
    scope: str
    argument: str

    @cached_property
    def literal(self) -> str:
        """The type of a literal; "" for anything else."""
        is_literal = self.argument.startswith("#") and self.argument[1:].isalnum()
        return _ALIASES.get(self.argument[1:], self.argument[1:]) if is_literal else ""

    @cached_property
    def known(self) -> Sequence[Value]:
        """What it may be."""
        values = self.resolver.declared(self.unit, self.scope, unnamed(self.argument))
        return [typed for typed in values if typed.kind is not Kind.EXTERNAL]


def _fit(resolver: "Resolver", given: Sequence[_Given], value: Value, policy: Policy) -> float:
    taken = resolver.parameters(value)
    score = 0.0 if len(given) == len(taken) else -10.0 - abs(len(given) - len(taken))
    for one, (_, parameter) in zip(given, taken, strict=False):
        if not parameter.startswith(":"):
            continue
        wanted = parameter[1:].partition("<")[0]
        if one.literal:
            score += max(_literal_fit(one.literal, name) for name in (wanted, *_aliased(resolver, value, parameter)))
        elif not one.known:  # of a class of the program it would be known
            score += 0.1 if is_value(wanted) or _is_type_parameter(wanted) else 0
        else:
            for typed in one.known:
                is_taken = not policy.separates_kinds and _takes(resolver, value, parameter, typed)
                score += 1 if is_taken else _type_fit(resolver, typed, wanted)
    return score


def _aliased(resolver: "Resolver", function: Value, parameter: str) -> list[str]:
    """The types of the library for which the name of a type stands."""
    unit = resolver.unit(function.path)
    if function.kind is not Kind.FUNCTION or not unit.policy.has_pointers:
        return []
    known = resolver.values(unit, function.name, parameter)
    return [one.name for one in known if one.kind is Kind.EXTERNAL_OBJECT and not one.held]


def _literal_fit(literal: str, wanted: str) -> float:
    """How well a literal fits a declared type."""
    if literal == "fun":
        return 1 if wanted in _FUNCTIONS else -1 if is_value(wanted) else 0
    if literal == "null":
        return 0
    if wanted in _ANYTHING or _is_type_parameter(wanted):
        return 0.25 if wanted in _ANYTHING else 0.3
    score = 1.0 if wanted in _LITERALS.get(literal, {literal}) else _number_fit(literal, wanted) or -1
    return score + (0.5 if literal.lower() in wanted.lower() else 0)


def _type_fit(resolver: "Resolver", typed: Value, wanted: str) -> float:
    """How well a value fits a declared type."""
    last = wanted.rpartition(".")[2]
    name = typed.name.rpartition(".")[2].partition("~")[0]
    if name == last:
        return 1
    if last in _ANYTHING or _is_type_parameter(last):
        return 0.25 if last in _ANYTHING else 0.3
    if typed.kind is Kind.OBJECT and last in resolver.ancestor_names(typed):
        return 0.75
    if typed.kind is Kind.EXTERNAL_OBJECT and (number := _number_fit(name, last)):
        return number
    return -0.5


def _is_type_parameter(name: str) -> bool:
    return len(name) == 1 and name.isupper()


def _number_fit(given: str, wanted: str) -> float:
    """How well a number may be given where another sort of number is wanted; 0 for not at all."""
    first, second = (_SAME_NUMBERS.get(name.lower(), name.lower()) for name in (given, wanted))
    if first not in _NUMBERS or second not in _NUMBERS:
        return 0
    steps = _NUMBERS.index(second) - _NUMBERS.index(first)
    return 1.5 if steps == 0 else 1 - steps / 10 if steps > 0 else 0


def _takes(resolver: "Resolver", function: Value, parameter: str, given: Value) -> bool:
    """Whether something is of the type of a parameter, or of a class that inherits from it."""
    if function.kind is not Kind.FUNCTION:
        return False
    wanted = {
        (one.kind, one.path, one.name)
        for one in resolver.values(resolver.unit(function.path), function.name, parameter)
    }
    of = resolver.ancestors(given) if given.kind is Kind.OBJECT else (given,)
    return any((given.kind, one.path, one.name) in wanted for one in of)
