"""How languages differ in what a name means."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Sharing = Literal["file", "folder", "namespace", "included", "global", "loaded"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a language."""

    family: str  # languages whose names meet
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
    functions: frozenset[str] = frozenset()  # types of which a value is what a user gave: a function, a type


_PYTHON = Rules(
    "python",
    redefines=True,
    runs=("__call__",),
    constructors=frozenset({"__init__", "__new__"}),
    self_name="self",
    class_name="cls",
    has_decorators=True,
    has_local_imports=True,
    has_fixtures=True,
    wrappers=frozenset({"Optional", "Annotated", "Final", "ClassVar", "Awaitable", "Coroutine", "Type", "type"}),
    class_types=frozenset({"Type", "type"}),
    properties=frozenset({"property", "cached_property", "functools.cached_property"}),
)
_ECMASCRIPT = Rules(
    "ecmascript",
    constructors=frozenset({"constructor"}),
    wrappers=frozenset({"Promise", "Readonly", "Partial", "Required", "NonNullable", "Awaited"}),
    callers=frozenset({"call", "apply"}),
    binders=frozenset({"bind"}),
    classes=frozenset({"constructor"}),
    has_prototypes=True,
    has_open_dispatch=True,
)

_JAVASCRIPT = replace(_ECMASCRIPT, has_overloads=False)
_RUBY = Rules(
    "ruby",
    sharing="global",
    has_implicit_members=True,
    has_open_classes=True,
    makers=frozenset({"new"}),
    constructors=frozenset({"initialize"}),
    callers=frozenset({"call", "yield"}),
    runs=("call",),
    binders=frozenset({"to_proc"}),
    classes=frozenset({"class"}),
    has_open_dispatch=True,
    has_method_super=True,
    has_method_calls=True,
    same=frozenset({"tap", "freeze", "dup", "clone", "itself"}),
    extension="ClassMethods",
    iteration="each",
)

_JAVA_INVOKERS = """
    run get apply accept test call compare applyAsInt applyAsLong applyAsDouble getAsInt getAsLong getAsDouble
    getAsBoolean
"""
_JVM = Rules(
    "jvm",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    wrappers=frozenset({"Lazy"}),
    callers=frozenset({*_JAVA_INVOKERS.split(), "invoke"}),
)
_JAVA = replace(_JVM, has_accessors=True)
_KOTLIN = replace(_JVM, extends_receiver=True, runs=("invoke",))
_CSHARP = Rules(
    "csharp",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    sees_outer_namespaces=True,
    has_partial_classes=True,
    wrappers=frozenset({"Task", "ValueTask", "Nullable", "Lazy"}),
    callers=frozenset({"Invoke", "BeginInvoke", "DynamicInvoke"}),
)
_GO = Rules(
    "go",
    sharing="folder",
    has_open_classes=True,
    has_named_types=True,
    has_class_scope=False,
    has_filled_fields=True,
    calls_classes=False,
    names_packages=True,
)
_RUST = Rules(
    "rust",
    calls_classes=False,
    has_module_paths=True,
    has_impls=True,
    has_class_scope=False,
    has_filled_fields=True,
    has_macro_names=True,
    wrappers=frozenset(
        [
            "Box",
            "Rc",
            "Arc",
            "Pin",
            "Cow",
            "Ref",
            "RefMut",
            "MutexGuard",
            "RwLockReadGuard",
            "RwLockWriteGuard",
            "Reverse",
        ]
    ),
    same=frozenset(
        [
            "clone",
            "borrow",
            "borrow_mut",
            "lock",
            "read",
            "write",
            "unwrap",
            "expect",
            "as_ref",
            "as_mut",
            "as_deref",
            "as_deref_mut",
            "to_owned",
            "by_ref",
            "into_inner",
            "get_mut",
            "deref",
            "deref_mut",
        ]
    ),
    iterating=frozenset({"next"}),
    default="default",
    leading=frozenset({"Result"}),
)

_C = Rules(
    "c",
    sharing="included",
    has_implicit_members=True,
    has_namespaces=True,
    is_made_by_name=True,
    runs=("operator()",),
    has_pointers=True,
    functions=frozenset({"std.function", "std.move_only_function", "function"}),
)
_PHP = Rules(
    "php",
    sharing="namespace",
    has_namespaces=True,
    has_marked_variables=True,
    runs=("__invoke",),
    makers=frozenset({"class"}),
    constructors=frozenset({"__construct"}),
    selves=frozenset({"self", "static"}),
)

_LUA = Rules(
    "lua",
    sharing="global",
    redefines=True,
    has_class_scope=False,
    has_open_dispatch=True,
    has_tables=True,
    gives_one_value=True,
    runs=("__call",),
    supers=frozenset({"super", "__super", "_super"}),
    constructors=frozenset({"init", "initialize", "_init", "__init", "new", "ctor", "constructor"}),
    globals_name="_G",
)

_BASH = Rules(
    "bash",
    sharing="loaded",
    redefines=True,
    has_class_scope=False,
    has_marked_variables=True,
    has_numbered_parameters=True,
)

_ZIG = Rules(
    "zig",
    has_implicit_members=True,
    has_class_scope=False,
    has_filled_fields=True,
    has_file_types=True,
    calls_classes=False,
    functions=frozenset({"type", "anytype"}),
)

RULES: Mapping[str, Rules] = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _ECMASCRIPT,
    "tsx": _ECMASCRIPT,
    "ruby": _RUBY,
    "java": _JAVA,
    "kotlin": _KOTLIN,
    "csharp": _CSHARP,
    "go": _GO,
    "rust": _RUST,
    "c": replace(_C, calls_classes=False),
    "cpp": _C,
    "php": _PHP,
    "lua": _LUA,
    "bash": _BASH,
    "zig": _ZIG,
}


def rules_of(language: str) -> Rules:
    """The rules of a language; of one whose names are not followed, those of a file of its own."""
    return RULES.get(language) or Rules(language)
