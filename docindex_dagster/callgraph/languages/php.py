"""PHP: syntax and rules.

Variables and properties keep their `$` to distinguish them from functions, methods and constants. Fully qualified names
start with the root namespace.
"""

import re

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Syntax, text_of
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

_CALLABLE = re.compile(r"\\?[A-Za-z_]\w*(?:\\\w+)+(?:::\w+)?|\w+::\w+")
_METHOD = re.compile(r"[A-Za-z_]\w*")
_MOST = 12  # elements of a collection


def _path(node: Node, _: Read) -> Expression:
    dotted = text_of(node).removeprefix("namespace\\").replace("\\", ".")
    return path(f"{ROOT}{dotted}" if dotted.startswith(".") else dotted)


def _property(node: Node, read: Read) -> Expression:
    name, owner = node.child_by_field_name("name"), node.child_by_field_name("object")
    return Attribute(read(owner), f"${text_of(name)}") if name is not None and name.type == "name" else UNKNOWN


def _call(node: Node, read: Read) -> Expression:
    """Return a call of a function or method; for a first-class callable `f(...)`, the function or method itself."""
    name = node.child_by_field_name("name")
    if name is not None and name.type != "name":
        return UNKNOWN
    owner = node.child_by_field_name("object") or node.child_by_field_name("scope")
    called = read(node.child_by_field_name("function")) if name is None else Attribute(read(owner), text_of(name))
    listed = node.child_by_field_name("arguments")
    is_callable = listed is not None and any(one.type == "variadic_placeholder" for one in listed.named_children)
    return called if is_callable else Call(called)


def _array(node: Node, read: Read) -> Expression:
    """Return the method for `[$object, 'method']`, or else a collection."""
    values = [child.named_children[-1] for child in node.named_children[:_MOST] if child.named_children]
    if len(values) == 2 and values[1].type in {"string", "encapsed_string"}:  # noqa: PLR2004 a pair
        name = text_of(values[1]).strip("'\"")
        if _METHOD.fullmatch(name) and _is_resolvable(owner := read(values[0])):
            return Attribute(owner, name)
    return Collection(tuple(dict.fromkeys(filter(_is_resolvable, map(read, values)))))


def _is_resolvable(found: Expression) -> bool:
    return found is not UNKNOWN and not isinstance(head(found), Literal)


def _string(node: Node, _: Read) -> Expression:
    """Return the namespaced function or static method that a string names, or else a literal."""
    text = text_of(node).strip("'\"").replace("\\\\", "\\")
    if not _CALLABLE.fullmatch(text):
        return Literal("str")
    text = text.removeprefix("\\").replace("\\", ".")
    return path(f"{ROOT}.{text.replace('::', '.')}")


def _binary(node: Node, read: Read) -> Expression:
    is_either = text_of(node.child_by_field_name("operator")) == "??"
    return either(read(node.child_by_field_name(name)) for name in ("left", "right")) if is_either else UNKNOWN


def _ternary(node: Node, read: Read) -> Expression:
    body = node.child_by_field_name("body") or node.child_by_field_name("condition")
    return either((read(body), read(node.child_by_field_name("alternative"))))


_EXPRESSIONS = Expressions(
    names=frozenset({"name", "variable_name", "relative_scope", "named_type"}),
    members={
        "scoped_property_access_expression": ("scope", "name"),
        "class_constant_access_expression": ("0", "-1"),
    },
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
    branches={"match_expression": ("body", "return_expression")},
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
        "array_creation_expression": _array,
        "string": _string,
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
    factories=frozenset({"class"}),
    constructors=frozenset({"__construct"}),
    self_names=frozenset({"self", "static"}),
)
