"""Intermediate representation (IR) of a file: its definitions and its statements about names, typed and frozen.

`extract/` builds it from a syntax tree, `table.py` stores it in Arrow, and `resolver/` reads it. Expressions are trees.
Equal trees are the same object (hash consing: Filliâtre and Conchon, Type-safe modular hash-consing, 2006), so they are
compared and hashed by identity. The IR does not contain the language-specific meaning of names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass
from operator import attrgetter
from threading import RLock
from typing import Any, NamedTuple
from typing import Literal as OneOf
from weakref import ref

FILE = ""  # the outermost scope
ROOT = "\\"  # the outermost namespace, in languages that write it
ANY = -1  # argument position: any argument that is a function
EITHER = "+"  # the name of a union type; its members are the arguments
BLOCK = 9  # argument position: the trailing block
LAST_ARGUMENT = 8  # later arguments share this position
_LONGEST_PATH = 64  # names

NameSpace = OneOf["", "function", "type"]
"""The namespace of a name, in languages where functions, types and variables may share a name."""


_LOCK = RLock()  # reentrant: a garbage collection inside the lock runs the weak reference callbacks, which take it too


class _HashConsed(type):
    """Metaclass of classes whose equal instances are the same object."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        known = cls._known = dict[tuple[object, ...], _Reference]()  # a `WeakValueDictionary` is three times slower
        # `dataclass(slots=True)` creates the class a second time, with its fields.
        fields: dict[str, Field[object]] = namespace.get("__dataclass_fields__", {})
        cls._defaults = tuple(field.default for field in fields.values())

        def forget(reference: _Reference, lock: RLock = _LOCK) -> None:  # the default survives module teardown
            with lock:
                if known.get(reference.parts) is reference:
                    del known[reference.parts]

        cls._forget = forget

    def __call__(cls, *parts: object) -> object:
        if len(parts) < len(cls._defaults):
            parts += cls._defaults[len(parts) :]
        reference = cls._known.get(parts)
        known = reference() if reference is not None else None
        return cls._create(parts) if known is None else known

    def _create(cls, parts: tuple[object, ...]) -> object:
        created = super().__call__(*parts)
        reference = _Reference(created, cls._forget)
        reference.parts = parts
        with _LOCK:  # another thread may have created one in the meantime
            known = cls._known.get(parts)
            other = known() if known is not None else None
            if other is None:
                cls._known[parts] = reference
        return created if other is None else other


class _Reference(ref[object]):
    """Weak reference that keeps the parts of its object."""

    __slots__ = ("parts",)
    parts: tuple[object, ...]


