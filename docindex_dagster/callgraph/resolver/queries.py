"""The queries of the resolver: what its parts ask of each other.

Name resolution, type inference and the class hierarchy lead to one another, so no part can know all others. Each asks
by a query; `resolver.py` says which part answers it. Those that are tabled may lead back to themselves. What a query
means is written here, how it is answered in the part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import CallSite, Decorator, Definition, Expression, Name, TypeRef
from docindex_dagster.callgraph.program import Lookup, Program
from docindex_dagster.callgraph.resolver.hoisting import Hoisting
from docindex_dagster.callgraph.resolver.values import NONE, Resolution, Value, Values
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.tabling import Query, Table
from docindex_dagster.callgraph.units import Unit

MOST_CALLERS = 40  # that are asked what they give for a parameter
BASE_KINDS = frozenset({"class", "external", "function", "literal", "record", "object"})
MOST_STATEMENTS = 1_000_000  # in the units that are held: some 600 MB

Part = tuple[Unit, Definition]
_Found = TypeVar("_Found")


class Queries:
    """The program, and what can be asked of it."""

    # What a definition stands for where its name is used.
    defined: Callable[[Unit, Definition, Resolution], Values]
    # The base classes that a definition names, each with what the name stands for.
    bases: Callable[[Unit, Definition], Iterator[tuple[ir.Base, Values]]]
    # What a definition is as a member of an object; a property is what it returns.
    as_member: Callable[[Value, Unit, Definition], Iterator[Value]]
    # What runs when a value is called.
    callable_of: Callable[[Value], Sequence[Value]]
    # What a full name stands for, seen from a file.
    in_space: Callable[[Unit, str], list[Value]]
    # What files of the same folder or namespace, or all files, define under a name.
    shared: Callable[[Unit, str], Iterable[Value]]
    # The class whose member a place is in, also of a method that is written outside of its class.
    owner: Callable[[Unit, str], Value | None]
    # What a file itself defines or assigns under a name.
    top: Callable[[Unit, str, Resolution], list[Value]]
    # What is assigned to a name in a scope, which has a qualified name.
    bound: Callable[[Unit, str, str, str], list[Value]]
    # What a namespace, or a class, has under a name, by the nearest file; "" for the last name of the module.
    of_namespace: Callable[[Rules, str, str, str], Values]
    # What other files find in a file or folder under a name.
    in_module: Callable[[str, str], Values]
    # What a module that is written in a file imports under a name.
    used_in: Callable[[Unit, str, str], list[Value]]
    # The functions that are added to the type of some values, as far as they can be seen from a place.
    extensions: Callable[[Unit, str, Values, str], Iterator[Value]]
    # The module around a place, the one around that, or the first of the crate.
    path_word: Callable[[Unit, str, str], Values]
    # What some objects, classes or modules have under a name, also by functions that are added to their types.
    members_of: Callable[[Unit, str, Values, str], list[Value]]
    # What a namespace that is written out has under a name.
    in_namespace: Callable[[Value, str], list[Value]]
    # What the name of a type stands for at a place.
    type_names: Callable[[Unit, str, str], Values]
    # The same in C and C++.
    included_types: Callable[[Unit, str, str], Values]
    # Something of a declared type; the mapping has the values of type parameters.
    typed: Callable[[Unit, str, TypeRef, Mapping[str, Value] | None], list[Value]]
    # What a call of a value gives.
    result: Callable[[Unit, Value], Values]
    # What a function returns: as declared, else what its returns say.
    returned: Callable[[Value], Values]
    # Of what an object is made where the expression is no class itself.
    made: Callable[[Value], Values]
    # What an import stands for.
    import_targets: Callable[[Unit, ir.Import], Values]
    # What a call reaches: functions, classes of which it makes an object, and what is external.
    targets: Callable[[Unit, CallSite | Decorator], Values]
    # The methods that may run instead of the targets of a call, since they override them.
    may_reach: Callable[[CallSite, Values], Values]
    # Why a call reaches nothing that is known.
    reason: Callable[[Unit, CallSite], str]
    # What a parameter of a function is.
    parameter: Callable[[Unit, Definition, str], Values]
    # What the calls of a function give for a parameter, by its position or name.
    given: Callable[[Value, int, str], Values]
    # What a function gives, at a position, to the callback that is its argument of a number.
    to_callback: Callable[[Value, int, int], Values]

    def __init__(self, program: Program, table: Table) -> None:
        self.program, self.table = program, table
        # The file of a path, which is noted as one that was looked at.
        self.unit: Callable[[str], Unit] = program.units.__getitem__
        # What an expression may stand for at a place.
        self.values: Query[[Unit, str, Expression], Values] = Query(table, "values", NONE)
        # What something has under a name.
        self.member: Query[[Value, str], Values] = Query(table, "member", NONE)
        # What a collection, or what can be read like one, holds.
        self.elements: Query[[Value], Values] = Query(table, "elements", NONE)
        # The definitions of one class: in its file, and in others where the language allows it.
        self.parts: Query[[str, str], Sequence[Part]] = Query(table, "parts", ())
        # Where else methods are added to a class.
        self.impls: Query[[Unit, Definition], Sequence[Part]] = Query(table, "impls", ())
        # What all parts of a class are made from.
        self.direct_bases: Query[[str, str], Values] = Query(table, "direct bases", NONE)
        # The classes that name a class as a base; those of tests only where that is asked for.
        self.derived: Query[[str, str, bool], Values] = Query(table, "derived", NONE)
        # The methods of a name in the classes that are made from another one.
        self.implementations: Query[[str, str, str], Values] = Query(table, "implementations", NONE)
        # The last names of the classes of an object.
        self.ancestor_names: Query[[Value], frozenset[str]] = Query(table, "ancestor names", frozenset())
        # What other files find in a file under a name.
        self.offered: Query[[str, str], Values] = Query(table, "offered", NONE)
        # The packages that a file imports without a name, by their names.
        self.packages: Query[[Unit], Mapping[str, Sequence[str]]] = Query(table, "packages", {})
        # The paths of a file and of all that it imports or includes, also by others.
        self.visible: Query[[Unit], frozenset[str]] = Query(table, "visible", frozenset())
        # The definitions of a full name that a file sees.
        self.seen: Query[[Unit, str], Sequence[Part]] = Query(table, "seen", ())
        # The class of a full name, which may be in a namespace that the file uses.
        self.classes_at: Query[[Unit, str], Values] = Query(table, "classes at", NONE)
        # What the name of a type stands for at a place in C and C++, but for those of the language.
        self.types_named: Query[[Unit, str, str], Values] = Query(table, "types named", NONE)
        # The parameters of the class templates around a place, by its qualified name.
        self.template_parameters: Query[[Unit, str], frozenset[str]] = Query(table, "template parameters", frozenset())
        # What a call of a kind may reach at a place, whatever it gives.
        self.reached: Query[[Unit, str, str, Expression], Values] = Query(table, "reached", NONE)
        # What runs where a class, or the object of its name, is called by its name.
        self.applied: Query[[Value], Values] = Query(table, "applied", NONE)
        self._hoisting: dict[Unit, Hoisting] = {}
        self.member_names: dict[tuple[str, str], frozenset[str]] = {}  # of classes, by path and id
        self.namespaces: dict[str, Sequence[str]] = {}  # that a file sees without an import, by its path

    def answer(self, name: str, find: Callable[..., Any], same: Callable[..., tuple[Any, ...]] | None = None) -> None:
        """Name the function that answers a query, and that which gives the arguments under which it is answered."""
        query = vars(self).get(name)
        if isinstance(query, Query):
            query.answered_by(find, same)
        else:
            setattr(self, name, find)

    def start(self) -> None:
        """Begin with a file: what is looked at from here on is looked at for it."""
        if self.program.units.statements > MOST_STATEMENTS:
            self.forget()
        self.table.start()

    def forget(self) -> None:
        """Let go of all units, and of the answers, which lead to them. What is asked for again is found again."""
        self.program.units.clear()
        self.table.forget()
        self._hoisting.clear()

    def looked(self) -> list[int]:
        """The keys of all that was looked at since the start, sorted."""
        return self.table.looked()

    def close(self) -> None:
        """Let go of all units and answers. They hold one another, and Python is slow to find that nothing else does."""
        self.forget()
        self.table.close()
        vars(self).clear()

    def each(self, unit: Unit, scope: str, expressions: Iterable[Expression]) -> list[Value]:
        """What some expressions may stand for at a place."""
        return [value for one in expressions for value in self.values(unit, scope, one)]

    def all_defined(self, unit: Unit, definitions: Iterable[Definition], resolution: Resolution) -> list[Value]:
        """What some definitions stand for where their names are used."""
        return [value for one in definitions for value in self.defined(unit, one, resolution)]

    def all_members(self, values: Iterable[Value], name: str) -> list[Value]:
        """What each of some things has under a name."""
        return [member for value in values for member in self.member(value, name)]

    def in_files(
        self, lookup: Lookup[_Found], unit: Unit, name: str, most: int | None = None
    ) -> list[tuple[Unit, _Found]]:
        """What there is of one sort under a name in the language of a file, each with its file."""
        return [(self.unit(path), one) for path, one in lookup.get(unit.rules.family, name, most)[:most]]

    def hoisted(self, unit: Unit, scope: str, expression: Expression) -> str:
        """The outermost place where an expression means the same."""
        if not scope:
            return scope
        hoisting = self._hoisting.get(unit)
        if hoisting is None:
            hoisting = self._hoisting[unit] = Hoisting(unit)
        return hoisting.of(scope, expression)

    def callees(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is called."""
        if unit.rules.has_function_names and isinstance(expression, Name):
            return self.values(unit, scope, Name(expression.text, "function"))
        found = self.values(unit, scope, expression)
        if not unit.rules.separates_kinds:
            return found
        functions = tuple(value for value in found if value.kind in {"function", "class"})
        if not functions and isinstance(expression, Name):
            functions = self.values(unit, scope, Name(expression.text, "function"))
        if not unit.rules.has_companions:
            return functions or found
        if expression is ir.THIS:
            return tuple(value.as_kind("class") for value in found)
        return tuple(
            one for value in functions or found for one in (self.applied(value) if value.kind == "class" else (value,))
        )

    def read(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is not called."""
        found = self.values(unit, scope, expression)
        if not unit.rules.separates_kinds:
            return found
        if unit.rules.has_bare_calls:
            found = tuple(one for value in found for one in (self.returned(value) if self.is_bare(value) else (value,)))
        return tuple(value for value in found if value.kind != "function") or found

    def is_bare(self, value: Value) -> bool:
        """Whether something is a function that takes nothing."""
        return value.kind == "function" and not self.program.units[value.path].parameters.get(value.name)

    def definition(self, value: Value) -> Definition:
        """What a function, class or object is defined by."""
        return self.program.units[value.path].definitions[value.name]

    def rules(self, value: Value) -> Rules:
        """The rules of the language in which something is defined."""
        return self.program.units[value.path].rules

    def parameters(self, value: Value) -> Sequence[ir.Parameter]:
        """The parameters of a function, without the object itself."""
        found = self.program.units[value.path].parameters.get(value.name, ())
        return found[1:] if found and found[0].name in {"self", "cls", "this"} else found


def argument_at(
    arguments: Sequence[ir.Argument], position: int, name: str, *, has_labels: bool = False
) -> ir.Argument | None:
    """What is given for a parameter: under its name, else at its position, where it has no other name."""
    for argument in arguments:
        if argument.name and argument.name == name:
            return argument
    if position < len(arguments) and (has_labels or not arguments[position].name):
        return arguments[position]
    return None
