"""PHP: what its grammar calls expressions and statements.

Variables and properties keep their `$`, so that they are not taken for functions, methods and constants of the name.
What is written from the root of all namespaces begins with that.
"""

import re
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import text_of
from docindex_dagster.callgraph.extract.syntax import Expressions, Read, Syntax
from docindex_dagster.callgraph.ir import (
    ROOT,
    UNKNOWN,
    Attribute,
    Call,
    Collection,
    Expression,
    Literal,
    either,
    head,
    path,
)
from docindex_dagster.callgraph.rules import Rules

if TYPE_CHECKING:
    from tree_sitter import Node

_CALLABLE = re.compile(r"\\?[A-Za-z_]\w*(?:\\\w+)+(?:::\w+)?|\w+::\w+")
_METHOD = re.compile(r"[A-Za-z_]\w*")
_MOST_ARMS = 12


def _path(node: "Node", _: Read) -> Expression:
    dotted = text_of(node).removeprefix("namespace\\").replace("\\", ".")
    return path(f"{ROOT}{dotted}" if dotted.startswith(".") else dotted)


def _property(node: "Node", read: Read) -> Expression:
    name = node.child_by_field_name("name")
    if name is None or name.type != "name":
        return UNKNOWN
    return Attribute(read(node.child_by_field_name("object")), f"${text_of(name)}")


def _call(node: "Node", read: Read) -> Expression:
    """A call of a function or method; with `(...)` for its arguments, that function or method itself."""
    name = node.child_by_field_name("name")
    if name is not None and name.type != "name":
        return UNKNOWN
    owner = node.child_by_field_name("object") or node.child_by_field_name("scope")
    called = read(node.child_by_field_name("function")) if name is None else Attribute(read(owner), text_of(name))
    given = node.child_by_field_name("arguments")
    first = given.named_children[0] if given is not None and given.named_children else None
    return called if first is not None and first.type == "variadic_placeholder" else Call(called)


def _constant(node: "Node", read: Read) -> Expression:
    scope, name = node.named_children[0], node.named_children[-1]
    return Attribute(read(scope), text_of(name))


def _array(node: "Node", read: Read) -> Expression:
    """`[$object, 'method']` is the method, anything else a collection."""
    values = [child.named_children[-1] for child in node.named_children[:_MOST_ARMS] if child.named_children]
    if len(values) == 2 and values[1].type in {"string", "encapsed_string"}:  # noqa: PLR2004 a pair
        name = text_of(values[1]).strip("'\"")
        if _METHOD.fullmatch(name) and _is_followed(owner := read(values[0])):
            return Attribute(owner, name)
    return Collection(tuple(dict.fromkeys(filter(_is_followed, map(read, values)))))


def _is_followed(found: Expression) -> bool:
    return found is not UNKNOWN and not isinstance(head(found), Literal)


def _string(node: "Node", _: Read) -> Expression:
    """The name of a function or static method in a namespace; any other text is just a text."""
    text = text_of(node).strip("'\"").replace("\\\\", "\\")
    if not _CALLABLE.fullmatch(text):
        return Literal("str")
    text = text.removeprefix("\\").replace("\\", ".")
    return path(f"{ROOT}.{text.replace('::', '.')}")


def _match(node: "Node", read: Read) -> Expression:
    body = node.child_by_field_name("body")
    arms = body.named_children[:_MOST_ARMS] if body is not None else []
    return either(read(arm.child_by_field_name("return_expression")) for arm in arms)


def _binary(node: "Node", read: Read) -> Expression:
    operator = node.child_by_field_name("operator")
    if text_of(operator) != "??":
        return UNKNOWN
    return either((read(node.child_by_field_name("left")), read(node.child_by_field_name("right"))))


def _ternary(node: "Node", read: Read) -> Expression:
    body = node.child_by_field_name("body") or node.child_by_field_name("condition")
    return either((read(body), read(node.child_by_field_name("alternative"))))


_EXPRESSIONS = Expressions(
    names=frozenset({"name", "variable_name", "relative_scope", "named_type"}),
    members={"scoped_property_access_expression": ("scope", "name")},
    new={"object_creation_expression": ""},
    items={"subscript_expression": ""},
    through={
        "argument": "",
        "parenthesized_expression": "",
        "clone_expression": "",
        "assignment_expression": "right",
        "augmented_assignment_expression": "right",
        "array_element_initializer": "",
        "by_ref": "",
        "error_suppression_expression": "",
    },
    literals={"integer": "int", "float": "float", "boolean": "bool", "encapsed_string": "str", "null": "null"},
    words={"$this": "this", "parent": "super"},
    readers={
        "qualified_name": _path,
        "relative_name": _path,
        "namespace_name": _path,
        "member_access_expression": _property,
        "nullsafe_member_access_expression": _property,
        "member_call_expression": _call,
        "nullsafe_member_call_expression": _call,
        "scoped_call_expression": _call,
        "function_call_expression": _call,
        "class_constant_access_expression": _constant,
        "array_creation_expression": _array,
        "string": _string,
        "match_expression": _match,
        "binary_expression": _binary,
        "conditional_expression": _ternary,
    },
)

_ANONYMOUS = frozenset({"anonymous_function", "arrow_function"})

SYNTAX = Syntax(
    ("php",),
    _EXPRESSIONS,
    frozenset({"function_definition", "method_declaration"}) | _ANONYMOUS,
    _ANONYMOUS,
    frozenset({"assignment_expression"}),
)

RULES = Rules(
    "php",
    sharing="namespace",
    has_namespaces=True,
    has_marked_variables=True,
    runs=("__invoke",),
    makers=frozenset({"class"}),
    constructors=frozenset({"__construct"}),
    selves=frozenset({"self", "static"}),
)
