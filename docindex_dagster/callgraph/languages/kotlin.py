"""Kotlin: syntax, rules, and resolution of `it` and `this` in lambdas."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from docindex_dagster.callgraph.extract.callees import call_around, lambda_argument, method_of
from docindex_dagster.callgraph.extract.expressions import (
    Expressions,
    Lambdas,
    Node,
    Reader,
    Syntax,
    nodes_around,
    text_of,
)
from docindex_dagster.callgraph.extract.library import (
    AROUND_ARGUMENTS,
    ITEMS_TO_FUNCTIONS,
    arithmetic,
    collected,
    mapped,
    something,
)
from docindex_dagster.callgraph.ir import (
    ANY,
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    CallbackArgument,
    Expression,
    Implicit,
    Literal,
    Name,
    Union,
    either,
)
from docindex_dagster.callgraph.languages.java import JVM, receiver
from docindex_dagster.callgraph.resolver.values import Value
from docindex_dagster.callgraph.rules import Hooks, Queries

_LAMBDAS = Lambdas(
    functions=frozenset({"lambda_literal"}),
    between=AROUND_ARGUMENTS - {"argument", "argument_list"},
    same=frozenset({"let", "also", "takeIf", "takeUnless"}),
    items=ITEMS_TO_FUNCTIONS,
)
_WITH_RECEIVER = frozenset({"apply", "run"})
_RETURNS_RECEIVER = frozenset({"also", "apply", "copy", "takeIf", "takeUnless", "onEach"})
_WITHOUT_RECEIVER = ITEMS_TO_FUNCTIONS | _LAMBDAS.same
_LIBRARY_NAMES = """
    repeat let also println print require check runBlocking launch async coroutineScope withContext withTimeout lazy
    synchronized use runCatching measureTimeMillis thread remember LaunchedEffect supervisorScope withTimeoutOrNull
