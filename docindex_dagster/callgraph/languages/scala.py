"""Scala: syntax and rules."""

from collections.abc import Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.callees import argument_from_call, lambda_argument
from docindex_dagster.callgraph.extract.expressions import (
    Blocks,
    Expressions,
    Lambdas,
    Node,
    Reader,
    Syntax,
    nodes_around,
    outside,
    parts_of,
    text_of,
)
from docindex_dagster.callgraph.extract.library import body_of, collected, object_and_method, something
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.extract.variables import HELD, AccessStep, position, with_steps
from docindex_dagster.callgraph.ir import (
    UNKNOWN,
    Attribute,
    Call,
    CallbackArgument,
    Collection,
    Element,
    Expression,
    Union,
    either,
    is_known,
    walk,
)
from docindex_dagster.callgraph.languages.java import JVM, receiver
from docindex_dagster.callgraph.resolver.builtins import is_value
from docindex_dagster.callgraph.resolver.values import FUNCTION_TYPE, Value
from docindex_dagster.callgraph.rules import Hooks, Queries, Unit

_ITEMS_NAMES = """
    foreach map filter flatMap collect filterNot withFilter exists forall find count sortBy sortWith groupBy partition
    maxBy minBy sumBy takeWhile dropWhile reduce reduceLeft indexWhere distinctBy span collectFirst tapEach mapValues
    groupMap fold
"""
_ITEMS = frozenset(_ITEMS_NAMES.split())
_LAMBDAS = Lambdas(
    functions=frozenset({"lambda_expression", "colon_argument", "case_block"}),
    between=frozenset({"arguments", "block", "parenthesized_expression"}),
    items=_ITEMS,
)
_HOLDERS = frozenset({"Some", "Right", "Success", "List", "Seq", "Vector"})
_MAPPING = frozenset({"map", "flatMap"})
_JOINING = frozenset({"::", ":::", "+:", ":+", "++"})
_MATCHING = frozenset({"case_clause", "val_definition", "var_definition", "enumerator"})
_CASTS = frozenset({"asInstanceOf", "summon", "implicitly", "super"})


def _generic(node: Node, reader: Reader) -> Expression:
    """Return an instance of the type in a cast or `summon`; otherwise a call with only type arguments."""
    called = node.child_by_field_name("function")
    while called is not None and called.type == "infix_expression":  # the grammar parses `a + b[T]` as `(a + b)[T]`
        called = called.child_by_field_name("right")
    named = called.child_by_field_name("field") if called is not None and called.type == "field_expression" else called
    if text_of(named) in _CASTS:
        return something(text_of(node.child_by_field_name("type_arguments")).strip("[]"))
    callee, around = reader.expression(called), node.parent
    is_called = around is not None and around.type == "call_expression" and around.named_children[0].id == node.id
    return callee if is_called or callee is UNKNOWN else Call(callee)


def _joined(node: Node, reader: Reader) -> Expression | None:
    """Return a collection extended with an element or joined with another one; None for other operators."""
    operator = text_of(node.child_by_field_name("operator"))
    if operator not in _JOINING:
        return None
    left, right = (reader.expression(node.child_by_field_name(name)) for name in ("left", "right"))
    left = Collection((left,)) if operator in {"::", "+:"} and left is not UNKNOWN else left
    right = Collection((right,)) if operator == ":+" and right is not UNKNOWN else right
    return either([left, right])


def _mapped(node: Node, reader: Reader) -> Expression | None:
    """Return a mapping call with the results of its callback; None for other calls."""
    of, method = object_and_method(node, reader.syntax)
    arguments = parts_of(node.child_by_field_name("arguments"))
    if of is None or method not in _MAPPING or len(arguments) != 1:
        return None
    function, owner = arguments[0], reader.expression(of)
    if function.type == "lambda_expression":
        result = body_of(function, Element(owner), reader)
    else:
        result = reader.expression(function)
        has_placeholder = any(isinstance(part, CallbackArgument) for part in walk(result))
        is_function = function.type in {"identifier", "field_expression"} and not has_placeholder
        result = Call(result) if is_function else result
    if not is_known(result) or owner is UNKNOWN:
        return None
    element = Element(result) if method == "flatMap" else result
    return Union((Call(Attribute(owner, method)), Collection((element,))))


def _placeholder(node: Node, reader: Reader) -> Expression:
    """Resolve the placeholder `_` in an argument, which turns the argument into a function."""
    function = next((inner for inner in (node, *nodes_around(node)) if _is_argument(inner)), node)
    call = outside(function, _LAMBDAS.between)
    if call is None or call.type not in {"call_expression", "infix_expression"} or function.id == node.id:
        return UNKNOWN
    return argument_from_call(call, reader)


