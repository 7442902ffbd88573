"""What the parts of the resolver share: the program, what is known so far, and what they ask of each other."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from docindex_dagster.graph import notation
from docindex_dagster.graph.notation import (
    Expression,
    Member,
    Name,
)
from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.program import Program
from docindex_dagster.graph.resolution.homes import Homes
from docindex_dagster.graph.resolution.memo import Limits, Memo
from docindex_dagster.graph.resolution.own_names import OwnNames
from docindex_dagster.graph.units import Definition, Import, Reference, Unit, unnamed
from docindex_dagster.graph.values import How, Kind, Value

Values = tuple[Value, ...]
MOST_VALUES = 8
MOST_CALLERS = 40  # that are asked what they give for a parameter
_MOST_HOMES = 1_000  # files
BLOCK = 9  # the argument that is a block
BASES = frozenset({Kind.CLASS, Kind.EXTERNAL, Kind.FUNCTION, Kind.LITERAL, Kind.RECORD, Kind.OBJECT})
PATH_WORDS = frozenset({"this", "super", "crate"})


@dataclass(eq=False)
class NameResolver(ABC):
    """Follows the names of one file after the other; what was found is kept as `memo` says."""

    program: Program
    limits: Limits = field(default_factory=Limits)
    memo: Memo = field(init=False)  # what was found out
    _known_spaces: dict[str, Sequence[str]] = field(default_factory=dict)
    _homes: dict[str, Homes] = field(default_factory=dict)
    _own_names: dict[tuple[str, str], OwnNames] = field(default_factory=dict)  # of classes, by path and id

    def __post_init__(self) -> None:
        self.memo = Memo(self.program.looks, self.limits)

    def start(self) -> None:
        """Begin with a file: what is looked at from here on is looked at for it."""
        self.memo.start()
        if len(self._homes) > _MOST_HOMES:
            self._homes.clear()

    def looked(self) -> list[int]:
        """The keys of all that was looked at since the start, sorted."""
        return self.memo.looked()

    def values(self, unit: Unit, scope: str, expression: str) -> Values:
        """What an expression may stand for at a place."""
        return self._values(unit, scope, notation.parse(expression))

    def declared(self, unit: Unit, scope: str, expression: str) -> Values:
        """The same without what callers give for parameters."""
        return self.memo.uncached(self.values, unit, scope, expression)

    def declared_targets(self, unit: Unit, reference: Reference) -> Values:
        """What a call reaches without what callers give for parameters."""
        return self.memo.uncached(self.targets, unit, reference)

    def definition(self, value: Value) -> Definition:
        """What a function, class or object is defined by."""
        return self.unit(value.path).definitions[value.name]

    def parameters(self, value: Value) -> Sequence[tuple[str, str]]:
        """The names and expressions of the parameters of a function, without the object itself."""
        found = self.unit(value.path).parameters.get(value.name, ())
        return found[1:] if found and found[0][0] in {"self", "cls", "this"} else found

    def _policy(self, value: Value) -> Policy:
        return self.unit(value.path).policy

    def unit(self, path: str) -> Unit:
        """The file of a path, which is noted as one that was looked at."""
        return self.program.units[path]

    def _values(self, unit: Unit, scope: str, expression: Expression) -> Values:
        if scope:
            scope = self._home(unit, scope, expression)
        question = unit.path, scope, expression
        return self.memo.settled(question, (), self._answer, unit, scope, expression)

    def _answer(self, unit: Unit, scope: str, expression: Expression) -> Values:
        return distinct(self._evaluated(unit, scope, expression))

    def _home(self, unit: Unit, scope: str, expression: Expression) -> str:
        """The outermost place where an expression means the same."""
        homes = self._homes.get(unit.path) or self._homes.setdefault(unit.path, Homes(unit))
        return homes.of(scope, expression)

    # What the parts ask of each other.

    @abstractmethod
    def targets(self, unit: Unit, reference: Reference) -> Values:
        """What a call reaches: functions, classes of which it makes an object, and what is external."""

    @abstractmethod
    def _macros(self, unit: Unit, name: str) -> Iterator[Value]:
        """The macros of a name: of this file, else of the crate, else all; none where it is imported from elsewhere."""

    @abstractmethod
    def bases(self, unit: Unit, definition: Definition) -> Iterator[tuple[Reference, Values]]:
        """The base classes that a definition names, each with what the name stands for."""

    @abstractmethod
    def visible(self, unit: Unit) -> frozenset[str]:
        """The paths of a file and of all that it includes."""

    @abstractmethod
    def _evaluated(self, unit: Unit, scope: str, expression: Expression) -> Iterable[Value]: ...

    @abstractmethod
    def _constructed(self, unit: Unit, value: Value) -> Iterable[Value]:
        """What `new` gives of a class or of a function."""

    @abstractmethod
    def _written(self, unit: Unit, scope: str, name: str) -> Iterable[Value]:
        """A function that is written as an element of a collection."""

    @abstractmethod
    def _bare(self, unit: Unit, scope: str, name: str) -> Iterable[Value]:
        """A variable or parameter, or else what a method of that name returns."""

    @abstractmethod
    def _callees(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is called."""

    @abstractmethod
    def _read(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression stands for where it is not called."""

    @abstractmethod
    def _held_functions(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """The functions that a variable holds, where a method is read that calls them."""

    @abstractmethod
    def _members_of(self, unit: Unit, scope: str, values: Values, name: str) -> Iterable[Value]:
        """What some objects, classes or modules have under a name."""

    @abstractmethod
    def _within(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """A name where the members of some objects need no object."""

    @abstractmethod
    def _tested(self, unit: Unit, scope: str, of: Expression, name: str) -> Iterable[Value]:
        """A member that something has by a type for which it was tested, where just one of these has it."""

    @abstractmethod
    def _lookup(self, unit: Unit, scope: str, wanted: Name) -> Iterable[Value]:
        """What a name stands for at a place."""

    @abstractmethod
    def _built_in(self, name: str, policy: Policy) -> list[Value]: ...

    @abstractmethod
    def owner(self, unit: Unit, scope: str) -> Value | None:
        """The class whose member a place is in, also of a method that is written outside of its class."""

    @abstractmethod
    def _class_of(self, unit: Unit, definition: Definition) -> Value:
        """The class that a definition is, or to which it adds methods."""

    @abstractmethod
    def _path_word(self, unit: Unit, scope: str, word: str) -> Iterable[Value]:
        """The module around a place, the one around that, or the first of the crate."""

    @abstractmethod
    def _files_of(self, unit: Unit, module: str) -> list[Value]: ...

    @abstractmethod
    def _used_in(self, unit: Unit, scope: str, name: str) -> list[Value]:
        """What a module that is written in a file imports under a name."""

    @abstractmethod
    def _implied(self, found: Iterable[Value], wanted: Name, policy: Policy) -> list[Value] | None:
        """Of members that need no object those that are wanted; None where there are none."""

    @abstractmethod
    def _in_namespaces(self, unit: Unit, wanted: Name, policy: Policy) -> Iterable[Value]:
        """What a name stands for outside of all classes, where files of one namespace share their names."""

    @abstractmethod
    def _of_namespace(self, policy: Policy, module: str, name: str, importer: str) -> list[Value]:
        """What a namespace, or a class, has under a name."""

    @abstractmethod
    def _extensions(self, unit: Unit, scope: str, values: Values, name: str) -> Iterator[Value]:
        """The functions that are added to the type of some values, as far as they can be seen from a file."""

    @abstractmethod
    def _given_to_functions(self, value: Value, position: int) -> Iterable[Value]:
        """What a function gives to the function that it is given last."""

    @abstractmethod
    def _typed_for(self, function: Value, written: str) -> list[Value]:
        """Something of a type that a function is declared with."""

    @abstractmethod
    def _top(self, unit: Unit, name: str, how: How) -> list[Value]:
        """What a file itself defines or assigns under a name."""

    @abstractmethod
    def bound(self, unit: Unit, scope: str, qualified: str, name: str) -> list[Value]:
        """What is assigned to a name."""

    @abstractmethod
    def _declared_or_given(self, unit: Unit, scope: str, expressions: Sequence[str]) -> list[Value]:
        """Something of the declared type, where that can be followed, else what is assigned."""

    @abstractmethod
    def _imported(self, unit: Unit, name: str) -> Iterator[Iterable[Value]]: ...

    @abstractmethod
    def _of_import(self, unit: Unit, imported: Import) -> Iterable[Value]: ...

    @abstractmethod
    def _of_module(self, unit: Unit, module: str, name: str) -> list[Value]:
        """What a module has under a name; without one, the module."""

    @abstractmethod
    def _in_module(self, path: str, name: str) -> list[Value]:
        """What other files find in a file or folder under a name."""

    @abstractmethod
    def _shared(self, unit: Unit, name: str, policy: Policy) -> Iterator[Value]:
        """What files of the same folder or namespace, or all files, define under a name."""

    @abstractmethod
    def defined(self, unit: Unit, definition: Definition, how: How) -> Iterable[Value]:
        """What a definition stands for where its name is used."""

    @abstractmethod
    def _parts(self, value: Value) -> Sequence[tuple[Unit, Definition]]:
        """The definitions of one class: in its file, and in others where the language allows it."""

    @abstractmethod
    def ancestors(self, value: Value) -> Iterator[Value]:
        """A class and what it is made from, in the order in which members are looked for."""

    @abstractmethod
    def _members(self, owner: Value, ancestors: Iterable[Value], name: str) -> Iterable[Value]: ...

    @abstractmethod
    def _own_member(self, owner: Value, cls: Value, name: str) -> list[Value]: ...

    @abstractmethod
    def _held_by(self, owner: Value) -> dict[str, Value]:
        """What the type parameters of a class stand for in an object, as far as that is declared."""

    @abstractmethod
    def _children(self, unit: Unit, definition: Definition, name: str) -> Iterator[tuple[Unit, Definition]]:
        """The members of a class under a name."""

    @abstractmethod
    def _as_member(self, owner: Value, unit: Unit, member: Definition) -> Iterable[Value]: ...

    @abstractmethod
    def member(self, value: Value, name: str) -> Values:
        """What something has under a name."""

    @abstractmethod
    def _of_literal(self, value: Value, name: str) -> Iterable[Value]:
        """A method that is written in a literal, or what is given there under a name."""

    @abstractmethod
    def _record(self, value: Value) -> tuple[Unit, str, Sequence[tuple[str, Expression]]]: ...

    @abstractmethod
    def _in_space(self, value: Value, name: str) -> list[Value]:
        """What a namespace that is written out has under a name."""

    @abstractmethod
    def _result(self, unit: Unit, value: Value) -> Iterable[Value]:
        """What a call of a value gives."""

    @abstractmethod
    def _classes(self, values: Values) -> Iterable[Value]:
        """Of which of some values an object can be made."""

    @abstractmethod
    def _made(self, value: Value) -> Iterable[Value]:
        """Of what an object is made where the expression is no class itself."""

    @abstractmethod
    def _called(self, value: Value) -> Iterable[Value]:
        """What runs when a value is called."""

    @abstractmethod
    def _returned(self, value: Value) -> Iterable[Value]:
        """What a function returns: as declared, else what its returns say."""

    @abstractmethod
    def _items(self, value: Value) -> Values: ...

    @abstractmethod
    def _all_exported(self, value: Value) -> Iterable[Value]:
        """All functions that a module puts into an object for others."""

    @abstractmethod
    def _given_by(self, value: Value, argument: int, position: int) -> Iterable[Value]:
        """What a function gives, at a position, to the function that is one of its arguments."""

    @abstractmethod
    def _overriding(self, unit: Unit, scope: str, expression: Member | Name, values: Values) -> Values:
        """The methods of derived classes that may run where an object calls one of its own."""

    @abstractmethod
    def _bases_of_unnamed(self, unit: Unit, function: str) -> Sequence[Value]:
        """What a class without a name, which a function gives, is made from, where that is one class."""

    @abstractmethod
    def _derived(self, owner: Value) -> Iterator[Value]:
        """The classes that are made from another, and those made from them."""

    @abstractmethod
    def _typed(self, unit: Unit, scope: str, written: str, given: Mapping[str, Value] | None = None) -> list[Value]:
        """Something of a declared type; `given` are the values of type parameters."""

    @abstractmethod
    def _for_receiver(self, function: Value, written: str) -> list[Value] | None:
        """Something of a type parameter, by what the object whose method it is was made for."""

    @abstractmethod
    def _type_names(self, unit: Unit, scope: str, name: str) -> Values: ...

    @abstractmethod
    def _is_open(self, value: Value) -> bool:
        """Whether a declared type leaves open what is behind it: one that is not known, or that of functions."""

    @abstractmethod
    def _function_type(self, value: Value) -> Value | None:
        """The type of functions that a type with a name of its own is."""

    @abstractmethod
    def _parameter(self, unit: Unit, function: Definition, name: str) -> Iterable[Value]: ...

    @abstractmethod
    def _given(self, target: Value, position: int, name: str) -> Values:
        """What the calls of a function give for a parameter."""


def is_marked(unit: Unit, definition: Definition) -> bool:
    """Whether a function has its name as the value of a variable that is marked as one."""
    return f"${definition.name}" in unit.binds.get(definition.id, ())


def argument_at(arguments: Sequence[str], position: int, name: str) -> str | None:
    """What is given for a parameter: under its name, else at its position."""
    for argument in arguments:
        before, equals, value = argument.partition("=")
        if equals and before == name:
            return value
    if position < len(arguments) and unnamed(arguments[position]) == arguments[position]:
        return arguments[position]
    return None


def distinct(values: Iterable[Value]) -> Values:
    """Each value once, by its strongest step."""
    if isinstance(values, list | tuple) and not values[1:]:
        return tuple(values)
    found: dict[tuple[Kind, str, str, Values], Value] = {}
    for value in values:
        held = value.held if value.kind is Kind.EXTERNAL_OBJECT else ()
        key = (value.kind, value.path, value.name, held)
        known = found.get(key)
        if known is None:
            found[key] = value
        elif value.kind is Kind.COLLECTION and value.held != known.held:
            found[key] = known._replace(held=distinct([*known.held, *value.held]), how=min(known.how, value.how))
        elif value.how < known.how:
            found[key] = value
        if len(found) >= MOST_VALUES:
            break
    return tuple(found.values())


def is_file(value: Value) -> bool:
    """Whether a value is the module that a file is."""
    return value.kind is Kind.MODULE and not value.name and not value.path.endswith("/")
