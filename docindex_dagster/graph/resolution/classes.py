"""What definitions stand for: classes with their parts, what they inherit, and what is in them."""

from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.code.expressions import UNKNOWN
from docindex_dagster.graph import builtins, notation, spaces
from docindex_dagster.graph.notation import (
    Member,
    Name,
)
from docindex_dagster.graph.offers import full_name, is_class
from docindex_dagster.graph.resolution.base import (
    BASES,
    BLOCK,
    MOST_CALLERS,
    MOST_VALUES,
    NameResolver,
    Values,
    argument_at,
    distinct,
)
from docindex_dagster.graph.resolution.own_names import members_of, own_names
from docindex_dagster.graph.units import FUNCTIONS, Definition, Reference, Unit
from docindex_dagster.graph.values import How, Kind, Value, is_known

_MOST_DERIVED = 40  # classes


class Classes(NameResolver):
    """What definitions stand for."""

    def bases(self, unit: Unit, definition: Definition) -> Iterator[tuple[Reference, Values]]:
        """The base classes that a definition names, each with what the name stands for."""
        for reference in unit.bases.get(definition.id, ()):
            name = reference.value.partition("<")[0]
            inside = unit.children.get(definition.qualified, {}).get(name, ()) if reference.kind == "companion" else ()
            found = tuple(value for one in inside for value in self.defined(unit, one, How.SCOPE))
            if not found and reference.value.endswith(")"):
                found = self._values(unit, definition.parent, notation.parse(reference.value))
            elif not found:
                found = self._type_names(unit, definition.parent, name)
                if not found and reference.kind == "mixin" and unit.policy.has_open_classes:
                    found = self._type_names(unit, definition.id, name)
            yield (
                reference,
                distinct(made for one in found for made in (self._made(one) if one.kind is Kind.MODULE else [one])),
            )

    def ancestor_names(self, value: Value) -> frozenset[str]:
        """The last names of the classes of an object."""
        none: frozenset[str] = frozenset()
        return self.memo.settled(("ancestor names", value), none, self._ancestor_names, value)

    def _ancestor_names(self, value: Value) -> frozenset[str]:
        return frozenset(one.name.rpartition(".")[2].partition("~")[0] for one in self.ancestors(value))

    def defined(self, unit: Unit, definition: Definition, how: How) -> Iterable[Value]:
        """What a definition stands for where its name is used."""
        policy = unit.policy
        if (definition.kind == "impl" and policy.has_impls) or (definition.kind == "macro" and policy.has_macro_names):
            return ()
        if is_class(definition):
            first = unit.definitions[definition.qualified]  # of the parts of a class
            is_part = unit.policy.has_partial_classes and is_class(first)
            return [Value(Kind.CLASS, unit.path, first.id if is_part else definition.id, how)]
        if definition.kind in FUNCTIONS:
            function = Value(Kind.FUNCTION, unit.path, definition.id, how)
            return [function, *self._decorated(unit, definition)] if policy.has_decorators else [function]
        if definition.kind == "type" and policy.separates_kinds and definition.returns:  # of functions
            return [Value(Kind.EXTERNAL_OBJECT, "", definition.name, how)]
        inside = unit.binds.get(definition.id, {}) if definition.kind in {"type", "constant"} else {}
        bound = inside.get(definition.name) or unit.binds.get(definition.parent, {}).get(definition.name, ())
        found = [
            value.found(how)
            for expression in bound[:MOST_VALUES]
            for value in self._values(unit, definition.parent, notation.parse(expression))
        ]
        if not found and definition.returns:
            found = [value.found(how) for value in self._typed(unit, definition.parent, definition.returns)]
        return found

    def _decorated(self, unit: Unit, definition: Definition) -> Iterator[Value]:
        """The object that the outermost decorator makes of a function: as it is declared, or of its own class."""
        for expression in unit.decorated_by(definition.id)[:1]:
            name = expression.removesuffix("()")
            for decorator in self._values(unit, definition.parent, notation.parse(name)):
                for given in self._declared_results(decorator):
                    if name == expression:
                        made: Values = (given,)
                    else:
                        made = given.held[-1:] if builtins.is_callable(given.name) else ()
                    yield from (one.found(How.RETURNED) for one in made if one.kind is Kind.OBJECT)

    def _declared_results(self, function: Value) -> Iterator[Value]:
        """What a function, or each of its overloads, is declared to give; of a class, an object."""
        if function.kind is Kind.CLASS:
            yield function._replace(kind=Kind.OBJECT)
        if function.kind is not Kind.FUNCTION:
            return
        unit, own = self.unit(function.path), self.definition(function)
        same = [one for one in unit.definitions.values() if one.qualified == own.qualified]
        overloads = [one for one in same if any(map(builtins.is_overload, unit.decorated_by(one.id)))]
        for one in overloads or [own]:
            yield from self._typed(unit, one.id, one.returns) if one.returns else ()

    def _parts(self, value: Value) -> Sequence[tuple[Unit, Definition]]:
        """The definitions of one class: in its file, and in others where the language allows it."""
        question = "parts", value.path, value.name
        return self.memo.settled(question, (), self._found_parts, value.path, value.name)

    def _found_parts(self, path: str, name: str) -> Sequence[tuple[Unit, Definition]]:
        unit = self.unit(path)
        return [*self._parts_of(unit, unit.definitions[name])]

    def _parts_of(self, unit: Unit, own: Definition) -> Iterator[tuple[Unit, Definition]]:
        yield unit, own
        for definition in unit.definitions.values():
            if definition.qualified == own.qualified and definition.id != own.id and is_class(definition):
                yield unit, definition
        policy = unit.policy
        if policy.sharing == "global" and policy.has_open_classes:
            yield from self._reopened(unit, own)
        if policy.has_partial_classes and own.kind != "module":
            for path, definition in self.program.full.get((policy.family, full_name(unit, own.qualified)), ()):
                if path != unit.path and is_class(definition):
                    yield self.unit(path), definition
        if policy.has_impls and own.kind != "module":
            yield from self._impls(unit, own)

    def _reopened(self, unit: Unit, own: Definition) -> Iterator[tuple[Unit, Definition]]:
        """Where else a class is opened and given attributes or bases; its methods are found by their full names."""
        for path, definition in self.program.named.get((unit.policy.family, own.name), ()):
            if path == unit.path or definition.qualified != own.qualified or not is_class(definition):
                continue
            other = self.unit(path)
            has_attributes = definition.id in other.binds or definition.qualified in other.attributes
            if has_attributes or definition.id in other.bases:
                yield other, definition

    def _impls(self, unit: Unit, own: Definition) -> Sequence[tuple[Unit, Definition]]:
        """Where else methods are added to a class."""
        question = "impls", unit.path, own.id
        return self.memo.settled(question, (), self._found_impls, unit, own)

    def _found_impls(self, unit: Unit, own: Definition) -> Sequence[tuple[Unit, Definition]]:
        return tuple(
            (other, definition)
            for path, definition in self.program.named.get((unit.policy.family, own.name), ())
            if definition.kind == "impl"
            and (other := self.program.units[path])
            and (path != unit.path or definition.qualified != own.qualified)
            and (value := self._class_of(other, definition)).path == unit.path
            and value.name == own.id
        )

    def ancestors(self, value: Value) -> Iterator[Value]:
        """A class and what it is made from, in the order in which members are looked for."""
        stack, seen = [value], set()
        while stack:
            current = stack.pop()
            if (current.path, current.name) in seen:
                continue
            seen.add((current.path, current.name))
            yield current
            if current.kind not in {Kind.EXTERNAL, Kind.LITERAL, Kind.RECORD}:
                stack += reversed(self._direct_bases(current))

    def _direct_bases(self, value: Value) -> Values:
        """What all parts of a class are made from."""
        question = "bases", value.path, value.name
        return self.memo.settled(question, (), self._found_bases, value.path, value.name)

    def _found_bases(self, path: str, name: str) -> Values:
        parts = self._parts(Value(Kind.CLASS, path, name))
        made_from = (values for unit, definition in parts for _, values in self.bases(unit, definition))
        bases = [base for values in made_from for base in values if base.kind in BASES]
        extension = self.unit(path).policy.extension
        if extension:
            bases += [found for one in bases if one.kind is Kind.CLASS for found in self._extension(one, extension)]
        return tuple(bases)

    def _extension(self, module: Value, name: str) -> Iterator[Value]:
        for unit, definition in self._parts(module):
            for member in unit.children.get(definition.qualified, {}).get(name, ()):
                yield Value(Kind.CLASS, unit.path, member.id)

    def _members(self, owner: Value, ancestors: Iterable[Value], name: str) -> Iterable[Value]:
        external = None
        for ancestor in ancestors:
            if ancestor.kind is Kind.EXTERNAL:
                external = external or ancestor
            elif found := self._own_member(owner, ancestor, name):
                is_own = (ancestor.path, ancestor.name) == (owner.path, owner.name)
                how = How.RECEIVER if is_own else How.INHERITED
                return [value.found(how) for value in found]
        if name in self.unit(owner.path).policy.same and owner.kind is Kind.OBJECT:
            return [Value(Kind.EXTERNAL, "", f"{builtins.ANY}.{name}", How.RECEIVER, (owner,))]
        if external is None:
            return ()
        iteration = self.unit(owner.path).policy.iteration
        held: Values = ()
        if iteration and name != iteration:
            each = self.member(owner, iteration)
            held = distinct(found for one in each for found in self._given_by(one, BLOCK, 0))
        return [Value(Kind.EXTERNAL, "", f"{external.name}.{name}", How.INHERITED, held)]

    def _own_member(self, owner: Value, cls: Value, name: str) -> list[Value]:
        """What a class itself has under a name, without what it inherits."""
        if cls.kind in {Kind.LITERAL, Kind.RECORD}:
            return [*self.member(cls, name)]
        parts = self._parts(cls)
        if parts and self._lacks(owner, cls, parts, name):
            return []
        for unit, definition in parts:
            policy = unit.policy
            if policy.is_made_by_name and name == definition.name:
                return [cls._replace(kind=Kind.CLASS)]
            found: list[Value] = []
            if unit.path == cls.path or policy.has_partial_classes or policy.has_impls:
                for member in self._children(unit, definition, name):
                    found += self._as_member(owner, *member)
            if not found or (policy.separates_kinds and name in unit.binds.get(definition.id, ())):
                found += self._fields(owner, unit, definition, name)
            if not found and definition.kind == "module" and policy.has_module_paths:
                found = self._used_in(unit, definition.id, name)
            if found:
                return found
        return []

    def _lacks(self, owner: Value, cls: Value, parts: Sequence[tuple[Unit, Definition]], name: str) -> bool:
        """Whether it is plain, without following anything, that a class itself has nothing under a name."""
        key = cls.path, cls.name
        own = self._own_names.get(key)
        if own is None:
            own = self._own_names[key] = own_names(cls.path, parts)
        if not own.is_complete or name in own.names or "." in name or (own.asks_owner and owner.held):
            return False
        if own.reopened is None:
            return True
        family, full = own.reopened
        return not self.program.full.get((family, f"{full}.{name}"))

    def _fields(self, owner: Value, unit: Unit, definition: Definition, name: str) -> list[Value]:
        """What an attribute is: as declared, as assigned in methods, and as given where objects are made."""
        policy = unit.policy
        found = self._declared_fields(owner, unit, definition, name)
        assigned = unit.attributes.get(definition.qualified, {}).get(name, ())[:MOST_VALUES]
        if policy.separates_kinds:  # of what has a declared type, just functions matter
            assigned = assigned if all(_may_be_function(value) for value in found) else ()
        for scope, expression in assigned:
            written = unit.children.get(f"{scope}.this", {}).get(name, ())
            found += [value for one in written for value in self.defined(unit, one, How.RECEIVER)]
            values = self._values(unit, scope, notation.parse(expression))
            found += [value for value in values if value.kind is Kind.FUNCTION or not policy.separates_kinds]
        found = self._with_methods(unit, definition, name, found)
        return [*found, *self._filled_in(unit, definition, name, found)]

    def _declared_fields(self, owner: Value, unit: Unit, definition: Definition, name: str) -> list[Value]:
        """What the body of a class says of an attribute."""
        policy = unit.policy
        expressions = unit.binds.get(definition.id, {}).get(name, ()) if is_class(definition) else ()
        if policy.has_namespaces:
            return self._declared_or_given(unit, definition.id, expressions)
        held = self._held_by(owner) if owner.held and policy.has_filled_fields else {}
        return [
            value
            for expression in expressions[:MOST_VALUES]
            for value in (
                self._typed(unit, definition.id, expression[1:], held)
                if held and expression.startswith(":")
                else self._values(unit, definition.id, notation.parse(expression))
            )
        ]

    def _filled_in(self, unit: Unit, definition: Definition, name: str, found: Sequence[Value]) -> Iterator[Value]:
        """What others put into an attribute, where the class alone does not tell what it is."""
        policy = unit.policy
        names = [parameter for parameter, _ in unit.parameters.get(definition.id, ())] if is_class(definition) else []
        if name in names and not policy.separates_kinds:
            yield from self._given(Value(Kind.CLASS, unit.path, definition.id), names.index(name), name)
        is_field = name in unit.binds.get(definition.id, ())
        if policy.has_pointers and is_field and not any(map(is_known, found)):
            yield from spaces.assigned(self, Value(Kind.CLASS, unit.path, definition.id), name)
        if policy.has_filled_fields and found and all(self._is_open(value) for value in found):
            yield from self._filled(unit, definition, name)
            yield from self._assigned(unit, definition, name)

    def _with_methods(self, unit: Unit, definition: Definition, name: str, found: list[Value]) -> list[Value]:
        """The values of a field, with the functions that are written in it."""
        literal = f"{definition.qualified}.{name}"
        if literal not in unit.children or literal in unit.definitions:
            return found
        others = [value for value in found if value.kind is not Kind.RECORD]
        return [Value(Kind.LITERAL, unit.path, literal, How.RECEIVER, distinct(found)), *others]

    def _held_by(self, owner: Value) -> dict[str, Value]:
        """What the type parameters of a class stand for in an object, as far as that is declared."""
        if owner.kind is not Kind.OBJECT or not owner.path:
            return {}
        unit = self.unit(owner.path)
        names = dict.fromkeys(name for name, _ in unit.generics.get(owner.name, ()))
        held = dict(zip(names, owner.held, strict=True)) if len(names) == len(owner.held) else {}
        return {**held, "Self": owner}

    def _filled(self, unit: Unit, definition: Definition, name: str) -> Iterator[Value]:
        """What a field is where objects of a class are written with their fields."""
        fields = [*unit.binds.get(definition.id, ())]
        position = fields.index(name) if name in fields else MOST_CALLERS
        family = unit.policy.family
        for path, reference in self.program.fills.get((family, definition.name), ())[:MOST_CALLERS]:
            given = argument_at(reference.arguments, position, name)
            if given is None or given == UNKNOWN:
                continue
            other = self.unit(path)
            made = self._type_names(other, reference.scope, reference.name)
            if any((value.path, value.name) == (unit.path, definition.id) for value in made):
                yield from (
                    value.found(How.ARGUMENT) for value in self._values(other, reference.scope, notation.parse(given))
                )

    def _assigned(self, unit: Unit, definition: Definition, name: str) -> Iterator[Value]:
        """What is assigned to a field of objects of a class."""
        family = unit.policy.family
        for path, reference in self.program.assigned.get((family, name), ())[:MOST_CALLERS]:
            other = self.unit(path)
            owner = notation.parse(reference.name.removesuffix("[]").rpartition(".")[0])
            made = self._values(other, reference.scope, owner)
            if any((value.path, value.name) == (unit.path, definition.id) for value in made):
                value = notation.parse(f"{{{reference.value}}}" if reference.name.endswith("[]") else reference.value)
                yield from (one.found(How.ARGUMENT) for one in self._values(other, reference.scope, value))

    def _children(self, unit: Unit, definition: Definition, name: str) -> Iterator[tuple[Unit, Definition]]:
        """The members of a class under a name."""
        for member in unit.children.get(members_of(definition), {}).get(name, ()):
            yield unit, member
        policy = unit.policy
        if not policy.has_open_classes:
            return
        full = full_name(unit, definition.qualified)
        for path, member in self.program.full.get((policy.family, f"{full}.{name}"), ()):
            if path != unit.path and member.parent:
                other = self.unit(path)
                if policy.sharing != "folder" or path.rpartition("/")[0] == unit.path.rpartition("/")[0]:
                    yield other, member

    def _as_member(self, owner: Value, unit: Unit, member: Definition) -> Iterable[Value]:
        is_held = owner.kind in {Kind.OBJECT, Kind.CLASS}
        policy = unit.policy
        is_object = policy.has_namespaces or not policy.calls_classes
        object_of = owner._replace(kind=Kind.OBJECT) if is_object else owner
        held = (object_of,) if is_held else ()
        for value in self.defined(unit, member, How.RECEIVER):
            if value.kind is Kind.FUNCTION and self._is_property(unit, member):
                yield from self._returned(value._replace(held=held))
            else:
                yield value._replace(held=held) if value.kind is Kind.FUNCTION else value

    def _is_property(self, unit: Unit, member: Definition) -> bool:
        if member.id in unit.properties:
            return True
        properties = unit.policy.properties
        return bool(properties) and any(value in properties for value in unit.decorated_by(member.id))

    def _overriding(self, unit: Unit, scope: str, expression: Member | Name, values: Values) -> Values:
        """The methods of derived classes that may run where an object calls one of its own."""
        if isinstance(expression, Member) and expression.of != Name("this"):
            return ()
        if not all(value.kind is Kind.FUNCTION for value in values):
            return ()
        owners = self._values(unit, scope, Name("this"))
        if isinstance(expression, Name) and not unit.policy.has_implicit_members:
            return ()
        found: list[Value] = []
        for owner in owners:
            if owner.kind not in {Kind.OBJECT, Kind.LITERAL}:
                continue
            for derived in self._derived(owner):
                name = expression.name
                if values and not self._may_run_in(unit, scope, derived):
                    continue
                members = self._own_member(derived, derived, name) if values else self.member(derived, name)
                found += [one._replace(how=How.INHERITED) for one in members if one.kind is Kind.FUNCTION]
        return distinct(found) if len(found) < MOST_VALUES else ()

    def _may_run_in(self, unit: Unit, scope: str, derived: Value) -> bool:
        """Whether a method may be called on an object of a class; not where only those of other classes call it."""
        method = next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)
        name = method.name if method else ""
        called = self.program.callers.get((unit.policy.family, name), ())
        if not called or any(reference.name not in {f"this.{name}", f"super.{name}"} for _, reference in called):
            return True
        above = {(one.path, one.name) for one in self.ancestors(derived)}
        for path, reference in called[:MOST_CALLERS]:
            for holder in self._values(self.program.units[path], reference.scope, Name("this")):
                of = {(one.path, one.name) for one in self.ancestors(holder)}
                if (holder.path, holder.name) in above or (derived.path, derived.name) in of:
                    return True
        return False

    def _derived(self, owner: Value) -> Iterator[Value]:
        """The classes that are made from another, and those made from them."""
        stack, seen = [owner], {(owner.path, owner.name)}
        in_tests = self.unit(owner.path).is_test
        while stack and len(seen) < _MOST_DERIVED:
            current = stack.pop()
            question = "derived", current.path, current.name, in_tests
            none: Values = ()
            found = self.memo.settled(question, none, self._found_derived, current.path, current.name, in_tests)
            new = [derived for derived in found if (derived.path, derived.name) not in seen]
            seen.update((derived.path, derived.name) for derived in new)
            stack += new
            yield from new

    def _found_derived(self, path: str, name: str, in_tests: bool) -> Values:  # noqa: FBT001 of a question
        """The classes that name a class as a base; those of tests only with `in_tests`."""
        family = self.unit(path).policy.family
        found = []
        for other_path, identifier in self.program.derived.get((family, name.rpartition(".")[2].partition("~")[0]), ()):
            other = self.program.units[other_path]
            if identifier not in other.definitions or (other.is_test and not in_tests):
                continue
            bases = (value for _, values in self.bases(other, other.definitions[identifier]) for value in values)
            if any((base.path, base.name) == (path, name) for base in bases):
                found.append(Value(Kind.OBJECT, other_path, identifier))
        return tuple(found)


def _may_be_function(value: Value) -> bool:
    """Whether what has a declared type may be a function."""
    return value.kind is Kind.EXTERNAL_OBJECT and not builtins.is_value(value.name)