class _Node(metaclass=_HashConsed):
    """A type or an expression, with a cached fingerprint."""

    __slots__ = ("fingerprint",)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TypeRef(_Node):
    """A declared type with a dotted name, prefixed with `ROOT.` if it is absolute.

    `Array`, `map`, `tuple` and `chan` are built-in notations. The arguments of `func` are its return types; those of
    `fun` are its receiver type and its parameter types. `?` is a wildcard argument, `+` a union of its arguments.
    Qualifiers (const, pointers, optionals, lifetimes) are omitted, since they do not change the members.
    """

    name: str
    arguments: "tuple[TypeRef, ...]" = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unknown(_Node):
    """An expression that cannot be resolved, such as arithmetic or an unnamed value."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Name(_Node):
    """A name in its scope; `this` is the object itself and `super` its inherited members."""

    text: str
    space: NameSpace = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NameOrCall(_Node):
    """A variable, or else a call of the method with that name, in languages that write both alike (Ruby)."""

    text: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Implicit(_Node):
    """A name that may be a member of an implicit receiver; receivers are innermost first (Kotlin)."""

    receivers: "tuple[Expression, ...]"
    text: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Attribute(_Node):
    """A member of an object, class or module."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Call(_Node):
    """The result of a call."""

    callee: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class New(_Node):
    """A new object of a class, in languages with a keyword for it."""

    cls: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Element(_Node):
    """An element of a collection, or the target of a pointer."""

    of: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Instance(_Node):
    """An instance of a declared type."""

    type: TypeRef


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Literal(_Node):
    """A literal, identified by its type in the language; `fun` is an anonymous function."""

    type: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Union(_Node):
    """One of several expressions, such as the branches of a conditional."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Collection(_Node):
    """A collection literal with its elements."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Record(_Node):
    """An object literal with named fields; a field named "" is a spread collection."""

    fields: "tuple[tuple[str, Expression], ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Function(_Node):
    """A function defined as an element of a collection, identified by its name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CallbackArgument(_Node):
    """The value that a function passes to a callback argument, at a position counted from 0.

    If `argument` is `ANY`, positions are counted from 1, and 0 is the receiver of the callback.
    """

    of: "Expression"
    argument: int
    position: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module(_Node):
    """A module, identified by the name used to import it."""

    name: str


Expression = (
    Unknown
    | Name
    | NameOrCall
    | Implicit
    | Attribute
    | Call
    | New
    | Element
    | Instance
    | Literal
    | Union
    | Collection
    | Record
    | Function
    | CallbackArgument
    | Module
)

UNKNOWN = Unknown()
_UNFOLLOWED = (Unknown, Literal)
THIS, SUPER = Name("this"), Name("super")


class Argument(NamedTuple):
    """An argument of a call, positional or named; a block is the last argument."""

    value: Expression
    name: str = ""
    is_block: bool = False


class Definition(NamedTuple):
    """A symbol; its id is the qualified name, with a suffix such as `~2` for a redefinition. Scopes are ids."""

    id: str
    name: str
    kind: str  # as in `code.symbols`
    qualified: str
    parent: str  # the qualified name of the enclosing symbol, or ""
    returns: TypeRef | None
    is_local: bool  # not visible in other files
    line: int
    byte: int


class CallSite(NamedTuple):
    """A call site; the callee is a class for `new`, a macro for `macro`, and a possible bare-name call for `read`."""

    kind: OneOf["call", "read", "new", "macro"]
    scope: str
    callee: Expression
    arguments: tuple[Argument, ...]
    line: int
    byte: int


class Import(NamedTuple):
    """An import of a module or of a member; of all names of one of them; or of a namespace (`using namespace`)."""

    kind: OneOf["name", "all", "directive", "left out"]  # "left out": a name excluded from a wildcard import
    scope: str
    name: str  # the local name; "" for the name of the module
    module: str
    member: str  # "" for the module itself
    is_passed_on: bool  # it is a re-export
    line: int
    byte: int


class Export(NamedTuple):
    """An exported name, or `default`, and its value."""

    name: str
    value: Expression


class Assignment(NamedTuple):
    """The value of a variable, an attribute of the object (`this.name`) or an element of a collection.

    | role | the target |
    |---|---|
    | `bind` | is declared, or declared by being assigned |
    | `store` | is declared elsewhere: a variable, or an attribute of any object |
    | `initial` | is a field in an aggregate initializer of a type; positional fields are named `#0` |
    | `test` | is tested for a type |
    | `instance` | is a template that is instantiated with these arguments |
    """

    role: OneOf["bind", "store", "initial", "test", "instance"]
    scope: str
    target: Expression
    value: Expression
    line: int
    byte: int


class Parameter(NamedTuple):
    """A parameter of a function, in order; for a class, a template parameter or a record component."""

    kind: OneOf["", "rest", "block"]
    scope: str
    name: str
    value: Expression  # an `Instance` if a type is declared, else the default
    label: str  # the argument label if it differs from the name; `_` for none
    line: int
    byte: int


class Return(NamedTuple):
    """A value returned from a function."""

    scope: str
    value: Expression


class Base(NamedTuple):
    """A base of a class; a companion is a nested class whose members belong to the class."""

    kind: OneOf["base", "implements", "mixin", "companion"]
    scope: str
    cls: str  # the class if it is named, else ""; then the scope is the class
    value: Expression  # an `Instance`, or a call that returns a class
    line: int
    byte: int


class Decorator(NamedTuple):
    """A decorator of a definition."""

    scope: str
    decorated: str  # id of the definition
    value: Expression
    line: int
    byte: int


class Fill(NamedTuple):
    """An object of a type, written with the values of its fields."""

    scope: str
    type: str
    arguments: tuple[Argument, ...]


class Generic(NamedTuple):
    """A type parameter of a class or function, and its bound."""

    scope: str
    name: str
    bound: Expression


class Receiver(NamedTuple):
    """The type that a function is added to as a member."""

    scope: str
    type: TypeRef


class Forward(NamedTuple):
    """A function declared here whose body is elsewhere."""

    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class FileIR:
    """The IR of a file, each list in file order."""

    definitions: tuple[Definition, ...] = ()
    calls: tuple[CallSite, ...] = ()
    imports: tuple[Import, ...] = ()
    exports: tuple[Export, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    returns: tuple[Return, ...] = ()
    bases: tuple[Base, ...] = ()
    decorators: tuple[Decorator, ...] = ()
    fills: tuple[Fill, ...] = ()
    generics: tuple[Generic, ...] = ()
    receivers: tuple[Receiver, ...] = ()
    forwards: tuple[Forward, ...] = ()
    properties: tuple[str, ...] = ()  # ids of methods read as attributes, and of classes with a single object
    hidden: tuple[str, ...] = ()  # ids of functions that cannot be found by name
    namespace: str = ""
    language: str = ""  # of its code, if it differs from the language of the file


Statement = (
    CallSite
    | Import
    | Export
    | Assignment
    | Parameter
    | Return
    | Base
    | Decorator
    | Fill
    | Generic
    | Receiver
    | Forward
)


def scope_of(statement: Statement) -> str:
    """Return the scope of a statement; exports belong to the file scope."""
    return FILE if isinstance(statement, Export) else statement.scope


def children(expression: Expression) -> "tuple[Expression, ...]":
    """Return the direct subexpressions of an expression."""
    parts = _CHILDREN.get(type(expression))
    return parts(expression) if parts is not None else ()


def _of(expression: Attribute | Element | CallbackArgument) -> tuple[Expression]:
    return (expression.of,)


def _parts(expression: Union | Collection) -> tuple[Expression, ...]:
    return expression.parts


# Keyed by class, since `match` tests the classes one by one and this is a hot path.
_FIRST: Mapping[type[Expression], Callable[[Any], tuple[Expression]]] = {
    Attribute: _of,
    Element: _of,
    CallbackArgument: _of,
    Call: lambda one: (one.callee,),
    New: lambda one: (one.cls,),
}
_CHILDREN: Mapping[type[Expression], Callable[[Any], tuple[Expression, ...]]] = {
    **_FIRST,
    Union: _parts,
    Collection: _parts,
    Implicit: lambda one: one.receivers,
    Record: lambda one: tuple([part for _, part in one.fields]),
}


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all of its subexpressions."""
    stack = [expression]
    while stack:
        current = stack.pop()
        yield current
        stack += children(current)


