"""What calls give, of what objects are made, and what collections hold."""

import re
from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.graph import builtins, notation
from docindex_dagster.graph.notation import (
    Expression,
    Name,
)
from docindex_dagster.graph.resolution.base import MOST_CALLERS, MOST_VALUES, NameResolver, Values, is_file
from docindex_dagster.graph.units import Unit
from docindex_dagster.graph.values import FUNCTION_TYPE, How, Kind, Value

_SELF_MADE = frozenset({"this@()", "this()", "new()", "this.new()"})
_PARTS = re.compile(r"[()|']+")
_POINTING = ("operator[]", "operator->", "operator*")


class Results(NameResolver):
    """What calls give, of what objects are made, and what collections hold."""

    def _constructed(self, unit: Unit, value: Value) -> Iterable[Value]:
        """What `new` gives of a class or of a function."""
        if value.kind is Kind.FUNCTION:
            return [value._replace(kind=Kind.OBJECT, held=()), *self._returned(value)]
        return self._result(unit, value)

    def _callees(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is called."""
        found = self._values(unit, scope, expression)
        if not unit.policy.separates_kinds:
            return found
        functions = tuple(value for value in found if value.kind in {Kind.FUNCTION, Kind.CLASS})
        if not functions and isinstance(expression, Name):
            functions = self._values(unit, scope, Name(expression.name, "function"))
        return functions or found

    def _read(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is not called."""
        found = self._values(unit, scope, expression)
        if not unit.policy.separates_kinds:
            return found
        return tuple(value for value in found if value.kind is not Kind.FUNCTION) or found

    def _result(self, unit: Unit, value: Value) -> Iterable[Value]:  # noqa: C901, PLR0911 one a kind
        """What a call of a value gives."""
        match value.kind:
            case Kind.CLASS:
                return [value._replace(kind=Kind.OBJECT)]
            case Kind.FUNCTION:
                return self._returned(value)
            case Kind.EXTERNAL:
                if unit.policy.separates_kinds and (plain := builtins.plain_result(value)):
                    return [plain]
                if value.held:
                    return builtins.result_of(unit.policy.family, value)
                return [value._replace(kind=Kind.EXTERNAL_OBJECT)]
            case Kind.PARENT:
                return [value] if unit.policy.family == "python" else ()
            case Kind.OBJECT | Kind.EXTERNAL_OBJECT if unit.policy.has_accessors:
                return [value]
            case Kind.OBJECT:
                return [found for member in self._called(value) for found in self._result(unit, member)]
            case Kind.EXTERNAL_OBJECT if value.name == FUNCTION_TYPE:
                return [found.found(How.RETURNED) for found in value.held]
            case Kind.MODULE:
                return [found for made in self._made(value) for found in self._result(unit, made)]
            case _:
                return ()

    def _classes(self, values: Values) -> Iterable[Value]:
        """Of which of some values an object can be made."""
        found = [value for value in values if value.kind in {Kind.CLASS, Kind.EXTERNAL}]
        if not found:  # the class of what it is assigned to
            found = [
                value._replace(kind=Kind.CLASS)
                for value in values
                if value.kind is Kind.OBJECT and self._policy(value).separates_kinds
            ]
        return found or [made for value in values for made in self._made(value)]

    def _made(self, value: Value) -> Iterable[Value]:
        """Of what an object is made where the expression is no class itself."""
        if value.kind is Kind.MODULE and not value.name and not value.path.endswith("/"):
            found = self._in_module(value.path, "default")
            inner = [one for module in found if is_file(module) for one in self._in_module(module.path, "default")]
            return [one for one in (*found, *inner) if one.kind is not Kind.MODULE]
        is_maker = value.kind is Kind.FUNCTION and not self.unit(value.path).policy.is_made_by_name
        return [value] if is_maker else ()

    def _called(self, value: Value) -> Iterable[Value]:  # noqa: PLR0911 one a kind
        """What runs when a value is called."""
        match value.kind:
            case Kind.FUNCTION | Kind.CLASS | Kind.EXTERNAL:
                return [value]
            case Kind.OBJECT:
                if self._function_type(value) is not None:
                    return ()
                for name in self._policy(value).runs:
                    found = [member for member in self.member(value, name) if member.kind is Kind.FUNCTION]
                    if found:
                        return found
                return ()
            case Kind.PARENT:
                _, *others = self.ancestors(value)
                others = [one for one in others if one.kind in {Kind.CLASS, Kind.EXTERNAL, Kind.FUNCTION}]
                return others[:1] if self._policy(value).family != "python" else ()
            case Kind.MODULE:
                return self._made(value)
            case _:
                return ()

    def _returned(self, value: Value) -> Iterable[Value]:
        """What a function returns: as declared, else what its returns say."""
        unit = self.unit(value.path)
        definition = unit.definitions[value.name]
        receiver = value.held[:1]
        found: list[Value] = []
        if definition.returns:
            if receiver and definition.returns in {"this", "Self", "self", "static", "$this"}:
                return [found.found(How.RETURNED) for found in receiver]
            typed = self._for_receiver(value, definition.returns)
            if typed is None:
                given = self._held_by(receiver[0]) if receiver else {}
                typed = self._typed(unit, definition.id, definition.returns, given)
            found = [found.found(How.RETURNED) for found in typed]
            if any(not self._is_open(one) for one in found):
                return found
            if unit.policy.separates_kinds:
                return found
        returned: list[Value] = [one for one in found if one.held or one.kind is Kind.OBJECT]
        for expression in self._results(unit, value)[:MOST_VALUES]:
            bound = unit.binds.get(value.name, {}).get(expression.rstrip("'"), ())
            bound = [one for one in bound if not one.startswith("{")]
            made = bound[0] if len(bound) == 1 else expression
            if (made == "this" or expression == "static@()") and receiver:
                returned += receiver
            elif made in _SELF_MADE and receiver and receiver[0].kind is Kind.CLASS:
                returned += [found._replace(kind=Kind.OBJECT) for found in receiver]
            else:
                returned += self._values(unit, value.name, notation.parse(expression))
        return [found.found(How.RETURNED) for found in returned]

    def _results(self, unit: Unit, function: Value) -> Sequence[str]:
        """What a function returns, but for what just this call gives it, unless it is called in one place."""
        returned = unit.returns.get(function.name, ())
        given = {
            name.lstrip("*&")
            for name, expression in unit.parameters.get(function.name, ())
            if not expression.startswith(":") and name not in unit.binds.get(function.name, ())
        }
        if given.isdisjoint(part for one in returned for part in _PARTS.split(one)):
            return returned
        if self._is_called_once(unit, function):
            return returned
        parts = (one[1:-1] if one[:1] == "(" and one[-1:] == ")" else one for one in returned)
        kept = ("|".join(part for part in one.split("|") if part.strip("'") not in given) for one in parts)
        return [f"({one})" if "|" in one else one for one in kept if one]

    def _is_called_once(self, unit: Unit, function: Value) -> bool:
        called = unit.definitions[function.name].name
        callers = self.program.callers.get((unit.policy.family, called), ())
        if len(callers) > MOST_CALLERS:
            return False
        count = 0
        for path, reference in callers if len(callers) > 1 else ():
            reached = self.declared_targets(self.program.units[path], reference)
            count += any((one.path, one.name) == (function.path, function.name) for one in reached)
        return count <= 1

    def _items(self, value: Value) -> Values:
        """What a collection, or what can be read like one, holds."""
        return self.memo.settled(("items", value), (), self._found_items, value)

    def _found_items(self, value: Value) -> Values:
        return tuple(self._any_items(value))

    def _any_items(self, value: Value) -> Iterable[Value]:  # noqa: C901, PLR0911 one a kind
        if value.kind is Kind.COLLECTION:
            return [held.found(How.ELEMENT) for held in value.held]
        if value.kind is Kind.LITERAL:
            return self._of_all(self._entries(value)) if self._is_whole(value) else ()
        if value.kind is Kind.RECORD:
            unit, scope, parts = self._record(value)
            return [one.found(How.ELEMENT) for _, part in parts for one in self._values(unit, scope, part)]
        if value.kind is Kind.MODULE and not value.path.endswith("/"):
            return self._all_exported(value)
        if value.kind in {Kind.EXTERNAL_OBJECT, Kind.EXTERNAL}:
            return [held.found(How.ELEMENT) for held in value.held[-1:]]
        if value.kind is Kind.FUNCTION:  # collections in collections are looked at as one
            return [value]
        if value.kind is Kind.OBJECT:
            for name in ("__getitem__", "__iter__", *self._policy(value).iterating, *_POINTING):
                found = [member for member in self.member(value, name) if member.kind is not Kind.EXTERNAL]
                if found:
                    items = [item for member in found for item in self._result(self.unit(value.path), member)]
                    return (
                        items if name.startswith(("_", "o")) else [one for item in items for one in self._items(item)]
                    )
            if self._policy(value).has_pointers:
                return [value]
            if self._policy(value).separates_kinds:
                return self._items_of_bases(value)
            return self._inherited_items(value)
        return ()

    def _entries(self, table: Value) -> Values:
        """What a literal holds, without the functions that those in it call on the literal itself."""
        helpers = {reference.name for reference in self.program.references_in(self.unit(table.path), table.name)}
        return tuple(one for one in table.held if f"this.{one.name.rpartition('.')[2]}" not in helpers)

    def _of_all(self, held: Values) -> Iterable[Value]:
        """What a literal holds, with what is in the records of which it is made."""
        return [
            found
            for one in held
            for found in (self._items(one) if one.kind is Kind.RECORD else [one.found(How.ELEMENT)])
        ]

    def _is_whole(self, value: Value) -> bool:
        """Whether a literal is all that a name stands for."""
        scope, _, name = value.name.rpartition(".")
        bound = self.unit(value.path).binds.get(scope, {}).get(name, ())
        return all(expression.startswith(("{", ":")) for expression in bound)

    def _items_of_bases(self, value: Value) -> Iterator[Value]:
        """What an object holds by the collection of the library that its class is."""
        for ancestor in self.ancestors(value._replace(kind=Kind.CLASS)):
            if ancestor.kind is Kind.EXTERNAL:
                continue
            for unit, definition in self._parts(ancestor):
                for reference, _ in self.bases(unit, definition):
                    name, _, rest = reference.value.partition("<")
                    if rest and builtins.is_collection(name):
                        yield from self._typed(unit, definition.id, [*notation.arguments_of(reference.value)][-1])

    def _inherited_items(self, value: Value) -> list[Value]:
        """What an object holds as the generic type that its class is made from."""
        return [
            item
            for unit, definition in self._parts(value)
            for reference in unit.bases.get(definition.id, ())
            if reference.value.endswith(">")
            for base in self._typed(unit, definition.parent, reference.value)
            if base.kind is Kind.EXTERNAL_OBJECT and base.name != FUNCTION_TYPE
            for item in self._items(base)
        ]
