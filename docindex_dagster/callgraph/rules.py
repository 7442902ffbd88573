"""Name resolution rules that differ between languages; each language defines its rules in `languages/`."""

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
    Queries = Unit = object  # avoids a circular import: the resolver imports the rules

Sharing = Literal["file", "folder", "namespace", "included", "global", "loaded"]
Find = Callable[[Modules, str, str], Iterable[str]]
"""Returns the files, or folders with a trailing slash, that an imported module may refer to."""
Arguments = tuple[TypeRef, ...]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Language-specific semantics: functions of the language's module, called by the resolver if set.

    If a hook returns None, the resolver applies the rules shared by all languages.
    """

    # Rewrite the IR of a file before it is indexed; place each definition in the scope where it is visible; derive the
    # namespace of a file from its path.
    prepare: Callable[[FileIR], FileIR] | None = None
    place: Callable[[Mapping[str, Definition]], Iterable[Definition]] | None = None
    namespace: Callable[[str], str] | None = None
    # Resolve a name that refers to the enclosing code, such as `super`; resolve `this`; decide whether nested functions
    # in a class share it.
    self_reference: Callable[[Queries, Unit, str, str], Sequence[Value] | None] | None = None
    this: Callable[[Queries, Unit, str], Sequence[Value] | None] | None = None
    shares_this: Callable[[Unit, Sequence[Definition]], bool] | None = None
    # Resolve a name across files without an import, and at the top level of a file that neither defines nor assigns
    # it; resolve a macro name, if macros have their own namespace; guess the name of a package imported without one.
    shared: Callable[[Queries, Unit, str], Iterable[Value]] | None = None
    top: Callable[[Queries, Unit, str, Resolution], list[Value]] | None = None
    macros: Callable[[Queries, Unit, str], Iterable[Value]] | None = None
    package: Callable[[str], str] | None = None
    # Apply decorators to a function; find the function whose result a parameter receives; decide whether two functions
    # are clauses of the same function.
    decorated: Callable[[Queries, Unit, Definition], Iterable[Value]] | None = None
    injected: Callable[[Queries, Unit, Definition, str], Value | None] | None = None
    is_clause: Callable[[Queries, Value, Value], bool] | None = None
    # Resolve a member: by the expression of the receiver; before classes are searched; if no class has it; of a
    # function. Infer the arguments that library methods pass to blocks.
    attribute: Callable[[Queries, Unit, Expression, str], Sequence[Value] | None] | None = None
    member: Callable[[Queries, Value, str], Sequence[Value] | None] | None = None
    fallback: Callable[[Queries, Value, str, Sequence[Value]], Sequence[Value]] | None = None
    function_member: Callable[[Queries, Value, str], Sequence[Value]] | None = None
    block_arguments: Callable[[Queries, Value, str], Values] | None = None
    # Decide whether a call runs its target or only reads it; classify a call without a target; find the code that runs
    # when a value is called, and its result; decide whether a function returns its receiver.
    is_called: Callable[[Queries, Unit, Expression, Value], bool] | None = None
    external_target: Callable[[Expression], Values] | None = None
    runs: Callable[[Queries, Value], Sequence[Value] | None] | None = None
    result: Callable[[Queries, Unit, Value], Sequence[Value] | None] | None = None
    returns_itself: Callable[[Unit, Value, Sequence[Expression], Expression], bool] | None = None
    # Infer the result of a library method; select the type arguments that are element types; infer the elements of a
    # value, and of an object that is neither an iterator nor a container.
    library_result: Callable[[Value], Iterable[Value] | None] | None = None
    element_types: Callable[[str, Arguments], Arguments] | None = None
    elements: Callable[[Queries, Value], Sequence[Value]] | None = None
    object_elements: Callable[[Queries, Value], Sequence[Value] | None] | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a language that several languages set or several modules of the resolver read, and its hooks."""

    family: str  # languages in the same family can refer to each other's names
    find: Find = lambda *_: ()  # resolves imports of files
    candidates: Find = lambda *_: ()  # the paths tried for them, ignoring extensions, if configuration files name them
    sharing: Sharing = "file"  # which files see each other's names without an import
    redefines: bool = False  # the last definition of a name in a scope wins
    has_implicit_members: bool = False  # a bare name in a method may be a member of its class
    has_open_classes: bool = False  # other files may add members to a class
    factories: frozenset[str] = frozenset()  # methods of a class that create an instance of it
    constructors: frozenset[str] = frozenset()  # methods that run when an object is created
    # Transparent wrapper types, each with the kind of value that it wraps.
    wrappers: Mapping[str, Kind] = field(default_factory=dict)
    call_methods: frozenset[str] = frozenset()  # methods of a function that call it
    bind_methods: frozenset[str] = frozenset()  # methods of a function that return the function
    class_attributes: frozenset[str] = frozenset()  # attributes of an object that return its class
    has_prototypes: bool = False  # functions are also classes, and literals are objects with methods
    has_open_dispatch: bool = False  # a call on the object itself may reach overrides in any derived class
    has_overloads: bool = True  # a scope may contain several functions with the same name
    has_method_super: bool = False  # `super` is the inherited method with the same name
    identity_methods: frozenset[str] = frozenset()  # methods of any object that return the object
    extension: str = ""  # nested module that provides class methods
    separates_kinds: bool = False  # types, functions and variables may share a name
    sees_outer_namespaces: bool = False  # members of enclosing namespaces need no import
    has_partial_classes: bool = False  # a class may be defined across several files
    extends_receiver: bool = False  # in an extension function, `this` has the extended type
    runs: tuple[str, ...] = ()  # members that run when an object is called
    has_class_scope: bool = True  # a bare name in the body of a class may be a member
    calls_classes: bool = True  # calling a class creates an object; otherwise it is a conversion
    has_local_imports: bool = False  # imports in a function are visible only there
    has_module_paths: bool = False  # imports are paths that start at a module of the source or at the crate
    has_impls: bool = False  # methods of a type are defined in separate blocks, possibly in other files
    infers_fields: bool = False  # field types are inferred from initializers and assignments in other code
    has_namespaces: bool = False  # imports name members of namespaces, not files
    has_marked_variables: bool = False  # variable names start with `$`, function names do not
    self_names: frozenset[str] = frozenset()  # names of the class itself
    has_named_constructors: bool = False  # inside a class, its name is the class; a function of that name constructs
    has_pointers: bool = False  # an object may also be a pointer to it; other code may set fields
    has_tables: bool = False  # a table with functions is a class and also its instances
    exports_single_value: bool = False  # importing a file yields a single value, not its names
    has_file_types: bool = False  # a file is a type, and so is a function that has methods
    builtins: frozenset[str] = frozenset()  # names that need no import
    function_types: frozenset[str] = frozenset()  # types whose values come from the user: functions, types
    has_labels: bool = False  # arguments have labels and follow the order of the parameters
    has_extensions: bool = False  # extensions may also add members to library types and to all types of a protocol
    has_optionals: bool = False  # members of an optional are those of its value
    has_companions: bool = False  # a class and an object may share a name; calling the name calls `apply`
    has_bare_calls: bool = False  # a bare name calls a function without parameters
    has_relative_imports: bool = False  # imports may be relative to an enclosing namespace
    has_open_extensions: bool = False  # an extension is visible wherever its type is
    peek_attributes: frozenset[str] = frozenset()  # attributes of collections that return an element
    has_path_imports: bool = False  # imports are paths resolved from enclosing names, local to the module or function
    has_function_names: bool = False  # a called name is always a function, any other name never is
    has_protocols: bool = False  # an implementation has the name of its type but is not found by that name
    inherits: bool = True  # a class inherits the members of its bases; otherwise only those of their `extension`
    has_export_lists: bool = False  # a file with an export list exports only the listed names
    is_curried: bool = False  # a call with too few arguments returns the function
    has_untyped_fields: bool = False  # fields are declared by name only; values come from initializers
    hooks: Hooks = field(default_factory=Hooks)


def first_of_result(name: str, arguments: Arguments) -> Arguments:
    """Return the type arguments that are element types: the first one for `Result`, otherwise all."""
    return arguments[:1] if name.rpartition(".")[2] == "Result" else arguments
