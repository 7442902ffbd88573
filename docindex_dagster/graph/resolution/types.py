"""Something of a declared type, also of a type parameter."""

from collections.abc import Mapping, Sequence

from docindex_dagster.graph import notation, spaces
from docindex_dagster.graph.notation import (
    Typed,
)
from docindex_dagster.graph.resolution.base import NameResolver, Values, distinct
from docindex_dagster.graph.units import Unit
from docindex_dagster.graph.values import FUNCTION_TYPE, How, Kind, Value

_ANYTHING = "?"


class Types(NameResolver):
    """Something of a declared type, also of a type parameter."""

    def _typed_for(self, function: Value, written: str) -> list[Value]:
        """Something of a type that a function is declared with."""
        return self._typed(self.unit(function.path), function.name, written)

    def _typed(self, unit: Unit, scope: str, written: str, given: Mapping[str, Value] | None = None) -> list[Value]:  # noqa: C901, PLR0911 one a sort of types
        """Something of a declared type; `given` are the values of type parameters."""
        if given and written in given:
            return [given[written]]
        name = written.partition("<")[0]
        arguments = [*notation.arguments_of(written)]
        policy = unit.policy
        if name in policy.functions:
            return []
        if policy.has_pointers and name.startswith("std."):
            arguments = arguments[: 2 if name.endswith(("map", "pair")) else 1]
        last = name.rpartition(".")[2]
        if arguments and last in policy.wrappers:
            wrapped = self._typed(unit, scope, arguments[-1], given)
            is_class = last in policy.class_types
            return [one._replace(kind=Kind.CLASS) if is_class and one.kind is Kind.OBJECT else one for one in wrapped]
        if name in {"Self", "self", "this", "static"} and (owner := self.owner(unit, scope)):
            return [owner._replace(kind=Kind.OBJECT)]
        bound = self._bound_of(unit, scope, name) if policy.separates_kinds else None
        if bound is not None:
            known = self._values(unit, scope, Typed(bound.partition("<")[0])) if bound else ()
            return [*known] or [Value(Kind.EXTERNAL_OBJECT, "", _ANYTHING)]
        arguments = arguments[:1] if last in policy.leading else arguments
        held = tuple(self._argument_type(unit, scope, argument, given) for argument in arguments)
        found = []
        for value in self._type_names(unit, scope, name):
            if value.kind is Kind.CLASS:
                found.append(value._replace(kind=Kind.OBJECT, held=held).found(How.RECEIVER))
            elif value.kind is Kind.EXTERNAL:
                found.append(Value(Kind.EXTERNAL_OBJECT, "", value.name, How.RECEIVER, held))
            elif value.kind in {
                Kind.OBJECT,
                Kind.EXTERNAL_OBJECT,
                Kind.COLLECTION,
                Kind.FUNCTION,
            }:  # an alias of a type
                is_generic = value.kind is Kind.EXTERNAL_OBJECT and bool(held)
                found.append(value._replace(held=held) if is_generic else value)
        if not found and (arguments or policy.sharing == "namespace"):
            return [Value(Kind.EXTERNAL_OBJECT, "", name, How.RECEIVER, held)]
        return found

    def _bound_of(self, unit: Unit, scope: str, name: str) -> str | None:
        """What a type parameter is declared to be, "" for anything; None of what is none."""
        if not unit.generics:
            return None
        for around in unit.around(scope):
            for parameter, bound in reversed(unit.generics.get(around.id, ())):
                if parameter == name:
                    return bound.removeprefix(":").removeprefix("?") if bound != f":{name}" else ""
        return None

    def _for_receiver(self, function: Value, written: str) -> list[Value] | None:
        """Something of a type parameter, by what the object whose method it is was made for."""
        owner = function.held[0] if function.held and function.held[0].kind is Kind.OBJECT else None
        unit = self.unit(function.path)
        holder = unit.class_around(function.name)
        if owner is None or holder is None or holder.id not in unit.generics:
            return None
        wrapped, _, rest = written.partition("<")
        if rest and wrapped in unit.policy.wrappers:
            written = rest[:-1]
        names = [*dict.fromkeys(name for name, _ in unit.generics[holder.id])]
        name, _, rest = written.partition("<")
        arguments = [*notation.arguments_of(written)]
        if name not in names and not any(argument in names for argument in arguments):
            return None
        given = self._given_types(owner, Value(Kind.CLASS, unit.path, holder.id))
        if len(given) != len(names):
            return None
        if name in names:
            return [given[names.index(name)]]
        held = tuple(
            one
            for argument in arguments
            for one in (
                [given[names.index(argument)]] if argument in names else self._typed_for(function, argument)[:1]
            )
        )
        return [found._replace(held=held) for found in self._typed_for(function, written)]

    def _given_types(self, owner: Value, cls: Value) -> Sequence[Value]:
        """What an object was made for, as far as one of its classes tells it."""
        if (owner.path, owner.name) == (cls.path, cls.name):
            return owner.held
        for ancestor in self.ancestors(owner._replace(kind=Kind.CLASS)):
            if ancestor.kind is Kind.EXTERNAL:
                continue
            for unit, definition in self._parts(ancestor):
                for reference, values in self.bases(unit, definition):
                    if "<" in reference.value and any((one.path, one.name) == (cls.path, cls.name) for one in values):
                        found = [
                            self._typed(unit, definition.id, argument)[:1]
                            for argument in notation.arguments_of(reference.value)
                        ]
                        return [one[0] for one in found if one]
        return ()

    def _argument_type(self, unit: Unit, scope: str, written: str, given: Mapping[str, Value] | None) -> Value:
        """What an argument of a generic type stands for; also one that is not known has its place."""
        return next(iter(self._typed(unit, scope, written, given)), Value(Kind.EXTERNAL_OBJECT, "", written))

    def _type_names(self, unit: Unit, scope: str, name: str) -> Values:
        if unit.policy.sharing == "included":
            none: Values = ()
            return self.memo.settled(("types", unit.path, scope, name), none, self._included_types, unit, scope, name)
        return self._values(unit, scope, notation.type_named(name))

    def _included_types(self, unit: Unit, scope: str, name: str) -> Values:
        first = name.partition(".")[0]
        found = () if first == "std" else distinct(spaces.types(self, unit, scope, name))
        return found or tuple(value._replace(name=name) for value in self._built_in(first, unit.policy))

    def _is_open(self, value: Value) -> bool:
        """Whether a declared type leaves open what is behind it: one that is not known, or that of functions."""
        if value.kind is Kind.EXTERNAL_OBJECT:
            return not value.held or value.name == FUNCTION_TYPE or self._is_function(value.held[-1])
        return self._is_function(value)

    def _is_function(self, value: Value) -> bool:
        """Whether a declared type is that of functions."""
        if value.kind is Kind.EXTERNAL_OBJECT:
            return value.name == FUNCTION_TYPE
        return value.kind is Kind.OBJECT and self._function_type(value) is not None

    def _function_type(self, value: Value) -> Value | None:
        """The type of functions that a type with a name of its own is."""
        unit = self.unit(value.path)
        for reference in unit.bases.get(value.name, ()):
            if reference.value.partition("<")[0] == FUNCTION_TYPE:
                return next(iter(self._typed(unit, unit.definitions[value.name].parent, reference.value)), None)
        return None
