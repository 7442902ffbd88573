"""The intermediate representation of a file: what it defines, and all that it says about names, typed and frozen.

`extract/` makes it of a syntax tree, `table.py` keeps it in Arrow, and `resolver/` reads it. Expressions are trees, and
equal trees are one object (hash consing: Filliâtre and Conchon, Type-safe modular hash-consing, 2006), so that they are
compared and hashed by identity. What a language means by a name is not here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass
from operator import attrgetter
from threading import RLock
from typing import Any, NamedTuple
from typing import Literal as OneOf
from weakref import ref

FILE = ""  # the scope around all others
ROOT = "\\"  # the namespace around all others, where a language writes it
ANY = -1  # argument: whichever takes a function
EITHER = "+"  # the name of a type that is one of its arguments
BLOCK = 9  # argument: the block behind the others
LAST_ARGUMENT = 8  # those behind it count as one
_LONGEST_PATH = 64  # names

NameSpace = OneOf["", "function", "type"]
"""What a name can only be, in languages in which functions, types and variables of one name stand side by side."""


_MAKING = RLock()  # since what is collected while one is made is forgotten there


class _HashConsed(type):
    """Of classes whose equal instances are one object."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        known = cls._known = dict[tuple[object, ...], _Reference]()  # a `WeakValueDictionary` takes three times as long
        # A class with slots is made again once its fields are known.
        fields: dict[str, Field[object]] = namespace.get("__dataclass_fields__", {})
        cls._defaults = tuple(field.default for field in fields.values())

        def forget(reference: _Reference, making: RLock = _MAKING) -> None:  # also when the module is gone
            with making:
                if known.get(reference.parts) is reference:
                    del known[reference.parts]

        cls._forget = forget

    def __call__(cls, *parts: object) -> object:
        if len(parts) < len(cls._defaults):
            parts += cls._defaults[len(parts) :]
        reference = cls._known.get(parts)
        known = reference() if reference is not None else None
        return cls._made(parts) if known is None else known

    def _made(cls, parts: tuple[object, ...]) -> object:
        made = super().__call__(*parts)
        reference = _Reference(made, cls._forget)
        reference.parts = parts
        with _MAKING:  # another thread may have made one, too
            known = cls._known.get(parts)
            other = known() if known is not None else None
            if other is None:
                cls._known[parts] = reference
        return made if other is None else other


class _Reference(ref[object]):
    """A weak reference that knows of what its object is made."""

    __slots__ = ("parts",)
    parts: tuple[object, ...]