def head(expression: Expression) -> Expression:
    """Return the innermost expression of a chain: `order` for `order.items[0]`."""
    while (first := _FIRST.get(type(expression))) is not None:
        (expression,) = first(expression)
    return expression


def collection_of(collection: Expression) -> Expression:
    """Return the collection that an element belongs to; a variable that may be a call is treated as a variable."""
    while isinstance(collection, Element):
        collection = collection.of
    return Name(collection.text) if isinstance(collection, NameOrCall) else collection


def either(expressions: Iterable[Expression]) -> Expression:
    """Return a union of the expressions, without unknown ones."""
    known = tuple(one for one in dict.fromkeys(expressions) if one is not UNKNOWN)
    return Union(known) if len(known) > 1 else known[0] if known else UNKNOWN


def is_known(expression: Expression) -> bool:
    """Return whether an expression starts with something that can be resolved and is not a literal."""
    return not isinstance(head(expression), _UNFOLLOWED)


def types_in(declared: TypeRef) -> Iterator[TypeRef]:
    """Yield a type and, recursively, its arguments."""
    yield declared
    for argument in declared.arguments:
        yield from types_in(argument)


def path(text: str) -> Expression:
    """Return a dotted path as an expression, or `UNKNOWN` if it is unreasonably long."""
    first, *others = text.split(".", _LONGEST_PATH)
    if len(others) == _LONGEST_PATH:
        return UNKNOWN
    found: Expression = Name(first)
    for name in others:
        found = Attribute(found, name)
    return found


def path_of(expression: Expression) -> str:
    """Return a name or path as dotted text; "" for any other expression."""
    match expression:
        case Name(text):
            return text
        case Attribute(of, name):
            before = path_of(of)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


NAMES: Mapping[type[Any], str] = {Attribute: "name", Function: "name", Name: "text", NameOrCall: "text"}
"""The field that holds the name, by class of named expressions."""
_ENDINGS: Mapping[type[Any], Callable[[Any], str]] = {
    **{kind: attrgetter(name) for kind, name in NAMES.items()},
    Implicit: attrgetter("text"),
    Call: lambda one: last_name(one.callee),
    New: lambda one: last_name(one.cls),
    Element: lambda one: last_name(one.of),
    Instance: lambda one: one.type.name.rpartition(".")[2],
}


def last_name(expression: Expression) -> str:
    """Return the last name of an expression, ignoring calls; "" if it does not end with a name."""
    ending = _ENDINGS.get(type(expression))
    return ending(expression) if ending is not None else ""
