"""C and C++: syntax and rules.

`*x`, `x[i]` and the operand of `->` are elements: the object itself for a pointer, or the target of a smart pointer or
iterator. `::name` starts at the global namespace.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.declarations import qualified_name
from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Syntax, parts_of, text_of
from docindex_dagster.callgraph.extract.library import instance_of
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    Element,
    Expression,
    Instance,
    Literal,
    Name,
    TypeRef,
    path,
    path_of,
)
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.resolver.values import Value, Values
from docindex_dagster.callgraph.rules import Arguments, Hooks, Queries, Rules

_CASTS = frozenset(
    {"static_cast", "dynamic_cast", "reinterpret_cast", "const_cast", "static_pointer_cast", "dynamic_pointer_cast"}
)
_FACTORIES = {"make_unique": "std.unique_ptr", "make_shared": "std.shared_ptr", "allocate_shared": "std.shared_ptr"}
_COPIES = frozenset({"move", "forward", "ref", "cref", "as_const", "addressof", "bind", "mem_fn", "bind_front"})
_PAIRS = ("map", "pair")


def _path(node: Node, _: Read) -> Expression:
    """Return a qualified name as a path; destructors are unknown."""
    name = qualified_name(node)
    return UNKNOWN if "~" in name else path(name)


def _member(node: Node, read: Read) -> Expression:
    field, operator = node.child_by_field_name("field"), text_of(node.child_by_field_name("operator"))
    if operator in {".*", "->*"}:
        return read(field)
    owner = read(node.child_by_field_name("argument"))
    if operator == "->" and owner is not THIS:
        owner = Element(owner)
    names = qualified_name(field).removeprefix("template").split(".")
    for name in names:
        owner = Attribute(owner, name)
    return UNKNOWN if "~" in names[-1] else owner


def _pointed(node: Node, read: Read) -> Expression:
    value = read(node.child_by_field_name("argument"))
    is_address = text_of(node.child_by_field_name("operator")) == "&"
    return value if is_address or value is THIS or value is UNKNOWN else Element(value)


def _call(node: Node, read: Read) -> Expression:
    function = node.child_by_field_name("function")
    called = read(function)
    space, _, name = path_of(called).rpartition(".")
    if name in _COPIES and space in {"std", ""}:
        return read(next(iter(parts_of(node.child_by_field_name("arguments"))), None))
    while function is not None and function.type == "qualified_identifier":
        function = function.child_by_field_name("name")
    types = function.child_by_field_name("arguments") if function is not None else None
    first = declared_type(text_of(next(iter(parts_of(types)), None)))
    if first and name in _CASTS:
        return Instance(first)
    if first and name in _FACTORIES:
        return Instance(TypeRef(_FACTORIES[name], (first,)))
    return instance_of(node.child_by_field_name("function")) if types is not None and space == "std" else Call(called)


def _function_pointer(node: Node, read: Read) -> Expression:
    """Return the name of a function pointer; unknown for a function declaration."""
    inner = node.child_by_field_name("declarator")
    return read(inner) if inner is not None and inner.type == "parenthesized_declarator" else UNKNOWN


def _number(node: Node, _: Read) -> Expression:
    text = text_of(node)
    return Literal("float" if "." in text and not text.startswith("0x") else "int")


def _replacement(node: Node, _: Read) -> Expression:
    text = text_of(node).strip()
    return Name(text) if text.isidentifier() else UNKNOWN


_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "field_identifier", "type_identifier", "namespace_identifier"}),
    new={"new_expression": "type"},
    calls={"compound_literal_expression": "type"},
    items={"subscript_expression": "argument"},
    through={
        "parenthesized_expression": "",
        "assignment_expression": "right",
        "template_function": "name",
        "template_type": "name",
        "template_method": "name",
        "pointer_declarator": "declarator",
        "array_declarator": "declarator",
        "init_declarator": "declarator",
        "reference_declarator": "",
        "parenthesized_declarator": "",
        "attributed_declarator": "",
        "type_descriptor": "type",
        "structured_binding_declarator": "-1",
        "struct_specifier": "name",
        "class_specifier": "name",
    },
    either={"conditional_expression": ("consequence", "alternative")},
    casts={"cast_expression": "type"},
    collections={"initializer_list": "value"},
    literals={
        "string_literal": "str",
        "raw_string_literal": "str",
        "concatenated_string": "str",
        "char_literal": "char",
        "true": "bool",
        "false": "bool",
        "null": "null",
    },
    words={"this": "this"},
    readers={
        "qualified_identifier": _path,
        "nested_namespace_specifier": _path,
        "field_expression": _member,
        "pointer_expression": _pointed,
        "call_expression": _call,
        "function_declarator": _function_pointer,
        "number_literal": _number,
        "preproc_arg": _replacement,
    },
)

_ANONYMOUS = frozenset({"lambda_expression"})

C_SYNTAX = Syntax(("c",), _EXPRESSIONS, stores_paths=True)
CPP_SYNTAX = Syntax(
    ("c", "cpp"),
    _EXPRESSIONS,
    frozenset({"function_definition"}) | _ANONYMOUS,
    _ANONYMOUS,
    frozenset({"init_declarator"}),
    stores_paths=True,
)

_STANDARD_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype unistd fcntl dirent
    pthread poll sched semaphore dlfcn glob grp pwd regex syslog termios utime strings getopt malloc memory alloca
    windows winsock2 io direct process
"""

_MODULES = Search(
    ("{}",),
    near=re.compile(rf"(?:{'|'.join(_STANDARD_HEADERS.split())})\.h$"),
    climbs=False,
    anywhere=("",),
)

_BUILTINS = """
    std int char bool double float long short unsigned signed void size_t ssize_t auto wchar_t int8_t int16_t int32_t
    int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t ptrdiff_t FILE
"""


def _element_types(name: str, arguments: Arguments) -> Arguments:
    """Return the element types among the arguments of a library type, without allocators and the like."""
    return arguments[: 2 if name.endswith(_PAIRS) else 1] if name.startswith("std.") else arguments


def _function_member(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a function for a member of the table row or pair that it represents."""
    return [value] if name == "second" or q.unit(value.path).language == "c" else ()


def _fallback(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """Return a value for `second` of a pair, since pairs are represented by their values."""
    is_enum = value.kind == "class" and q.definition(value).kind == "enum"
    return [value] if name == "second" and not found and not is_enum else ()


def _object_elements(_: Queries, value: Value) -> Values:
    """Return the object itself, since an object also represents pointers to it."""
    return (value,)


CPP_RULES = Rules(
    "c",
    find=_MODULES.find,
    sharing="included",
    has_implicit_members=True,
    has_namespaces=True,
    has_named_constructors=True,
    runs=("operator()",),
    has_pointers=True,
    function_types=frozenset({"std.function", "std.move_only_function", "function"}),
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(
        fallback=_fallback,
        function_member=_function_member,
        element_types=_element_types,
        object_elements=_object_elements,
    ),
)
C_RULES = replace(CPP_RULES, calls_classes=False)