class _Node(metaclass=_HashConsed):
    """A type or an expression, with its fingerprint once that is known."""

    __slots__ = ("fingerprint",)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TypeRef(_Node):
    """A type as it is declared, with dots between the parts of its name, behind `ROOT.` where it begins there.

    `Array`, `map`, `tuple` and `chan` are those of the language's own notation; `func` is a function by what it
    returns, `fun` one by the type that it is a member of and those of its parameters. `?` is an argument that names
    nothing, `+` is one of its arguments. How a value is held (const, a pointer, optional, a lifetime) is left out,
    since members are the same.
    """

    name: str
    arguments: "tuple[TypeRef, ...]" = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unknown(_Node):
    """What cannot be followed: arithmetic, what has no name."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Name(_Node):
    """A name where it stands; `this` and `super` are the object itself and what its class inherits."""

    text: str
    space: NameSpace = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NameOrCall(_Node):
    """A variable, or else a call of the method of that name, where a language writes both alike (Ruby)."""

    text: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Implicit(_Node):
    """A name where the members of some receivers, the innermost first, need no object (Kotlin)."""

    receivers: "tuple[Expression, ...]"
    text: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Attribute(_Node):
    """What an object, class or module has under a name."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Call(_Node):
    """What a call returns."""

    callee: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class New(_Node):
    """A new object of a class, where the language has a word for that."""

    cls: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Element(_Node):
    """What a collection holds, or a pointer points at."""

    of: "Expression"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Instance(_Node):
    """Something of a declared type."""

    type: TypeRef


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Literal(_Node):
    """A literal, by its type in the language; `fun` is a function without a name."""

    type: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Union(_Node):
    """One of some, such as the branches of a conditional."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Collection(_Node):
    """A collection that is written with what it holds."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Record(_Node):
    """A collection that is written with names; what has the name "" is a collection whose members it takes over."""

    fields: "tuple[tuple[str, Expression], ...]"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Function(_Node):
    """A function that is written as an element of a collection, by its name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CallbackArgument(_Node):
    """What a function gives, at a position from 0 on, to the callback that is its argument of a number.

    With `ANY` as the argument, positions count from 1, and 0 is the receiver of the callback.
    """

    of: "Expression"
    argument: int
    position: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module(_Node):
    """A module, by the name under which it is imported."""

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
    """What a call gives: by its position, or under the name of a parameter; a block stands behind the others."""

    value: Expression
    name: str = ""
    is_block: bool = False


class Definition(NamedTuple):
    """A symbol; its id is the qualified name, with `~2` where one is defined again. Scopes are ids."""

    id: str
    name: str
    kind: str  # as `code.symbols` has it
    qualified: str
    parent: str  # the qualified name of the symbol around it; "" for none
    returns: TypeRef | None
    is_local: bool  # cannot be seen from other files
    line: int
    byte: int


class CallSite(NamedTuple):
    """A call; of `new` and `macro` the callee is the class and the macro, of `read` what may be called by its name."""

    kind: OneOf["call", "read", "new", "macro"]
    scope: str
    callee: Expression
    arguments: tuple[Argument, ...]
    line: int
    byte: int


class Import(NamedTuple):
    """A name of a module under a name here; all of it, or of a member; or of a namespace, as `using namespace` says."""

    kind: OneOf["name", "all", "directive", "left out"]  # the last: a name that is none of all
    scope: str
    name: str  # here; "" for the name of the module
    module: str
    member: str  # "" for the module itself
    is_passed_on: bool  # it is exported in the same breath
    line: int
    byte: int


class Export(NamedTuple):
    """A name, or `default`, under which other files find something."""

    name: str
    value: Expression


class Assignment(NamedTuple):
    """What a variable, an attribute of the object (`this.name`) or an element of a collection is.

    | role | the target |
    |---|---|
    | `bind` | is declared, or assigned where that declares it |
    | `store` | is declared elsewhere: a variable, or an attribute of any object |
    | `initial` | is a field of a type, of which an object is written with its fields; by position `#0` |
    | `test` | is asked whether it is of a type |
    | `instance` | is a template, which is used with these arguments |
    """

    role: OneOf["bind", "store", "initial", "test", "instance"]
    scope: str
    target: Expression
    value: Expression
    line: int
    byte: int


class Parameter(NamedTuple):
    """A parameter of a function, in their order; of a class, what it is given as a template or a record."""

    kind: OneOf["", "rest", "block"]
    scope: str
    name: str
    value: Expression  # an `Instance` where a type is declared, else the default
    label: str  # by which it is given, where that is not the name; `_` for none
    line: int
    byte: int


class Return(NamedTuple):
    """What a function returns."""

    scope: str
    value: Expression


class Base(NamedTuple):
    """What a class is made from; a companion is a class in it whose members are its own."""

    kind: OneOf["base", "implements", "mixin", "companion"]
    scope: str
    cls: str  # the class, where it is named; else it is the scope
    value: Expression  # an `Instance`, or a call that gives a class
    line: int
    byte: int


class Decorator(NamedTuple):
    """What is applied to a definition."""

    scope: str
    decorated: str  # its id
    value: Expression
    line: int
    byte: int


class Fill(NamedTuple):
    """An object of a type that is written with what its fields are."""

    scope: str
    type: str
    arguments: tuple[Argument, ...]


class Generic(NamedTuple):
    """A type parameter of a class or function, and what bounds it."""

    scope: str
    name: str
    bound: Expression


class Receiver(NamedTuple):
    """The type to which a function is added as a member."""

    scope: str
    type: TypeRef


class Forward(NamedTuple):
    """A function that is declared here and has its body elsewhere."""

    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class FileIR:
    """One file, each list in the order of the file."""

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
    properties: tuple[str, ...] = ()  # the ids of methods that are read as attributes, of classes that have one object
    hidden: tuple[str, ...] = ()  # the ids of functions that are not found by their names
    namespace: str = ""
    language: str = ""  # of its code, where that is not the language of the file


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
    """Where a statement stands; what is exported stands in the file."""
    return FILE if isinstance(statement, Export) else statement.scope


def children(expression: Expression) -> "tuple[Expression, ...]":
    """The expressions of which one is made."""
    parts = _CHILDREN.get(type(expression))
    return parts(expression) if parts is not None else ()


def _of(expression: Attribute | Element | CallbackArgument) -> tuple[Expression]:
    return (expression.of,)


def _parts(expression: Union | Collection) -> tuple[Expression, ...]:
    return expression.parts


# By class, since a `match` asks for one class after the other, and this is asked most often.
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
    """The expression and all that it is made of."""
    stack = [expression]
    while stack:
        current = stack.pop()
        yield current
        stack += children(current)


def head(expression: Expression) -> Expression:
    """What an expression begins with: of `order.items[0]`, `order`."""
    while (first := _FIRST.get(type(expression))) is not None:
        (expression,) = first(expression)
    return expression


def whole(collection: Expression) -> Expression:
    """A collection, of one of its elements; a variable that may be a call is taken for one."""
    while isinstance(collection, Element):
        collection = collection.of
    return Name(collection.text) if isinstance(collection, NameOrCall) else collection


def either(expressions: Iterable[Expression]) -> Expression:
    """One of some, of which those that are unknown are left out."""
    known = tuple(one for one in dict.fromkeys(expressions) if one is not UNKNOWN)
    return Union(known) if len(known) > 1 else known[0] if known else UNKNOWN


def is_known(expression: Expression) -> bool:
    """Whether it begins with something that can be followed, and is no literal."""
    return not isinstance(head(expression), _UNFOLLOWED)


def types_in(declared: TypeRef) -> Iterator[TypeRef]:
    """A type and its arguments."""
    yield declared
    for argument in declared.arguments:
        yield from types_in(argument)


def path(text: str) -> Expression:
    """A dotted path as an expression; unknown where it is longer than anyone writes."""
    first, *others = text.split(".", _LONGEST_PATH)
    if len(others) == _LONGEST_PATH:
        return UNKNOWN
    found: Expression = Name(first)
    for name in others:
        found = Attribute(found, name)
    return found


def path_of(expression: Expression) -> str:
    """A name or path as it is written; "" for anything else."""
    match expression:
        case Name(text):
            return text
        case Attribute(of, name):
            before = path_of(of)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


NAMES: Mapping[type[Any], str] = {Attribute: "name", Function: "name", Name: "text", NameOrCall: "text"}
"""The fields that hold the names of what has one of its own."""
_ENDINGS: Mapping[type[Any], Callable[[Any], str]] = {
    **{kind: attrgetter(name) for kind, name in NAMES.items()},
    Implicit: attrgetter("text"),
    Call: lambda one: last_name(one.callee),
    New: lambda one: last_name(one.cls),
    Element: lambda one: last_name(one.of),
    Instance: lambda one: one.type.name.rpartition(".")[2],
}


def last_name(expression: Expression) -> str:
    """The name that an expression ends with, but for calls; "" where it ends with none."""
    ending = _ENDINGS.get(type(expression))
    return ending(expression) if ending is not None else ""
