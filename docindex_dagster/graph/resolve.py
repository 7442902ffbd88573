"""What names stand for: from the calls of a file to the functions that they reach.

Names are followed as a reader follows them: through the scopes around them, imports, the types that are declared or
that follow from what is assigned, class hierarchies, what functions return, and what callers give for a parameter.
What that does not settle stays unresolved: a wrong edge is worse than none.
"""

import itertools
from collections.abc import Iterable

from docindex_dagster.graph import notation, spaces
from docindex_dagster.graph.notation import (
    Bare,
    Called,
    Collection,
    Either,
    Expression,
    Given,
    Item,
    Literal,
    Made,
    Member,
    Module,
    Name,
    Record,
    Typed,
    Within,
    Written,
)
from docindex_dagster.graph.overloads import best_overloads, takes
from docindex_dagster.graph.resolution.arguments import Arguments
from docindex_dagster.graph.resolution.base import (
    Values,
    distinct,
)
from docindex_dagster.graph.resolution.classes import Classes
from docindex_dagster.graph.resolution.imports import Imports
from docindex_dagster.graph.resolution.members import Members
from docindex_dagster.graph.resolution.namespaces import Namespaces
from docindex_dagster.graph.resolution.results import Results
from docindex_dagster.graph.resolution.scopes import Scopes
from docindex_dagster.graph.resolution.types import Types
from docindex_dagster.graph.units import FILE, Import, Reference, Unit
from docindex_dagster.graph.values import How, Kind, Value