"""
_LIBRARY = frozenset(_LIBRARY_NAMES.split())
_AROUND_FUNCTIONS = frozenset({"function_declaration", "class_body", "source_file"})
_COLLECTING = "listOf mutableListOf arrayListOf setOf mutableSetOf arrayOf sequenceOf listOfNotNull"
_MAX_DEPTH = 4  # of nested lambdas
_MOST_OBJECTS = 3
_COLLECTION = re.compile(r"(?:mutable|linked|hash|empty|array)?(List|Set|Map)(?:Of)?|(list|set|map|array)Of")


def _name(node: Node, reader: Reader) -> Expression | None:
    """Resolve `it`, and a called name that may be a member of the receivers of enclosing lambdas."""
    if node.text == b"it":
        return _it(node, reader)
    call = node.parent
    if call is None or call.type != "call_expression" or call.named_child(0) != node:
        return None
    objects = _objects_around(node, reader)
    return _implicit(objects, text_of(node)) if objects else None


def _implicit(objects: Sequence[Expression], name: str) -> Implicit:
    """Return a name that may be a member of some receivers; a single union counts as several receivers."""
    only = objects[0] if len(objects) == 1 else None
    return Implicit(only.parts if isinstance(only, Union) else tuple(objects), name)


def _call(node: Node, reader: Reader) -> Expression | None:
    """Return the object or collection that a call with type arguments creates, or the receiver that it returns."""
    called, suffix = node.named_children[0], node.named_children[-1]
    if called.type == "navigation_expression":
        method = text_of(called.named_children[-1]).lstrip("?.")
        return reader.expression(called.named_children[0]) if method in _RETURNS_RECEIVER else mapped(node, reader)
    types = next(iter(suffix.named_children), None)
    if called.type != "simple_identifier" or types is None or types.type != "type_arguments":
        return None
    name = text_of(called)
    if collection := _COLLECTION.fullmatch(name):
        name = (collection[1] or collection[2]).capitalize()
    return something(name + text_of(types)) if name[:1].isupper() else None


def _it(node: Node, reader: Reader) -> Expression | None:
    """Resolve `it`; if a lambda may have no parameter, also that of the next enclosing lambda."""
    arguments: list[Expression] = []
    for function in islice(_functions_around(node, named=False), _MOST_OBJECTS):
        call = call_around(function, _LAMBDAS)
        called = call.named_child(0) if call is not None else None
        arguments.append(Literal("Int") if text_of(called) == "repeat" else lambda_argument(function, reader))
        if not isinstance(arguments[-1], CallbackArgument):
            break
    known = either(arguments)
    return None if known is UNKNOWN else known


def _this(node: Node, reader: Reader) -> Expression:
    """Resolve `this` or `this@Outer`."""
    _, _, label = text_of(node).partition("@")
    if not label:
        return next(iter(_objects_around(node, reader)), THIS)
    for function in _functions_around(node):
        found = reader.expression(call_around(function, _LAMBDAS))
        if isinstance(found, Call) and method_of(found.callee)[1] == label:
            return _object_of(function, None, reader) or UNKNOWN
    return Attribute(Name(label), "this")


def _object(node: Node, _: Reader) -> Expression:
    """Return an instance of the first supertype of an object expression."""
    first = next((child for child in node.named_children if child.type == "delegation_specifier"), None)
    return something(text_of(first).partition("(")[0].partition("<")[0])


def _objects_around(node: Node, reader: Reader) -> list[Expression]:
    """Return the receivers of the enclosing lambdas, innermost first."""
    functions = [*islice(_functions_around(node), _MAX_DEPTH)]
    found: list[Expression] = []
    for function in reversed(functions):
        if receiver := _object_of(function, found[0] if found else None, reader):
            found.insert(0, receiver)
    return found[:_MOST_OBJECTS]


def _object_of(function: Node, outer: Expression | None, reader: Reader) -> Expression | None:
    """Return the receiver of a lambda; `outer` is the receiver of the enclosing lambda."""
    call = call_around(function, _LAMBDAS)
    called = call.named_child(0) if call is not None and call.type == "call_expression" else None
    if call is None or called is None:
        return None
    if called.type == "simple_identifier":
        return _object_of_call(call, text_of(called), outer, reader)
    callee = reader.expression(called)
    owner, method = method_of(callee)
    if owner is None or method in _WITHOUT_RECEIVER:
        return None
    return owner if method in _WITH_RECEIVER else CallbackArgument(callee, ANY, 0)


def _object_of_call(call: Node, method: str, outer: Expression | None, reader: Reader) -> Expression | None:
    """Return the receiver of a lambda passed to a method that is called without a receiver."""
    if method == "with":
        arguments = call.named_children[-1].named_child(0)
        return reader.expression(arguments.named_child(0)) if arguments is not None else None
    if method in _WITH_RECEIVER:
        return outer or THIS
    if method in _LIBRARY:
        return None
    return CallbackArgument(_implicit([outer], method) if outer else Name(method), ANY, 0)


def _functions_around(node: Node, *, named: bool = True) -> Iterator[Node]:
    """Yield the enclosing lambdas, innermost first; without `named`, only those without explicit parameters."""
    for around in nodes_around(node):
        if around.type in _AROUND_FUNCTIONS:
            return
        if around.type != "lambda_literal":
            continue
        if named or all(child.type != "lambda_parameters" for child in around.named_children):
            yield around


_SPECIAL = {
    "additive_expression": arithmetic,
    "multiplicative_expression": arithmetic,
    "call_expression": _call,
    "this_expression": _this,
    "simple_identifier": _name,
    "object_literal": _object,
}

SYNTAX = Syntax(
    ("kotlin",),
    Expressions(
        names=frozenset({"simple_identifier", "type_identifier", "identifier", "user_type"}),
        members={"navigation_expression": ("0", "-1"), "callable_reference": ("0", "-1")},
        calls={"call_expression": "0"},
        library=dict.fromkeys(_COLLECTING.split(), collected),
        methods={"infix_expression": ("0", "1")},
        items={"indexing_expression": "0"},
        through={
            "parenthesized_expression": "",
            "postfix_expression": "",
            "value_argument": "-1",
            "control_structure_body": "-1",
            "statements": "-1",
        },
        either={"elvis_expression": ("0", "1"), "if_expression": ("consequence", "alternative")},
        casts={"as_expression": "1"},
        literals={
            "string_literal": "String",
            "line_string_literal": "String",
            "multi_line_string_literal": "String",
            "integer_literal": "Int",
            "long_literal": "Long",
            "real_literal": "Double",
            "boolean_literal": "Boolean",
            "character_literal": "Char",
            "comparison_expression": "Boolean",
            "equality_expression": "Boolean",
            "conjunction_expression": "Boolean",
            "disjunction_expression": "Boolean",
            "check_expression": "Boolean",
        },
        words={"super_expression": "super", "super": "super"},
        lambda_calls=_LAMBDAS,
        special=_SPECIAL,
        is_placed=True,
    ),
    frozenset({"function_declaration", "anonymous_function", "secondary_constructor"}),
    frozenset({"anonymous_function"}),
    frozenset({"property_declaration"}),
)


def _fallback(_: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """Resolve INSTANCE, the field through which Java accesses a singleton object."""
    return [value] if value.kind == "class" and name == "INSTANCE" and not found else ()


RULES = replace(JVM, extends_receiver=True, runs=("invoke",), hooks=Hooks(this=receiver, fallback=_fallback))
