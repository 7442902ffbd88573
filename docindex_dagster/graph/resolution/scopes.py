"""What a name stands for by the scopes around it: parameters, variables, what is defined beside it, `this`."""

from collections.abc import Iterable, Sequence

from docindex_dagster.graph import builtins, notation, spaces
from docindex_dagster.graph.notation import Name
from docindex_dagster.graph.offers import is_class
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.resolution.base import (
    BASES,
    MOST_VALUES,
    PATH_WORDS,
    NameResolver,
    Values,
    distinct,
    is_marked,
)
from docindex_dagster.graph.units import FILE, FUNCTIONS, Definition, Unit
from docindex_dagster.graph.values import How, Kind, Value, is_known

_MOST_MEANINGS = 2  # of a variable
_WANTED = {"function": {Kind.FUNCTION, Kind.CLASS}, "type": {Kind.CLASS}}


class Scopes(NameResolver):
    """What a name stands for by the scopes around it."""

    def _written(self, unit: Unit, scope: str, name: str) -> Iterable[Value]:
        """A function that is written as an element of a collection."""
        around = unit.definitions[scope].qualified if scope in unit.definitions else FILE
        return [
            Value(Kind.FUNCTION, unit.path, definition.id)
            for definition in unit.children.get(around, {}).get(name, ())
            if definition.kind == "method"
        ]

    def _bare(self, unit: Unit, scope: str, name: str) -> Iterable[Value]:
        """A variable or parameter, or else what a method of that name returns."""
        found = self._values(unit, scope, Name(name))
        is_variable = name in unit.binds.get(scope, ()) or unit.takes(scope, name)
        if is_variable:
            return found
        return [value for one in found for value in (self._returned(one) if one.kind is Kind.FUNCTION else [one])]

    def _lookup(self, unit: Unit, scope: str, wanted: Name) -> Iterable[Value]:
        """What a name stands for at a place."""
        policy, name = unit.policy, wanted.name
        own = self._of_itself(unit, scope, name, policy)
        if own is not None:
            return own
        if policy.sharing == "included":
            return self._included(unit, scope, wanted, policy)
        for around in unit.around(scope):
            found = self._in_scope(unit, around, scope, wanted, policy)
            if found is not None:
                return found
            is_open = policy.has_implicit_members and (
                policy.has_open_classes or (policy.separates_kinds and not policy.extends_receiver)
            )
            if is_open and around.parent and around.parent not in unit.definitions:
                beside = self._of_literal(Value(Kind.LITERAL, unit.path, around.parent), name)
                if beside:
                    return beside
        return self._values(unit, FILE, wanted) if scope != FILE else self._outermost(unit, wanted)

    def _outermost(self, unit: Unit, wanted: Name) -> Iterable[Value]:
        """What a name stands for outside of all functions and classes of a file."""
        if unit.policy.separates_kinds:
            return self._in_namespaces(unit, wanted, unit.policy)
        return self._in_file(unit, wanted.name, unit.policy)

    def _of_itself(self, unit: Unit, scope: str, name: str, policy: Policy) -> Iterable[Value] | None:
        """What a name stands for by which a class or object names itself; None of any other name."""
        owner = self.owner(unit, scope) if name in policy.selves or name == "this" else None
        if name in PATH_WORDS and policy.has_module_paths:
            is_object = name == "this" and owner is not None
            return [owner._replace(kind=Kind.OBJECT)] if is_object and owner else self._path_word(unit, scope, name)
        if name == "this":
            receiver = self._receiver(unit, scope, policy)
            return receiver if receiver is not None else self._this(unit, scope)
        if name == "super":
            return self._super(unit, scope)
        if name in policy.selves:
            return [owner] if owner else ()
        return self._class_itself(unit, scope, name, policy)

    def _class_itself(self, unit: Unit, scope: str, name: str, policy: Policy) -> Iterable[Value] | None:
        """The class around a place, where a name stands for it; None of any other name."""
        if name == "class" and policy.has_prototypes:
            return self._unnamed_class(unit, scope)
        if name in policy.makers and policy.has_implicit_members and (cls := self._class_around(unit, scope)):
            return [Value(Kind.CLASS, unit.path, cls.id)]
        return None

    def _included(self, unit: Unit, scope: str, wanted: Name, policy: Policy) -> Iterable[Value]:
        """What a name stands for in the functions around it, else in the namespaces and in what a file includes."""
        home = ""
        for around in unit.around(scope):
            if around.kind == "module":
                home = home or around.qualified
                break
            found = self._in_scope(unit, around, scope, wanted, policy)
            if found is not None:
                return found
            home = spaces.space_of(unit, around)
        seen = spaces.looked_up(self, unit, spaces.home_of(self, unit, home), wanted.name)
        return seen or self._built_in(wanted.name, policy)

    def _built_in(self, name: str, policy: Policy) -> list[Value]:
        return [Value(Kind.EXTERNAL, "", name)] if builtins.is_builtin(policy.family, name) else []

    def _class_around(self, unit: Unit, scope: str) -> Definition | None:
        if not unit.policy.has_open_classes:
            return unit.class_around(scope)
        return next((around for around in unit.around(scope) if is_class(around)), None)

    def _inherited_method(self, unit: Unit, scope: str) -> Iterable[Value]:
        """The method that the one around a place overrides."""
        method = next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)
        owner = self._class_around(unit, scope)
        if method is None or owner is None:
            return ()
        first, *others = self.ancestors(Value(Kind.OBJECT, unit.path, owner.id))
        if found := [*self._members(first, others, method.name)]:
            return found
        return [one for host in self._derived(first) for one in self._after(host, first, method.name)]

    def _after(self, host: Value, module: Value, name: str) -> Iterable[Value]:
        """The method that a class inherits behind one of its modules."""
        ancestors = [*self.ancestors(host)]
        at = next((at for at, one in enumerate(ancestors) if (one.path, one.name) == (module.path, module.name)), None)
        return self._members(host, ancestors[at + 1 :], name) if at is not None else ()

    def _super(self, unit: Unit, scope: str) -> Iterable[Value]:
        if unit.policy.has_method_super:
            return self._inherited_method(unit, scope)
        owner = self.owner(unit, scope)
        if owner is None and unit.policy.has_prototypes:
            holder, _ = unit.holder(scope)
            return [base._replace(kind=Kind.OBJECT) for base in self._bases_of_unnamed(unit, holder)]
        if owner is not None and self._is_of_constant(unit, scope):
            return [owner._replace(kind=Kind.OBJECT)]
        return [owner._replace(kind=Kind.PARENT)] if owner else ()

    def _is_of_constant(self, unit: Unit, scope: str) -> bool:
        """Whether a method is written in the body of a constant of an enumeration."""
        method = next(iter(unit.around(scope)), None)
        enum = unit.definitions.get(method.parent.rpartition(".")[0]) if method else None
        return method is not None and method.parent not in unit.definitions and enum is not None and enum.kind == "enum"

    def _unnamed_class(self, unit: Unit, scope: str) -> Iterable[Value]:
        """The class without a name that a function gives, whose methods are the function's."""
        function = next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)
        return [Value(Kind.LITERAL, unit.path, function.qualified)] if function else ()

    def _bases_of_unnamed(self, unit: Unit, function: str) -> Sequence[Value]:
        """What such a class is made from, where that is one class."""
        definition = unit.definitions.get(function)
        if definition is None or definition.kind not in FUNCTIONS or function not in unit.bases:
            return ()
        found = distinct(
            value
            for reference in unit.bases[function]
            for value in self._values(unit, function, notation.parse(reference.value))
            if value.kind in BASES
        )
        return found if len(found) == 1 else ()

    def _this(self, unit: Unit, scope: str) -> Iterable[Value]:
        """What a class, a constructor or a literal calls `this`."""
        if not unit.policy.has_prototypes:
            if unit.policy.self_name:
                return self._by_parameter(unit, scope)
            found = self.owner(unit, scope)
            return [found._replace(kind=Kind.OBJECT)] if found else ()
        holder, is_literal = unit.holder(scope)
        if is_literal:
            owner = unit.class_around(scope)  # that of an arrow function in it
            of_class = [Value(Kind.OBJECT, unit.path, owner.id)] if owner else []
            return [Value(Kind.LITERAL, unit.path, holder), *of_class]
        return [Value(Kind.OBJECT, unit.path, holder)] if holder in unit.definitions else ()

    def _by_parameter(self, unit: Unit, scope: str) -> list[Value]:
        """The object, or class, that a method is given; what a function outside of a class declares its like to be."""
        policy = unit.policy
        for around in unit.around(scope):
            is_of_class = unit.takes(around.id, policy.class_name)
            if not is_of_class and not unit.takes(around.id, policy.self_name):
                continue
            is_method = around.parent in unit.definitions and is_class(unit.definitions[around.parent])
            name = policy.class_name if is_of_class else policy.self_name
            if not is_method and (declared := [*self._parameter(unit, around, name)]):
                return declared
            owner = self.owner(unit, scope)
            return [owner._replace(kind=Kind.CLASS if is_of_class else Kind.OBJECT)] if owner else []
        owner = self.owner(unit, scope)
        return [owner._replace(kind=Kind.OBJECT)] if owner else []

    def owner(self, unit: Unit, scope: str) -> Value | None:
        """The class whose member a place is in, also of a method that is written outside of its class."""
        owner = self._class_around(unit, scope)
        if owner is not None:
            return self._class_of(unit, owner)
        if unit.policy.sharing != "included":
            return None
        *_, outermost = (None, *(around for around in unit.around(scope) if around.kind != "module"))
        home = spaces.space_of(unit, outermost) if outermost else ""
        return next(iter(spaces.classes_at(self, unit, home)), None) if home else None

    def _class_of(self, unit: Unit, definition: Definition) -> Value:
        """The class that a definition is, or to which it adds methods."""
        if definition.kind == "impl":
            for value in self._type_names(unit, definition.parent, definition.name):
                if value.kind is Kind.CLASS:
                    return value
        return Value(Kind.CLASS, unit.path, definition.id)

    def _in_scope(  # noqa: C901, PLR0911 one a sort of scopes
        self, unit: Unit, around: Definition, scope: str, wanted: Name, policy: Policy
    ) -> Iterable[Value] | None:
        """What a name stands for in one of the scopes around it; None where that says nothing of it."""
        name = wanted.name
        bounds = [bound for parameter, bound in unit.generics.get(around.id, ()) if parameter == name]
        if bounds and not policy.separates_kinds:
            return [value for bound in bounds for value in self._values(unit, around.id, notation.parse(bound))]
        if is_class(around):
            if policy.separates_kinds and name == around.name and around.kind != "module":  # and not its constructor
                return [Value(Kind.CLASS, unit.path, around.id)]
            if (
                policy.has_implicit_members
                or (around.id == scope and policy.has_class_scope and not policy.has_prototypes)
                or around.kind == "module"
            ):
                owner = Value(Kind.OBJECT, unit.path, around.id)
                extended = policy.extends_receiver and wanted.wanted != "type"
                if not policy.has_implicit_members and around.kind == "class":  # what it inherits needs the object
                    return self._implied(self._own_member(owner, owner, name), wanted, policy)
                found = self._members_of(unit, scope, (owner,), name) if extended else self.member(owner, name)
                return self._implied(found, wanted, policy)
            return None
        if policy.separates_kinds and (wanted.wanted or around.id in unit.bases or around.id in unit.receivers):
            return self._in_member(unit, around, wanted, policy)
        imported = self._used_in(unit, around.qualified, name) if policy.has_local_imports else []
        is_parameter = unit.takes(around.id, name)
        if name in unit.binds.get(around.id, ()):
            found = [*imported, *self.bound(unit, around.id, f"{around.qualified}.{name}", name)]
            if found or not is_parameter:
                return found
        if imported:
            return imported
        if is_parameter:
            return self._parameter(unit, around, name)
        defined = named_in(unit, around.qualified, name, policy)
        return [value for inner in defined for value in self.defined(unit, inner, How.SCOPE)] if defined else None

    def _implied(self, found: Iterable[Value], wanted: Name, policy: Policy) -> list[Value] | None:
        """Of members that need no object those that are wanted; None where there are none."""
        if not policy.separates_kinds:
            return [*found] or None
        kinds = _WANTED.get(wanted.wanted)
        fitting = [value for value in found if value.kind is not Kind.EXTERNAL and (not kinds or value.kind in kinds)]
        return fitting or None

    def _in_member(self, unit: Unit, around: Definition, wanted: Name, policy: Policy) -> list[Value] | None:
        """What a name stands for in a function that is a member of something else than what it is written in."""
        name = wanted.name
        if not wanted.wanted:
            if name in unit.binds.get(around.id, ()):
                return self.bound(unit, around.id, f"{around.qualified}.{name}", name)
            if unit.takes(around.id, name):
                return [*self._parameter(unit, around, name)]
        defined = unit.children.get(around.qualified, {}).get(name, ())
        found = [value for inner in defined for value in self.defined(unit, inner, How.SCOPE)]
        if not found and wanted.wanted != "type":
            bases = [base for _, values in self.bases(unit, around) for base in values if base.kind is Kind.CLASS]
            owners = [base._replace(kind=Kind.OBJECT) for base in bases]
            if policy.extends_receiver and around.id in unit.receivers:
                owners += self._typed(unit, around.id, unit.receivers[around.id])
            found = [*self._members_of(unit, around.id, tuple(owners), name)]
        return self._implied(found, wanted, policy)

    def _receiver(self, unit: Unit, scope: str, policy: Policy) -> list[Value] | None:
        """What `this` is in a function that is added to a type."""
        if not policy.extends_receiver or not unit.receivers:
            return None
        for around in unit.around(scope):
            if is_class(around):
                return None
            if around.id in unit.receivers:
                return self._typed(unit, around.id, unit.receivers[around.id])
        return None

    def _in_file(self, unit: Unit, name: str, policy: Policy) -> Iterable[Value]:
        found = self._top(unit, name, How.FILE)
        if not found:
            found = [value for step in self._imported(unit, name) for value in step]
        if not found and policy.sharing != "file":
            found = [*self._shared(unit, name, policy)]
        if not found:
            for star in unit.stars:
                if not star.scope:
                    found += [value.found(How.IMPORT) for value in self._of_import(unit, star.named(name))]
        if policy.has_module_paths and all(value.kind is Kind.EXTERNAL for value in found):
            found = self._files_of(unit, f"self.{name}") or self._files_of(unit, name) or found
        if not found and policy.has_namespaces:
            found = spaces.beyond(self, unit, name)
        return found or self._built_in(name, policy)

    def _top(self, unit: Unit, name: str, how: How) -> list[Value]:
        """What a file itself defines or assigns under a name."""
        found = [
            value
            for definition in named_in(unit, FILE, name, unit.policy)
            for value in self.defined(unit, definition, how)
        ]
        if found:
            return found
        return [value.found(how) for value in self.bound(unit, FILE, name, name)]

    def bound(self, unit: Unit, scope: str, qualified: str, name: str) -> list[Value]:
        """What is assigned to a name."""
        policy, names = unit.policy, unit.binds.get(scope, {})
        if policy.has_namespaces:
            found = self._declared_or_given(unit, scope, [*names.get(name, ()), *names.get(f".{name}", ())])
        else:
            expressions = names.get(name, ())[:MOST_VALUES]
            by_expression = {one: self._values(unit, scope, notation.parse(one)) for one in dict.fromkeys(expressions)}
            found = [value for values in by_expression.values() for value in values]
            differing = {values for values in by_expression.values() if values and not _is_held(values)}
            if len(differing) > _MOST_MEANINGS and policy.has_prototypes:
                return []  # variables of different blocks
        inside = unit.children.get(qualified)
        if not inside or unit.policy.separates_kinds or not unit.policy.has_class_scope:
            return found
        functions = [
            value for members in inside.values() for one in members for value in self.defined(unit, one, How.SCOPE)
        ]
        held = [held for value in found for held in ([value] if value.kind is Kind.RECORD else value.held)]
        others = [value for value in found if value.kind not in {Kind.RECORD, Kind.COLLECTION}]
        return [Value(Kind.LITERAL, unit.path, qualified, How.SCOPE, distinct([*functions, *held])), *others]

    def _declared_or_given(self, unit: Unit, scope: str, expressions: Sequence[str]) -> list[Value]:
        """Something of the declared type, where that can be followed, else what is assigned."""
        declared = [text for text in expressions if text.startswith(":")]
        found: list[Value] = []
        for texts in (declared, [text for text in expressions if not text.startswith(":")]):
            for text in texts[:MOST_VALUES]:
                found += self._values(unit, scope, notation.parse(text))
            if any(map(is_known, found)):
                break
        return found


def _is_held(values: Values) -> bool:
    return all(value.kind in {Kind.COLLECTION, Kind.RECORD} for value in values)


def named_in(unit: Unit, around: str, name: str, policy: Policy) -> Sequence[Definition]:
    """What is found by its name alone: no methods of literals, nor what differs from block to block."""
    if policy.has_marked_variables:
        definitions = unit.children.get(around, {}).get(name.removeprefix("$"), ())
        return [one for one in definitions if is_marked(unit, one) == name.startswith("$")]
    definitions = unit.children.get(around, {}).get(name, ())
    if not policy.has_prototypes:
        return definitions
    found = [one for one in definitions if one.kind != "method" and one.id not in unit.hidden]
    once = {"class"} if policy.has_overloads else {"class", "function"}
    repeated = len(found) > 1 and all(one.kind in once for one in found)
    return [] if repeated else found