def _is_argument(node: Node) -> bool:
    """Return whether a node is an argument of a call."""
    around = node.parent
    if around is None or around.type == "infix_expression":
        return around is not None and node.type == "parenthesized_expression"
    return around.type in {"arguments", "block"}


def _matched(name: Node, reader: Reader) -> Expression:
    """Return the part of the matched value that a name in a pattern binds."""
    steps: list[AccessStep] = []
    node = name
    for outer in nodes_around(name):
        parts = [child for child in outer.named_children if child.type != "type_arguments"]
        at = position(node, parts)
        if outer.type == "case_class_pattern":
            cls = declared_type(text_of(outer.child_by_field_name("type")))
            last = cls.name.rpartition(".")[2] if cls else ""
            steps.append(HELD if last in _HOLDERS else AccessStep(f"{last}#{at - 1}", cls=cls))
        elif outer.type == "tuple_pattern":
            steps.append(AccessStep(str(at), at == len(parts) - 1))
        elif outer.type == "infix_pattern" and at == 0:
            steps.append(HELD)
        elif outer.type in _MATCHING:
            return with_steps(_subject(outer, reader), steps)
        node = outer
    return UNKNOWN


def _subject(around: Node, reader: Reader) -> Expression:
    """Return the value that a pattern is matched against."""
    if around.type != "case_clause":
        if (subject := around.child_by_field_name("value")) is not None:
            return reader.expression(subject)
        value = reader.expression(around.named_child(1))
        return value if value is UNKNOWN else Element(value)
    cases = around.parent
    match = cases.parent if cases is not None else None
    if cases is None or match is None or match.type == "catch_clause":
        return UNKNOWN
    if match.type == "match_expression":
        return reader.expression(match.child_by_field_name("value"))
    return lambda_argument(cases, reader)


_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "type_identifier", "stable_type_identifier"}),
    members={"field_expression": ("value", "field")},
    calls={"call_expression": "function"},
    methods={"infix_expression": ("left", "operator")},
    new={"instance_expression": ""},
    through={
        "parenthesized_expression": "",
        "generic_function": "function",
        "ascription_expression": "",
        "assignment_expression": "right",
        "postfix_expression": "",
        "try_expression": "body",
        "prefix_expression": "",
        "case_clause": "body",
    },
    sequences=frozenset({"block", "indented_block"}),
    either={"if_expression": ("consequence", "alternative")},
    branches={"match_expression": ("body", "body")},
    collections={"tuple_expression": ""},
    library=dict.fromkeys(["List", "Seq", "Vector", "Set", "Array", "Some", "Option", "Right", "Iterator"], collected),
    literals={
        "string": "String",
        "interpolated_string_expression": "String",
        "integer_literal": "Int",
        "floating_point_literal": "Double",
        "boolean_literal": "Boolean",
        "character_literal": "Char",
        "null_literal": "null",
    },
    lambda_calls=_LAMBDAS,
    special={
        "call_expression": _mapped,
        "infix_expression": _joined,
        "generic_function": _generic,
        "wildcard": _placeholder,
    },
    matching=_matched,
    is_placed=True,
)

_BLOCKS = Blocks(
    frozenset(
        {
            "block",
            "indented_block",
            "case_clause",
            "lambda_expression",
            "colon_argument",
            "for_expression",
            "function_definition",
            "function_declaration",
            "template_body",
        }
    ),
    frozenset({"val_definition", "var_definition"}),
    frozenset({"assignment_expression"}),
    conditions=frozenset({"enumerator"}),
)

SYNTAX = Syntax(("scala",), _EXPRESSIONS, blocks=_BLOCKS, nests_namespaces=True)


def _result(q: Queries, unit: Unit, value: Value) -> Sequence[Value] | None:
    """Return the result of calling an object: that of its `apply`, the object itself, or elements of a collection."""
    if value.kind == "object":
        return [found for member in q.callable_of(value) for found in q.result(unit, member)] or [value]
    if value.kind not in {"external object", "collection"} or value.name == FUNCTION_TYPE:
        return None
    return q.elements(value) if value.held and is_value(value.name) else (value,)


RULES = replace(
    JVM,
    extends_receiver=True,
    has_partial_classes=True,
    has_companions=True,
    has_bare_calls=True,
    has_relative_imports=True,
    has_open_extensions=True,
    identity_methods=frozenset({"copy"}),
    runs=("apply",),
    call_methods=frozenset({"apply"}),
    peek_attributes=frozenset({"head", "last", "get", "max", "min", "next"}),
    hooks=Hooks(this=receiver, result=_result),
)
