"""What objects, classes, literals, functions and modules have under a name."""

from collections.abc import Iterable, Sequence

from docindex_dagster.graph import notation, spaces
from docindex_dagster.graph.notation import (
    Expression,
    Member,
    Name,
    Record,
)
from docindex_dagster.graph.resolution.base import MOST_VALUES, PATH_WORDS, NameResolver, Values, distinct
from docindex_dagster.graph.units import Unit
from docindex_dagster.graph.values import How, Kind, Value


class Members(NameResolver):
    """What objects, classes, literals, functions and modules have under a name."""

    def _held_functions(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """The functions that a variable holds, where a method is read that calls them."""
        policy = unit.policy
        if not policy.separates_kinds or name not in policy.callers:
            return ()
        written = of.name if isinstance(of, Name | Member) else ""
        functions = (value for value in self._values(unit, scope, of) if value.kind is Kind.FUNCTION)
        return [value for value in functions if self.definition(value).name != written]

    def _members_of(self, unit: Unit, scope: str, values: Values, name: str) -> Iterable[Value]:
        """What some objects, classes or modules have under a name."""
        has_impls = unit.policy.has_impls
        found = [
            found
            for value in values
            for found in ((has_impls and self._added(unit, value, name)) or self.member(value, name))
        ]
        if unit.policy.separates_kinds and all(value.kind is Kind.EXTERNAL for value in found):
            found = [*self._extensions(unit, scope, values, name)] or found
        return found

    def _tested(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """A member that something has by a type for which it was tested, where just one of these has it."""
        text = notation.written(of)
        tested = unit.binds.get(scope, {}).get(f"is {text}", ()) if text else ()
        found = distinct(
            member
            for expression in tested[:MOST_VALUES]
            for value in self._values(unit, scope, notation.parse(expression))
            for member in self.member(value, name)
        )
        return found if len(found) == 1 else ()

    def member(self, value: Value, name: str) -> Values:
        """What something has under a name."""
        return self.memo.settled((value, name), (), self._found_member, value, name)

    def _found_member(self, value: Value, name: str) -> Values:
        return tuple(self._any_member(value, name))

    def _any_member(self, value: Value, name: str) -> Iterable[Value]:  # noqa: C901, PLR0911, PLR0912 one a kind
        match value.kind:
            case Kind.CLASS if name in {"this", "super"} and self._policy(value).separates_kinds:  # of an outer class
                is_interface = self.definition(value).kind == "interface"
                is_itself = name == "this" or is_interface
                return [value._replace(kind=Kind.OBJECT if is_itself else Kind.PARENT)]
            case Kind.OBJECT | Kind.CLASS:
                policy = self._policy(value)
                if name in policy.makers and (value.kind is Kind.CLASS or policy.has_open_classes):
                    return self._maker(value, name)
                if value.kind is Kind.OBJECT and name in policy.classes:
                    return [value._replace(kind=Kind.CLASS)]
                if name == "prototype":
                    return [value._replace(kind=Kind.OBJECT)]
                found = self._members(value, self.ancestors(value), name)
                if all(one.kind is Kind.EXTERNAL for one in found) and (inner := self._of_deref(value, name)):
                    return inner
                if value.kind is Kind.CLASS and name == policy.default and not found:
                    return [value]
                if value.kind is Kind.CLASS and name in PATH_WORDS and policy.has_module_paths:
                    return self._path_word(self.unit(value.path), value.name, name)
                return found or self._without_member(value, name)
            case Kind.PARENT:
                first, *others = self.ancestors(value)
                owner = first._replace(kind=Kind.OBJECT)
                return self._members(owner, others, name)
            case Kind.MODULE if value.name and self._policy(value).separates_kinds:
                return self._in_space(value, name)
            case Kind.MODULE:
                if value.name:
                    return spaces.in_space(self, self.unit(value.path), f"{value.name}.{name}")
                return [found.found(How.IMPORT) for found in self._in_module(value.path, name)]
            case Kind.FUNCTION if self._is_row(value, name):
                return [value]
            case Kind.LITERAL:
                return self._of_literal(value, name)
            case Kind.RECORD:
                return self._of_record(value, name)
            case Kind.FUNCTION:
                return self._of_function(value, name)
            case Kind.EXTERNAL | Kind.EXTERNAL_OBJECT | Kind.COLLECTION:
                if name == "prototype":
                    return [value]
                if name == "second" and value.name.startswith("std."):
                    return value.held[-1:] if value.name == "std.pair" else [value]
                if value.name == "tuple" and name.isdecimal():
                    return value.held[int(name) : int(name) + 1]
                return [Value(Kind.EXTERNAL, "", f"{value.name}.{name}", value.how, value.held)]

    def _maker(self, value: Value, name: str) -> Iterable[Value]:
        """The class itself, or its own function of that name; a module makes nothing."""
        unit = self.unit(value.path)
        definition = unit.definitions[value.name]
        own = [one for _, one in self._children(unit, definition, name)]
        if own or definition.kind == "module":
            return self._own_member(value, value, name)
        return [value._replace(kind=Kind.CLASS)]

    def _of_literal(self, value: Value, name: str) -> Iterable[Value]:
        """A method that is written in a literal, or what is given there under a name."""
        unit = self.unit(value.path)
        members = unit.children.get(value.name, {}).get(name, ())
        if value.name in unit.definitions:  # a class without a name, in a function
            members = [member for member in members if member.kind == "method"]
        found = [found for member in members for found in self._as_member(value, unit, member)]
        if found:
            return found
        for scope, expression in unit.attributes.get(value.name, {}).get(name, ())[:MOST_VALUES]:
            found += self._values(unit, scope, notation.parse(expression))
        if not found:
            bases = self._bases_of_unnamed(unit, value.name)
            found = [one for base in bases for one in self.member(base._replace(kind=Kind.OBJECT), name)]
        return found or [
            one for record in value.held if record.kind is Kind.RECORD for one in self._of_record(record, name)
        ]

    def _record(self, value: Value) -> tuple[Unit, str, Sequence[tuple[str, Expression]]]:
        scope, _, text = value.name.partition("\t")
        record = notation.parse(text)
        return self.unit(value.path), scope, record.parts if isinstance(record, Record) else ()

    def _of_record(self, value: Value, name: str) -> Iterable[Value]:
        """What is under a name, else in what is spread."""
        unit, scope, parts = self._record(value)
        found = [one for key, part in parts if key == name for one in self._values(unit, scope, part)]
        if found:
            return [one.found(How.RECEIVER) for one in found]
        spread = [one for key, part in parts if not key for one in self._values(unit, scope, part)]
        return [found for one in spread for found in self.member(one, name)]

    def _of_function(self, value: Value, name: str) -> Iterable[Value]:
        """What a function has under a name: the ways to call it, and what it is given as an object."""
        unit = self.unit(value.path)
        policy = unit.policy
        if name in policy.callers:
            return [value]
        if not policy.has_prototypes:
            return ()
        definition = unit.definitions[value.name]
        if name == "prototype":
            return [value._replace(kind=Kind.OBJECT)]
        members = unit.children.get(definition.qualified, {}).get(name, ())
        found = [one for member in members for one in self.defined(unit, member, How.RECEIVER)]
        for expression in unit.binds.get(definition.parent, {}).get(f"{definition.name}.{name}", ())[:MOST_VALUES]:
            found += self._values(unit, definition.parent, notation.parse(expression))
        return found or [Value(Kind.EXTERNAL, "", f"Function.{name}")]

    def _of_deref(self, value: Value, name: str) -> list[Value]:
        """A member of what an object stands for by its own rule, or that is added to a type of the library."""
        unit = self.unit(value.path)
        if name == "deref" or not unit.policy.has_impls:
            return []
        return [
            found
            for member in self.member(value, "deref")
            if member.kind is Kind.FUNCTION
            for held in self._returned(member)
            for found in self.member(held, name)
        ]

    def _added(self, seen_from: Unit, value: Value, name: str) -> list[Value]:
        """A method of a trait of the source that is added to a type of the library."""
        if value.kind not in {Kind.EXTERNAL, Kind.EXTERNAL_OBJECT}:
            return []
        family, last = seen_from.policy.family, value.name.rpartition(".")[2]
        return [
            Value(Kind.FUNCTION, path, member.id, How.RECEIVER)
            for path, definition in self.program.named.get((family, last), ())
            if definition.kind == "impl"
            for unit in [self.unit(path)]
            for member in unit.children.get(definition.qualified, {}).get(name, ())
            if any(
                base.kind is Kind.CLASS and name in self.unit(base.path).children.get(base.name, ())
                for _, bases in self.bases(unit, definition)
                for base in bases
            )
        ]

    def _is_row(self, function: Value, name: str) -> bool:
        """Whether a function stands for a row of a table, or a pair, in which it is the one function."""
        language = self.unit(function.path).language
        return language == "c" or (language == "cpp" and name == "second")

    def _without_member(self, value: Value, name: str) -> Iterable[Value]:
        """What a name means that no class has: a constant of an enumeration, or half of a pair in C++."""
        unit = self.unit(value.path)
        if value.kind is Kind.CLASS and unit.definitions[value.name].kind == "enum":
            held = (value._replace(kind=Kind.OBJECT),)
            return [*held, Value(Kind.EXTERNAL, "", f"{value.name}.{name}", How.RECEIVER, held)]
        return [value] if name == "second" and unit.policy.has_pointers else ()
