"""Queries of the resolver: the interface between its modules.

Name resolution, type inference and the class hierarchy depend on each other, so the modules cannot all import each
other. They call queries instead; `resolver.py` assigns each query to a module. Tabled queries may be recursive. This
module documents the meaning of the queries, the answering module their implementation.
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

MOST_CALLERS = 40  # examined for the arguments of a parameter
BASE_KINDS = frozenset({"class", "external", "function", "literal", "record", "object"})
MOST_STATEMENTS = 1_000_000  # in loaded units: about 600 MB

Part = tuple[Unit, Definition]
_Found = TypeVar("_Found")


class Queries:
    """The program and the queries about it."""

    # The values of a definition where its name is used.
    defined: Callable[[Unit, Definition, Resolution], Values]
    # The bases named by a definition, each with its values.
    bases: Callable[[Unit, Definition], Iterator[tuple[ir.Base, Values]]]
    # The values of a definition as a member of an object; a property has the values it returns.
    as_member: Callable[[Value, Unit, Definition], Iterator[Value]]
    # The code that runs when a value is called.
    callable_of: Callable[[Value], Sequence[Value]]
    # The values of a full name, as seen from a file.
    resolve_full_name: Callable[[Unit, str], list[Value]]
    # The definitions of a name in other files of the folder or namespace, or in all files.
    shared: Callable[[Unit, str], Iterable[Value]]
    # The class that owns the member containing a scope, including methods defined outside their class.
    owner: Callable[[Unit, str], Value | None]
    # The values of a name at the top level of a file.
    top: Callable[[Unit, str, Resolution], list[Value]]
    # The values assigned to a name in a scope; also takes the qualified name.
    bound: Callable[[Unit, str, str, str], list[Value]]
    # A member of a namespace or class, preferring the nearest file; "" for the module itself.
    of_namespace: Callable[[Rules, str, str, str], Values]
    # The values of a name that a file or folder provides to other files.
    in_module: Callable[[str, str], Values]
    # The values of a name imported in an inner scope of a file.
    locally_imported: Callable[[Unit, str, str], list[Value]]
    # The extension functions for the types of some values that are visible in a scope.
    extensions: Callable[[Unit, str, Values, str], Iterator[Value]]
    # The module that encloses a scope, its parent, or the root of the crate.
    path_word: Callable[[Unit, str, str], Values]
    # A member of some values, including extension functions.
    members_of: Callable[[Unit, str, Values, str], list[Value]]
    # A member of an explicitly named namespace.
    in_namespace: Callable[[Value, str], list[Value]]
    # The values of a type name in a scope.
    type_names: Callable[[Unit, str, str], Values]
    # The same for C and C++.
    included_types: Callable[[Unit, str, str], Values]
    # Instances of a declared type; the mapping has the values of type parameters.
    typed: Callable[[Unit, str, TypeRef, Mapping[str, Value] | None], list[Value]]
    # The result of calling a value.
    result: Callable[[Unit, Value], Values]
    # The values returned from a function, by declared type or return statements.
    returned: Callable[[Value], Values]
    # The classes that are instantiated by constructing a value that is not a class.
    constructed_classes: Callable[[Value], Values]
    # The values of an import.
    import_targets: Callable[[Unit, ir.Import], Values]
    # The targets of a call: functions, instantiated classes and external names.
    targets: Callable[[Unit, CallSite | Decorator], Values]
    # The overrides that may run instead of the targets of a call.
    may_reach: Callable[[CallSite, Values], Values]
    # The reason why a call has no known target.
    reason: Callable[[Unit, CallSite], str]
    # The values of a parameter.
    parameter: Callable[[Unit, Definition, str], Values]
    # The arguments that callers pass for a parameter, by its position or name.
    passed_arguments: Callable[[Value, int, str], Values]
    # The values that a function passes at a position to one of its callback arguments.
    to_callback: Callable[[Value, int, int], Values]

    def __init__(self, program: Program, table: Table) -> None:
        self.program, self.table = program, table
        # The unit of a path; records the read.
        self.unit: Callable[[str], Unit] = program.units.__getitem__
        # The values of an expression in a scope.
        self.values: Query[[Unit, str, Expression], Values] = Query(table, "values", NONE)
        # A member of a value.
        self.member: Query[[Value, str], Values] = Query(table, "member", NONE)
        # The elements of a collection or of a value that can be iterated.
        self.elements: Query[[Value], Values] = Query(table, "elements", NONE)
        # The definitions of a class, including those in other files if the language allows it.
        self.parts: Query[[str, str], Sequence[Part]] = Query(table, "parts", ())
        # Other definitions that add methods to a class.
        self.impls: Query[[Unit, Definition], Sequence[Part]] = Query(table, "impls", ())
        # The bases of all parts of a class.
        self.direct_bases: Query[[str, str], Values] = Query(table, "direct bases", NONE)
        # The directly derived classes of a class; those in tests only on request.
        self.derived: Query[[str, str, bool], Values] = Query(table, "derived", NONE)
        # The methods with a name in the classes derived from a class.
        self.implementations: Query[[str, str, str], Values] = Query(table, "implementations", NONE)
        # The last names of the classes of an object.
        self.ancestor_names: Query[[Value], frozenset[str]] = Query(table, "ancestor names", frozenset())
        # The values of a name that a file provides to other files.
        self.provided_names: Query[[str, str], Values] = Query(table, "provided names", NONE)
        # The packages that a file imports without an alias, by package name.
        self.packages: Query[[Unit], Mapping[str, Sequence[str]]] = Query(table, "packages", {})
        # The paths of a file and of all files that it imports or includes, transitively.
        self.visible: Query[[Unit], frozenset[str]] = Query(table, "visible", frozenset())
        # The definitions of a full name that are visible in a file.
        self.visible_definitions: Query[[Unit, str], Sequence[Part]] = Query(table, "visible definitions", ())
        # The class with a full name, possibly in a namespace that the file uses.
        self.classes_at: Query[[Unit, str], Values] = Query(table, "classes at", NONE)
        # The values of a type name in a scope in C and C++, excluding built-in types.
        self.types_named: Query[[Unit, str, str], Values] = Query(table, "types named", NONE)
        # The parameters of the class templates that enclose a qualified name.
        self.template_parameters: Query[[Unit, str], frozenset[str]] = Query(table, "template parameters", frozenset())
        # The possible targets of a kind of call in a scope, regardless of the arguments.
        self.possible_targets: Query[[Unit, str, str, Expression], Values] = Query(table, "possible targets", NONE)
        # The code that runs when a class, or the object with its name, is called by name.
        self.apply_targets: Query[[Value], Values] = Query(table, "apply targets", NONE)
        self._hoisting: dict[Unit, Hoisting] = {}
        self.member_names: dict[tuple[str, str], frozenset[str]] = {}  # of classes, by path and id
        self.namespaces: dict[str, Sequence[str]] = {}  # namespaces that a file sees without an import, by path

    def answer(
        self, name: str, find: Callable[..., Any], normalize: Callable[..., tuple[Any, ...]] | None = None
    ) -> None:
        """Set the function that answers a query; `normalize` maps equivalent arguments to the same ones."""
        query = vars(self).get(name)
        if isinstance(query, Query):
            query.answered_by(find, normalize)
        else:
            setattr(self, name, find)

    def start(self) -> None:
        """Prepare for the next file: reads from here on are attributed to it."""
        if self.program.units.statements > MOST_STATEMENTS:
            self.forget()
        self.table.start()

    def forget(self) -> None:
        """Drop all units, and the answers, which refer to them. Both are computed again on demand."""
        self.program.units.clear()
        self.table.forget()
        self._hoisting.clear()

    def looked(self) -> list[int]:
        """Return the sorted keys of everything read since `start`."""
        return self.table.looked()

    def close(self) -> None:
        """Drop all units and answers. They form reference cycles, which Python is slow to collect."""
        self.forget()
        self.table.close()
        vars(self).clear()

    def each(self, unit: Unit, scope: str, expressions: Iterable[Expression]) -> list[Value]:
        """Return the values of several expressions in a scope."""
        return [value for one in expressions for value in self.values(unit, scope, one)]

    def all_defined(self, unit: Unit, definitions: Iterable[Definition], resolution: Resolution) -> list[Value]:
        """Return the values of several definitions where their names are used."""
        return [value for one in definitions for value in self.defined(unit, one, resolution)]

    def all_members(self, values: Iterable[Value], name: str) -> list[Value]:
        """Return the members with a name of several values."""
        return [member for value in values for member in self.member(value, name)]

    def in_files(
        self, lookup: Lookup[_Found], unit: Unit, name: str, limit: int | None = None
    ) -> list[tuple[Unit, _Found]]:
        """Return the matches for a name in the language family of a file, each with its unit."""
        return [(self.unit(path), one) for path, one in lookup.get(unit.rules.family, name, limit)[:limit]]

    def hoisted(self, unit: Unit, scope: str, expression: Expression) -> str:
        """Return the outermost scope in which an expression has the same meaning."""
        if not scope:
            return scope
        hoisting = self._hoisting.get(unit)
        if hoisting is None:
            hoisting = self._hoisting[unit] = Hoisting(unit)
        return hoisting.of(scope, expression)

    def callees(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """Return the values of an expression that is called."""
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
            one
            for value in functions or found
            for one in (self.apply_targets(value) if value.kind == "class" else (value,))
        )

    def read(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """Return the values of an expression that is not called."""
        found = self.values(unit, scope, expression)
        if not unit.rules.separates_kinds:
            return found
        if unit.rules.has_bare_calls:
            found = tuple(one for value in found for one in (self.returned(value) if self.is_bare(value) else (value,)))
        return tuple(value for value in found if value.kind != "function") or found

    def is_bare(self, value: Value) -> bool:
        """Return whether a value is a function without parameters."""
        return value.kind == "function" and not self.program.units[value.path].parameters.get(value.name)

    def definition(self, value: Value) -> Definition:
        """Return the definition of a function, class or object."""
        return self.program.units[value.path].definitions[value.name]

    def rules(self, value: Value) -> Rules:
        """Return the rules of the language that a value is defined in."""
        return self.program.units[value.path].rules

    def parameters(self, value: Value) -> Sequence[ir.Parameter]:
        """Return the parameters of a function without its receiver."""
        found = self.program.units[value.path].parameters.get(value.name, ())
        return found[1:] if found and found[0].name in {"self", "cls", "this"} else found


def argument_at(
    arguments: Sequence[ir.Argument], position: int, name: str, *, has_labels: bool = False
) -> ir.Argument | None:
    """Return the argument for a parameter: by name, or else at its position unless it has another name."""
    for argument in arguments:
        if argument.name and argument.name == name:
            return argument
    if position < len(arguments) and (has_labels or not arguments[position].name):
        return arguments[position]
    return None
