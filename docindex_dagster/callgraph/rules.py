"""How languages differ in what a name means; the rules of each are in `languages/`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from docindex_dagster.callgraph.modules import Modules

Sharing = Literal["file", "folder", "namespace", "included", "global", "loaded"]
Find = Callable[[Modules, str, str], Iterable[str]]
"""Gives the files, or folders with a slash behind them, that a module may be which a file imports."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a language."""

    family: str  # languages whose names meet
    find: Find = lambda *_: ()  # where imports lead that name files
    candidates: Find = lambda *_: ()  # the paths, endings aside, that were tried for them, if configurations name them
    sharing: Sharing = "file"  # which files see each other's names without an import
    redefines: bool = False  # of definitions of one name in one place the last counts
    has_implicit_members: bool = False  # a bare name in a method may be a member of its class
    has_open_classes: bool = False  # other files may add members to a class
    makers: frozenset[str] = frozenset()  # methods of a class that give an object of it
    constructors: frozenset[str] = frozenset()  # methods that run when an object is made
    wrappers: frozenset[str] = frozenset()  # types whose members are those of what they hold
    class_types: frozenset[str] = frozenset()  # those of the wrappers of which a value is the class itself
    self_name: str = ""  # of a parameter that is the object itself
    class_name: str = ""  # of one that is its class
    has_decorators: bool = False  # a function may stand for the object that its decorator makes of it
    properties: frozenset[str] = frozenset()  # decorators that make a method an attribute
    callers: frozenset[str] = frozenset()  # methods of a function that call it
    binders: frozenset[str] = frozenset()  # methods of a function that give it again
    classes: frozenset[str] = frozenset()  # attributes of an object that are its class
    has_prototypes: bool = False  # functions are classes, too, and literals are objects with methods
    has_open_dispatch: bool = False  # what an object calls of its own may be that of any class made from its own
    has_overloads: bool = True  # functions of one name may be in one scope
    has_method_calls: bool = False  # only what is named by a call is called: other values are read
    has_method_super: bool = False  # `super` is the method of the same name that is inherited
    same: frozenset[str] = frozenset()  # methods of any object that give itself
    extension: str = ""  # the module in a module that gives classes their own methods
    iteration: str = ""  # the method from which the others of a collection follow
    separates_kinds: bool = False  # types, functions and variables of one name stand side by side
    sees_outer_namespaces: bool = False  # what is in the namespaces around the own needs no import
    has_partial_classes: bool = False  # a class may be written in several files
    extends_receiver: bool = False  # in a function that is added to a type, `this` is of this type
    runs: tuple[str, ...] = ()  # members that run when an object is called
    has_accessors: bool = False  # an attribute can be read as if it were called
    has_class_scope: bool = True  # a bare name in the body of a class may be a member
    has_named_types: bool = False  # all declared types have members, not only structs
    calls_classes: bool = True  # a call of a class makes an object; else it is a conversion
    has_local_imports: bool = False  # what a function imports is known in it alone
    has_fixtures: bool = False  # a test is given what the function gives whose name its parameter has
    has_module_paths: bool = False  # imports are paths, from a module of the source or the crate on
    has_impls: bool = False  # methods of a type stand in blocks beside it, also in other files
    has_macro_names: bool = False  # macros have names of their own
    iterating: frozenset[str] = frozenset()  # methods that give what an object holds, as something that holds it
    default: str = ""  # the method that gives an object of a class also where it is not written
    leading: frozenset[str] = frozenset()  # generic types that hold their first argument
    has_filled_fields: bool = False  # what is written or assigned where an object is used tells what its fields are
    names_packages: bool = False  # an import without a name has that of the package in the folder
    has_namespaces: bool = False  # imports name what is in namespaces, not files
    has_marked_variables: bool = False  # the name of a variable begins with `$`, that of a function does not
    selves: frozenset[str] = frozenset()  # names of the class itself
    is_made_by_name: bool = False  # a class's name in it is the class, a function of that name makes an object
    has_pointers: bool = False  # an object may stand for what points at it; fields may be filled from outside
    globals_name: str = ""  # of what has all names that files share
    supers: frozenset[str] = frozenset()  # attributes of an object that are what its class is made from
    has_tables: bool = False  # a table with functions in it is a class, and stands for the objects that are made of it
    gives_one_value: bool = False  # a file gives those that import it one value, not its names
    has_numbered_parameters: bool = False  # functions are commands, and all are seen wherever they are written
    has_file_types: bool = False  # a file is a type, and so is a function that has methods
    builtins: frozenset[str] = frozenset()  # names that need no import
    functions: frozenset[str] = frozenset()  # types of which a value is what a user gave: a function, a type
    targets: frozenset[str] = frozenset()  # folders each folder in which is a namespace
    has_labels: bool = False  # arguments have names of their own, and stand in the order of the parameters
    has_extensions: bool = False  # what adds to a class may also add to types of the library, and to all of a protocol
    has_optionals: bool = False  # what may be nothing is read like what holds it
    has_companions: bool = False  # a class and an object of its name, whose `apply` is called by that name
    has_bare_calls: bool = False  # a function that takes nothing is called where its name stands
    has_curried: bool = False  # a function may take its arguments in several calls; collections are read by a call
    has_relative_imports: bool = False  # what is imported may be named from a namespace around
    has_open_extensions: bool = False  # what is added to a type is seen where that type is
    peeking: frozenset[str] = frozenset()  # attributes of collections that are one of their elements
    has_path_imports: bool = False  # imports are paths by the names around, known in the module or function alone
    has_function_names: bool = False  # what is called by its name is a function, what is not called is none
    has_clauses: bool = False  # definitions of one name with as many parameters are one function
    has_protocols: bool = False  # an implementation has the name of its type and is not found by it
    inherits: bool = True  # what a class is made from has members for it; else only what its `extension` gives
    has_export_lists: bool = False  # a file with a list of what it exports gives others no more than that
    has_free_methods: bool = False  # a method of a class is found by its name alone
    has_equations: bool = False  # a function may name its parameters anew, once an equation
    is_curried: bool = False  # what is given fewer arguments than it takes is still the function
    has_untyped_fields: bool = False  # fields are only named, and are what objects are written with
