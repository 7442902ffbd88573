"""What parameters are: what is declared, and what callers give."""

from collections.abc import Iterable, Iterator

from docindex_dagster.graph import builtins, fixtures, notation
from docindex_dagster.graph.notation import (
    Given,
)
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.resolution.base import (
    BLOCK,
    MOST_CALLERS,
    MOST_VALUES,
    NameResolver,
    Values,
    argument_at,
    distinct,
)
from docindex_dagster.graph.units import Definition, Unit
from docindex_dagster.graph.values import How, Kind, Value

_FUNCTION_TYPES = {":fun", ":Action", ":Func", ":Predicate", ":Consumer", ":Function", ":BiConsumer", ":BiFunction"}


class Arguments(NameResolver):
    """What parameters are."""

    def _given_to_functions(self, value: Value, position: int) -> Iterable[Value]:
        """What a function gives to the function that it is given last."""
        if value.kind is not Kind.FUNCTION:
            return ()
        unit = self.unit(value.path)
        parameters = unit.parameters.get(value.name, ())
        written = parameters[-1][1] if parameters else ""
        name, _, rest = written.partition("<")
        if name not in _FUNCTION_TYPES or not rest:
            return ()
        arguments = [*notation.arguments_of(written)]
        at = position if name == ":fun" else position - 1
        return self._typed_for(value, arguments[at]) if 0 <= at < len(arguments) else ()

    def _given_by(self, value: Value, argument: int, position: int) -> Iterable[Value]:
        """What a function gives, at a position, to the function that is one of its arguments."""
        if value.kind is Kind.FUNCTION:
            return [one.found(How.ARGUMENT) for one in self._passed(value, argument, position)]
        if value.kind is Kind.EXTERNAL and value.held and builtins.gives_elements(value.name, position):
            return [one.found(How.ELEMENT) for one in value.held]
        return ()

    def _passed(self, value: Value, argument: int, position: int) -> Iterator[Value]:
        unit = self.unit(value.path)
        taken = self.parameters(value)
        blocks = [name.lstrip("&") for name, _ in taken if name.startswith("&")]
        if argument == BLOCK:
            names = ["yield", *blocks]
        else:
            names = [taken[argument][0].lstrip("*")] if argument < len(taken) else []
        callers = unit.policy.callers
        for reference in self.program.references_in(unit, value.name):
            called, _, method = reference.name.rpartition(".")
            given = reference.arguments
            if reference.name in names and position < len(given):
                yield from self._values(unit, reference.scope, notation.parse(given[position]))
            elif called.rstrip("'") in names and method in callers:
                shifted = position + (unit.policy.has_prototypes)
                if shifted < len(given):
                    yield from self._values(unit, reference.scope, notation.parse(given[shifted]))
            else:
                for at, one in enumerate(given):
                    if one.lstrip("&").rstrip("'") in names:
                        of = notation.parse(reference.name)
                        at_block = BLOCK if one.startswith("&") else min(at, BLOCK - 1)
                        yield from self._values(unit, reference.scope, Given(of, at_block, position))

    def _parameter(self, unit: Unit, function: Definition, name: str) -> Iterable[Value]:
        declared = [value for parameter, value in unit.parameters[function.id] if parameter.lstrip("*&") == name]
        found: list[Value] = []
        for expression in declared:
            scope = function.id if expression.startswith(":") else function.parent
            found += self._values(unit, scope, notation.parse(expression))
        if not found and (fixture := fixtures.fixture_of(self, unit, function, name)):
            return [value.found(How.ARGUMENT) for value in self._returned(fixture)]
        is_rest = any(parameter == f"*{name}" for parameter, _ in unit.parameters[function.id])
        if is_rest and unit.policy.has_namespaces and any(value.kind is Kind.OBJECT for value in found):
            return [Value(Kind.COLLECTION, "", "collection", How.RECEIVER, distinct(found))]
        is_declared = any(expression.startswith(":") for expression in declared)
        is_literal = not is_declared and unit.policy.has_prototypes
        if is_literal and (wanted := self._wanted_parameter(unit, function, name)):
            return wanted
        if is_declared and any(value.kind is not Kind.EXTERNAL_OBJECT and not self._is_open(value) for value in found):
            return found
        if is_declared and unit.policy.separates_kinds:
            return (
                found if builtins.is_value(declared[0][1:]) else [*found, *self._given_functions(unit, function, name)]
            )
        target = Value(Kind.FUNCTION, unit.path, function.id)
        names = [parameter for parameter, _ in self.parameters(target)]
        if name in names:
            found += self._given(target, names.index(name), name)
            found += self._handed(target, names.index(name))
        elif f"*{name}" in names:
            first = names.index(f"*{name}")
            given = [value for at in range(first, first + MOST_VALUES) for value in self._given(target, at, name)]
            found.append(Value(Kind.COLLECTION, "", "collection", How.SCOPE, distinct(given)))
        return found

    def _wanted_parameter(self, unit: Unit, function: Definition, name: str) -> list[Value]:
        """What a parameter is by the declared type of the literal in which its function is written."""
        scope, _, literal = function.parent.rpartition(".")
        if not literal or function.parent in unit.definitions:
            return []
        declared = [text for text in unit.binds.get(scope, {}).get(literal, ()) if text.startswith(":")]
        names = [parameter for parameter, _ in unit.parameters.get(function.id, ())]
        found: list[Value] = []
        for text in declared if name in names else ():
            for value in self._values(unit, scope, notation.parse(text)):
                for method in self.member(value, function.name) if value.kind is Kind.OBJECT else ():
                    taken = self.parameters(method) if method.kind is Kind.FUNCTION else ()
                    at = names.index(name)
                    if at < len(taken) and taken[at][1].startswith(":"):
                        found += self._typed_for(method, taken[at][1][1:])
        return [value for value in found if value.kind is Kind.OBJECT]

    def _handed(self, target: Value, position: int) -> Values:
        """What those give to a function that are given the function itself."""
        return self.memo.asking_callers((), self._handed_over, target, position)

    def _handed_over(self, target: Value, position: int) -> Values:
        return distinct(self._from_takers(target, position))

    def _from_takers(self, target: Value, position: int) -> Iterator[Value]:
        unit = self.unit(target.path)
        family = unit.policy.family
        name = unit.definitions[target.name].name
        for path, (reference, at) in self.program.takers.get((family, name), ())[:MOST_CALLERS]:
            other = self.program.units[path]
            values = self._values(other, reference.scope, notation.parse(reference.arguments[at].lstrip("&")))
            if any((value.path, value.name) == (target.path, target.name) for value in values):
                argument = BLOCK if reference.arguments[at].startswith("&") else min(at, BLOCK - 1)
                yield from self._values(
                    other, reference.scope, Given(notation.parse(reference.name), argument, position)
                )

    def _given_functions(self, unit: Unit, function: Definition, name: str) -> Iterable[Value]:
        """The functions that are given for a parameter."""
        target = Value(Kind.FUNCTION, unit.path, function.id)
        names = [parameter for parameter, _ in self.parameters(target)]
        if name not in names:
            return ()
        return [value for value in self._given(target, names.index(name), name) if value.kind is Kind.FUNCTION]

    def _is_constructor(self, definition: Definition, owner: Value, policy: Policy) -> bool:
        """Whether a function runs when an object of a class is made."""
        has_its_name = definition.name == self.definition(owner).name
        return definition.name in policy.constructors or (
            has_its_name and (policy.separates_kinds or policy.is_made_by_name)
        )

    def _given(self, target: Value, position: int, name: str) -> Values:
        """What the calls of a function give for a parameter."""
        return self.memo.asking_callers((), self._given_over, target, position, name)

    def _given_over(self, target: Value, position: int, name: str) -> Values:
        return distinct(self._from_callers(target, position, name))

    def _from_callers(self, target: Value, position: int, name: str) -> Iterator[Value]:
        unit = self.unit(target.path)
        definition = unit.definitions[target.name]
        policy = unit.policy
        called = definition.name
        owner = self.owner(unit, target.name)
        if owner is not None and self._is_constructor(definition, owner, policy):
            target, called = owner, self.definition(owner).name
        names = [called, *(other for other, of in unit.exports.items() if called in of and other != called)]
        callers = [one for known in names for one in self.program.callers.get((policy.family, known), ())]
        for path, reference in callers[:MOST_CALLERS]:
            other = self.program.units[path]
            arguments = reference.arguments if reference.kind != "decorator" else []
            given = argument_at(arguments, position, name.removeprefix("$"))
            if given is None and reference.kind != "decorator":
                continue
            if not any(
                (value.path, value.name) == (target.path, target.name)
                for value in self.declared_targets(other, reference)
            ):
                continue
            if reference.kind == "decorator":
                if position == 0 and not reference.value.endswith("()") and (unit.is_test or not other.is_test):
                    yield Value(Kind.FUNCTION, path, reference.name, How.ARGUMENT)
                continue
            for value in self._values(other, reference.scope, notation.parse(given or "")):
                if unit.is_test or not self._is_of_test(value):
                    yield value.found(How.ARGUMENT)

    def _is_of_test(self, value: Value) -> bool:
        """Whether a function or class stands in a test: what is tested calls it only there."""
        return value.path in self.program.units and self.program.units[value.path].is_test