class Resolver(Scopes, Imports, Namespaces, Classes, Members, Results, Types, Arguments):
    """Follows the names of one file after the other; what was found is kept as `memo` says."""

    def targets(self, unit: Unit, reference: Reference) -> Values:
        """What a call reaches: functions, classes of which it makes an object, and what is external."""
        expression = _called_expression(reference)
        scope = self._home_of_call(unit, reference, expression)
        question = (
            unit.path,
            scope,
            reference.kind,
            reference.value if reference.kind == "decorator" else reference.name,
        )
        none: Values = ()
        found = self.memo.settled(question, none, self._reached, unit, scope, reference, expression)
        if not found or (
            len(found) == 1 and not (unit.policy.separates_kinds and self._takes_too_little(found[0], reference))
        ):
            return found
        return self.memo.settled((unit.path, reference, found), none, self._chosen, unit, reference, found)

    def _home_of_call(self, unit: Unit, reference: Reference, expression: Expression) -> str:
        """The outermost place where a call reaches the same."""
        policy = unit.policy
        if not reference.scope or (policy.has_open_dispatch and policy.has_implicit_members):
            return reference.scope
        if policy.has_open_dispatch and isinstance(expression, Member) and expression.of == Name("this"):
            return reference.scope
        if policy.separates_kinds and isinstance(expression, Name):
            expression = Name(expression.name, "function")
        return self._home(unit, reference.scope, expression)

    def _reached(self, unit: Unit, scope: str, reference: Reference, expression: Expression) -> Values:
        """What a call may reach, whatever it gives."""
        policy = unit.policy
        values = self._callees(unit, scope, expression)
        if isinstance(expression, Member | Name) and policy.has_open_dispatch:
            values += self._overriding(unit, scope, expression, values)
        found = [target for value in values for target in self._called(value)]
        if reference.kind == "macro" and policy.has_macro_names:
            found = [*self._macros(unit, reference.name)]
        if not policy.calls_classes:
            found = [target for target in found if target.kind is not Kind.CLASS]
        if policy.has_method_calls:
            found = [target for target in found if self._is_called(unit, reference, target)]
        inside = [target for target in found if target.kind is not Kind.EXTERNAL]
        reached = distinct(inside or found)
        return (self._with_body(unit, reached[0]),) if len(reached) == 1 else reached

    def _chosen(self, unit: Unit, reference: Reference, reached: Values) -> Values:
        """Of what a call may reach that which it means by what it gives."""
        if unit.policy.separates_kinds:
            reached = tuple(one for value in reached for one in self._overloads(value, reference))
        best = best_overloads(self, unit, reference, distinct(reached))
        return tuple(self._with_body(unit, value) for value in best)

    def _with_body(self, unit: Unit, value: Value) -> Value:
        return spaces.with_body(self, value) if unit.policy.sharing == "included" else value

    def _is_called(self, unit: Unit, reference: Reference, target: Value) -> bool:
        """Whether a call names the target itself, and does not just read what holds it."""
        policy = unit.policy
        name = reference.name.rpartition(".")[2]
        if target.kind is Kind.CLASS:
            return name in policy.makers
        return (
            target.kind is not Kind.FUNCTION
            or name in {"super", *policy.callers}
            or self.definition(target).name == name
        )

    def _overloads(self, function: Value, reference: Reference) -> Iterable[Value]:
        """A function, or where it takes too little those of this name in what its class is made from."""
        if not self._takes_too_little(function, reference):
            return [function]
        name = self.definition(function).name
        above = itertools.dropwhile(lambda one: not self._is_member(function, one), self.ancestors(function.held[0]))
        inherited = (one for ancestor in [*above][1:] for one in self._members(function.held[0], [ancestor], name))
        return [function, *(one for one in inherited if one.kind is Kind.FUNCTION)]

    def _takes_too_little(self, function: Value, reference: Reference) -> bool:
        return function.kind is Kind.FUNCTION and bool(function.held) and not takes(self, function, reference)

    def _is_member(self, function: Value, owner: Value) -> bool:
        if owner.kind is Kind.EXTERNAL:
            return False
        return self.definition(function).parent == self.definition(owner).qualified

    def imported(self, unit: Unit, imported: Import) -> Values:
        """What an import stands for."""
        return distinct(self._of_import(unit, imported))

    def reason(self, unit: Unit, reference: Reference) -> str:
        """Why a call reaches nothing that is known."""
        match notation.parse(reference.name):
            case Name(name) as expression:
                known = self._values(unit, reference.scope, expression)
                return f"{name} is a value that is not known" if known else "no such name"
            case Member(of, name):
                known = self._values(unit, reference.scope, of)
                return f"no {name} in what it is called on" if known else "called on something of unknown type"
            case _:
                return "computed"

    def _evaluated(  # noqa: C901, PLR0911, PLR0912 one a form
        self, unit: Unit, scope: str, expression: Expression
    ) -> Iterable[Value]:
        match expression:
            case Name():
                return self._lookup(unit, scope, expression)
            case Member(of, name):
                values = (*self._read(unit, scope, of), *self._held_functions(unit, scope, of, name))
                found = [*self._members_of(unit, scope, values, name)]
                return found or self._tested(unit, scope, of, name)
            case Called(Member(of, name)) if name in unit.policy.binders:
                return [value for value in self._values(unit, scope, of) if value.kind is Kind.FUNCTION]
            case Called(Made(of)) if unit.policy.has_prototypes:
                made = self._classes(self._values(unit, scope, Made(of)))
                return [found for value in made for found in self._constructed(unit, value)]
            case Called(of):
                return [found for value in self._callees(unit, scope, of) for found in self._result(unit, value)]
            case Made(Name(name)) if unit.policy.separates_kinds:
                return self._classes(self._values(unit, scope, Name(name, "type")))
            case Made(of):
                values = self._values(unit, scope, of)
                if of == Name("this"):
                    values = tuple(value._replace(kind=Kind.CLASS) for value in values if value.kind is Kind.OBJECT)
                return self._classes(values)
            case Item(of):
                return [found for value in self._read(unit, scope, of) for found in self._items(value)]
            case Typed(name):
                return self._typed(unit, scope, name)
            case Literal(name):
                policy = unit.policy
                if policy.has_open_classes and self.program.named.get((policy.family, name)):
                    return self._typed(unit, FILE, name)
                return [Value(Kind.EXTERNAL_OBJECT, "", name)]
            case Either(parts):
                return [value for part in parts for value in self._values(unit, scope, part)]
            case Collection(parts):
                held = distinct(value for part in parts for value in self._values(unit, scope, part))
                return [Value(Kind.COLLECTION, "", "collection", How.SCOPE, held)]
            case Record(text):
                return [Value(Kind.RECORD, unit.path, f"{scope}\t{text}")]
            case Written(name):
                return self._written(unit, scope, name)
            case Given(of, notation.ANY, position):
                return [
                    found
                    for value in self._callees(unit, scope, of)
                    for found in self._given_to_functions(value, position)
                ]
            case Given(of, argument, position):
                return [
                    found
                    for value in self._values(unit, scope, of)
                    for found in self._given_by(value, argument, position)
                ]
            case Module(name):
                return self._of_module(unit, name, "")
            case Bare(name):
                return self._bare(unit, scope, name)
            case Within(of, name):
                return self._within(unit, scope, of, name)
            case _:
                return ()


def _called_expression(reference: Reference) -> Expression:
    """What is called, or of what an object is made."""
    expression = notation.parse(reference.value if reference.kind == "decorator" else reference.name)
    if reference.kind == "new":
        return Made(expression)
    return expression.of if reference.kind == "decorator" and isinstance(expression, Called) else expression
