r"""C and C++: what their grammars call the expressions that can be followed.

`*x`, `x[i]` and what stands before `->` are items: of a pointer the object itself, of a smart pointer or an iterator
what they point at. `::name` begins with `\.`.
"""

import re
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import ROOT, UNKNOWN, Read, Shapes, text_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

_ARGUMENTS = re.compile(r"<[^<>]*>")
_CASTS = frozenset(
    {"static_cast", "dynamic_cast", "reinterpret_cast", "const_cast", "static_pointer_cast", "dynamic_pointer_cast"}
)
_MADE = {"make_unique": "std.unique_ptr", "make_shared": "std.shared_ptr", "allocate_shared": "std.shared_ptr"}
_COPIES = frozenset({"move", "forward", "ref", "cref", "as_const", "addressof", "bind", "mem_fn", "bind_front"})


def path_of(node: "Node | None") -> str:
    """A name with its scopes, without template arguments."""
    text = text_of(node)
    shorter = _ARGUMENTS.sub("", text)
    while shorter != text:
        text, shorter = shorter, _ARGUMENTS.sub("", shorter)
    text = "".join(text.split()).replace("::", ".")
    if ".*" in text:  # a pointer to a member
        return text.rpartition("*")[2]
    return f"{ROOT}{text}" if text.startswith(".") else text


def _path(node: "Node", _: Read) -> str:
    return path_of(node)


def _member(node: "Node", read: Read) -> str:
    argument, field = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if text_of(node.child_by_field_name("operator")) in {".*", "->*"}:
        return read(field)
    name = path_of(field).removeprefix("template")
    owner = read(argument)
    if owner.startswith(":"):
        owner = f"({owner})"
    points = text_of(node.child_by_field_name("operator")) == "->" and owner != "this"
    return f"{owner}[].{name}" if points else f"{owner}.{name}"


def _pointed(node: "Node", read: Read) -> str:
    value = read(node.child_by_field_name("argument"))
    if text_of(node.child_by_field_name("operator")) == "&" or value in {"this", UNKNOWN}:
        return value
    return f"({value})[]" if value.startswith(":") else f"{value}[]"


def _call(node: "Node", read: Read) -> str:
    function = node.child_by_field_name("function")
    called = read(function)
    space, _, name = called.rpartition(".")
    if name in _COPIES and space in {"std", ""}:
        given = node.child_by_field_name("arguments")
        return read(given.named_children[0]) if given is not None and given.named_children else UNKNOWN
    if "<" in text_of(function) and (arguments := _template_arguments(function)) is not None:
        first = canonical_type(text_of(next(iter(arguments.named_children), None)))
        if first and name in _CASTS:
            return f":{first}"
        if first and name in _MADE:
            return f":{_MADE[name]}<{first}>"
        if space == "std":
            return f":{canonical_type(text_of(function))}"
    return f"({called})()" if called.startswith(":") else f"{called}()"


def _template_arguments(node: "Node | None") -> "Node | None":
    while node is not None and node.type == "qualified_identifier":
        node = node.child_by_field_name("name")
    return node.child_by_field_name("arguments") if node is not None else None


def _function_pointer(node: "Node", read: Read) -> str:
    """The name of a pointer to a function; a function that is just declared is none."""
    inner = node.child_by_field_name("declarator")
    return read(inner) if inner is not None and inner.type == "parenthesized_declarator" else UNKNOWN


def _last(node: "Node", _: Read) -> str:
    return text_of(node.named_children[-1]) if node.named_children else UNKNOWN


def _number(node: "Node", _: Read) -> str:
    text = text_of(node)
    return "#float" if "." in text and not text.startswith("0x") else "#int"


def _replacement(node: "Node", _: Read) -> str:
    text = text_of(node).strip()
    return text if text.isidentifier() else UNKNOWN


C = Shapes(
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
        "structured_binding_declarator": _last,
        "number_literal": _number,
        "preproc_arg": _replacement,
    },
)
