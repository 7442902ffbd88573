"""How languages differ in what a name means; the rules of each are in `languages/`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from docindex_dagster.callgraph.ir import Definition, Expression, FileIR, TypeRef
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.resolver.values import Kind, Resolution, Value, Values

if TYPE_CHECKING:
    from docindex_dagster.callgraph import units
    from docindex_dagster.callgraph.resolver import queries

    Queries = queries.Queries
    Unit = units.Unit
else:
    Queries = Unit = object  # the resolver knows the rules

Sharing = Literal["file", "folder", "namespace", "included", "global", "loaded"]
Find = Callable[[Modules, str, str], Iterable[str]]
"""Gives the files, or folders with a slash behind them, that a module may be which a file imports."""
Arguments = tuple[TypeRef, ...]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The semantics that only one language has: functions of its module, which the resolver asks if there is one.

    Where a hook returns None, the rules that all languages share decide.
    """

    # Rewrite what a file says before it is indexed; place each definition where it is visible; derive the namespace of
    # a file from its path.
    prepared: Callable[[FileIR], FileIR] | None = None
    placed: Callable[[Mapping[str, Definition]], Iterable[Definition]] | None = None
    namespace: Callable[[str], str] | None = None
    # What a name means that refers to the code around it, such as `super`; what `this` is; whether nested functions in
    # a class share it.
    itself: Callable[[Queries, Unit, str, str], Sequence[Value] | None] | None = None
    this: Callable[[Queries, Unit, str], Sequence[Value] | None] | None = None
    shares_this: Callable[[Unit, Sequence[Definition]], bool] | None = None
    # What a name means in other files without an import, and in a file that neither defines nor assigns it; what the
    # name of a macro means, if macros have their own; the likely name of a package that is imported without one.
    shared: Callable[[Queries, Unit, str], Iterable[Value]] | None = None
    top: Callable[[Queries, Unit, str, Resolution], list[Value]] | None = None
    macros: Callable[[Queries, Unit, str], Iterable[Value]] | None = None
    package: Callable[[str], str] | None = None
    # What decorators make of a function; the function whose result a parameter receives; whether two functions are
    # clauses of one.
    decorated: Callable[[Queries, Unit, Definition], Iterable[Value]] | None = None
    given: Callable[[Queries, Unit, Definition, str], Value | None] | None = None
    is_clause: Callable[[Queries, Value, Value], bool] | None = None
    # Members: by the expression of the object; before classes are searched; where no class has one; of a function; what
    # library methods pass to blocks.
    attribute: Callable[[Queries, Unit, Expression, str], Sequence[Value] | None] | None = None
    member: Callable[[Queries, Value, str], Sequence[Value] | None] | None = None
    missing: Callable[[Queries, Value, str, Sequence[Value]], Sequence[Value]] | None = None
    of_function: Callable[[Queries, Value, str], Sequence[Value]] | None = None
    iterated: Callable[[Queries, Value, str], Values] | None = None
    # Whether a call runs its target or only reads it; what a call is that reaches nothing; what runs when a value is
    # called, and what that returns; whether a function returns its own object.
    is_called: Callable[[Queries, Unit, Expression, Value], bool] | None = None
    unreached: Callable[[Expression], Values] | None = None
    runs: Callable[[Queries, Value], Sequence[Value] | None] | None = None
    result: Callable[[Queries, Unit, Value], Sequence[Value] | None] | None = None
    returns_itself: Callable[[Unit, Value, Sequence[Expression], Expression], bool] | None = None
    # What a library method returns; the arguments of a type that say what it holds; what a value holds, and what an
    # object holds that is neither an iterator nor a container.
    library_result: Callable[[Value], Iterable[Value] | None] | None = None
    held: Callable[[str, Arguments], Arguments] | None = None
    elements: Callable[[Queries, Value], Sequence[Value]] | None = None
    elements_of_object: Callable[[Queries, Value], Sequence[Value] | None] | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a language, which several languages set or several parts of the resolver read, and its hooks."""

    family: str  # languages whose names meet
    find: Find = lambda *_: ()  # where imports lead that name files
    candidates: Find = lambda *_: ()  # the paths, endings aside, that were tried for them, if configurations name them
    sharing: Sharing = "file"  # which files see each other's names without an import
    redefines: bool = False  # of definitions of one name in one place the last counts
    has_implicit_members: bool = False  # a bare name in a method may be a member of its class
    has_open_classes: bool = False  # other files may add members to a class
    makers: frozenset[str] = frozenset()  # methods of a class that give an object of it
    constructors: frozenset[str] = frozenset()  # methods that run when an object is made
    # Types that stand for what they hold, each with the sort of value that this is.
    wrappers: Mapping[str, Kind] = field(default_factory=dict)
    callers: frozenset[str] = frozenset()  # methods of a function that call it
    binders: frozenset[str] = frozenset()  # methods of a function that give it again
    classes: frozenset[str] = frozenset()  # attributes of an object that are its class
    has_prototypes: bool = False  # functions are classes, too, and literals are objects with methods
    has_open_dispatch: bool = False  # what an object calls of its own may be that of any class made from its own
    has_overloads: bool = True  # functions of one name may be in one scope
    has_method_super: bool = False  # `super` is the method of the same name that is inherited
    same: frozenset[str] = frozenset()  # methods of any object that give itself
    extension: str = ""  # the module in a module that gives classes their own methods
    separates_kinds: bool = False  # types, functions and variables of one name stand side by side
    sees_outer_namespaces: bool = False  # what is in the namespaces around the own needs no import
    has_partial_classes: bool = False  # a class may be written in several files
    extends_receiver: bool = False  # in a function that is added to a type, `this` is of this type
    runs: tuple[str, ...] = ()  # members that run when an object is called
    has_class_scope: bool = True  # a bare name in the body of a class may be a member
    calls_classes: bool = True  # a call of a class makes an object; else it is a conversion
    has_local_imports: bool = False  # what a function imports is known in it alone
    has_module_paths: bool = False  # imports are paths, from a module of the source or the crate on
    has_impls: bool = False  # methods of a type stand in blocks beside it, also in other files
    has_filled_fields: bool = False  # what is written or assigned where an object is used tells what its fields are
    has_namespaces: bool = False  # imports name what is in namespaces, not files
    has_marked_variables: bool = False  # the name of a variable begins with `$`, that of a function does not
    selves: frozenset[str] = frozenset()  # names of the class itself
    is_made_by_name: bool = False  # a class's name in it is the class, a function of that name makes an object
    has_pointers: bool = False  # an object may stand for what points at it; fields may be filled from outside
    has_tables: bool = False  # a table with functions in it is a class, and stands for the objects that are made of it
    gives_one_value: bool = False  # a file gives those that import it one value, not its names
    has_file_types: bool = False  # a file is a type, and so is a function that has methods
    builtins: frozenset[str] = frozenset()  # names that need no import
    functions: frozenset[str] = frozenset()  # types of which a value is what a user gave: a function, a type
    has_labels: bool = False  # arguments have names of their own, and stand in the order of the parameters
    has_extensions: bool = False  # what adds to a class may also add to types of the library, and to all of a protocol
    has_optionals: bool = False  # what may be nothing is read like what holds it
    has_companions: bool = False  # a class and an object of its name, whose `apply` is called by that name
    has_bare_calls: bool = False  # a function that takes nothing is called where its name stands
    has_relative_imports: bool = False  # what is imported may be named from a namespace around
    has_open_extensions: bool = False  # what is added to a type is seen where that type is
    peeking: frozenset[str] = frozenset()  # attributes of collections that are one of their elements
    has_path_imports: bool = False  # imports are paths by the names around, known in the module or function alone
    has_function_names: bool = False  # what is called by its name is a function, what is not called is none
    has_protocols: bool = False  # an implementation has the name of its type and is not found by it
    inherits: bool = True  # what a class is made from has members for it; else only what its `extension` gives
    has_export_lists: bool = False  # a file with a list of what it exports gives others no more than that
    is_curried: bool = False  # what is given fewer arguments than it takes is still the function
    has_untyped_fields: bool = False  # fields are only named, and are what objects are written with
    hooks: Hooks = field(default_factory=Hooks)


def first_of_result(name: str, arguments: Arguments) -> Arguments:
    """The arguments of a type that say what it holds: of a result the first."""
    return arguments[:1] if name.rpartition(".")[2] == "Result" else arguments
