"""Swift: syntax and rules.

The grammar parses a subscript as a call, and an implicit member expression (`.make(1)`) as a prefix operator before a
name.
"""

from itertools import pairwise

from docindex_dagster.callgraph.extract.callees import lambda_argument, method_of
from docindex_dagster.callgraph.extract.expressions import (
    Blocks,
    Expressions,
    Lambdas,
    Node,
    Reader,
    Syntax,
    nodes_around,
    outside,
    text_of,
)
from docindex_dagster.callgraph.extract.library import instance_of, mapped
from docindex_dagster.callgraph.extract.types import declared_name
from docindex_dagster.callgraph.extract.variables import position
from docindex_dagster.callgraph.ir import UNKNOWN, Attribute, CallbackArgument, Element, Expression, Union, path
from docindex_dagster.callgraph.rules import Hooks, Rules, first_of_result

_ITEMS_NAMES = """
    forEach map filter flatMap compactMap sorted sort first last contains allSatisfy min max reduce partition drop
    prefix removeAll firstIndex lastIndex mapValues compactMapValues count split
"""
_LAMBDAS = Lambdas(
    functions=frozenset({"lambda_literal"}),
    between=frozenset({"call_suffix", "value_argument", "value_arguments"}),
    items=frozenset(_ITEMS_NAMES.split()),
)
_HOLDERS = frozenset({"some", "success"})
_OF_SWITCH = frozenset({"switch_pattern", "switch_entry"})
_CONDITIONS = frozenset({"if_statement", "guard_statement", "while_statement"})
# Expressions with the type of a child expression, and the statements around a returned value.
_SAME_TYPE = frozenset(
    {
        "call_expression",
        "try_expression",
        "await_expression",
        "ternary_expression",
        "control_transfer_statement",
        "statements",
        "function_body",
        "if_statement",
        "guard_statement",
        "switch_entry",
        "switch_statement",
        "do_statement",
        "catch_block",
        "computed_property",
        "computed_getter",
    }
)
_TARGETS = frozenset({"Sources", "Source", "Tests"})  # their subfolders are modules


def _name(node: Node, reader: Reader) -> Expression | None:
    """Resolve `$0` and the like; None for any other name."""
    number = text_of(node).removeprefix("$")
    if not number.isdecimal() or len(number) > 1 or node.text == number.encode():
        return None
    function = next((around for around in nodes_around(node) if around.type == "lambda_literal"), None)
    if function is None:
        return None
    argument = lambda_argument(function, reader, int(number) + 1)
    return UNKNOWN if number == "0" and _is_accumulator(argument) else argument


def _is_accumulator(argument: Expression) -> bool:
    """Return whether the first argument of a closure is the accumulator of `reduce`."""
    parts = argument.parts if isinstance(argument, Union) else ()
    return any(isinstance(part, CallbackArgument) and method_of(part.of)[1] == "reduce" for part in parts)


def _call(node: Node, reader: Reader) -> Expression | None:
    """Return an element for a subscript, an empty collection, or the result of a mapping; None for other calls."""
    called, suffix = node.named_children[0], node.named_children[-1]
    if suffix.type != "call_suffix":
        return None
    if suffix.text and suffix.text.startswith(b"["):
        return Element(reader.expression(called))
    if called.type == "call_expression" and suffix.named_children and suffix.named_children[0].type == "lambda_literal":
        return reader.expression(called)  # the grammar sometimes parses a trailing closure as a second call
    if called.type in {"array_literal", "dictionary_literal"}:
        return instance_of(called)
    return mapped(node, reader)


def _operator(node: Node, _: Reader) -> Expression | None:
    """Resolve an implicit member by its contextual type; None for a real prefix operator."""
    if not text_of(node).startswith("."):
        return None
    declared = _declared(outside(node, _SAME_TYPE))
    return Attribute(path(declared), text_of(node.named_children[0])) if declared else UNKNOWN


def _declared(node: Node | None) -> str:
    """Return the declared type of a variable or of a function's result; "" for anything else."""
    kinds: list[Node] = []
    if node is not None and node.type == "property_declaration":
        kinds = [child for child in node.named_children if child.type == "type_annotation"]
    elif node is not None and node.type == "function_declaration":
        kinds = [child for child in node.children_by_field_name("name") if child.type != "simple_identifier"]
    return declared_name(text_of(next(iter(kinds), None)))


def _pattern(node: Node, reader: Reader) -> Expression:
    """Return the associated value that a pattern in an enum case binds."""
    around = node.parent
    if around is None:
        return UNKNOWN
    parts = around.named_children
    at = position(node, parts)
    first = at
    while first >= 0 and parts[first].type == "pattern":
        first -= 1
    if first < 0 or parts[first].type != "simple_identifier":
        return UNKNOWN
    others = (part for part in parts[at:] if part.type != "pattern")
    value = reader.expression(next(others, None) if around.type in _CONDITIONS else _subject(around))
    if value is UNKNOWN:
        return UNKNOWN
    name = text_of(parts[first])
    return Element(value) if name in _HOLDERS else Attribute(value, f"{name}#{at - first - 1}")


def _subject(pattern: Node) -> Node | None:
    """Return the value that the enclosing `switch` matches."""
    switch = outside(pattern, _OF_SWITCH)
    return switch.child_by_field_name("expr") if switch is not None and switch.type == "switch_statement" else None


_EXPRESSIONS = Expressions(
    names=frozenset({"simple_identifier", "type_identifier", "identifier"}),
    members={"navigation_expression": ("target", "suffix")},
    calls={"call_expression": "0"},
    new={"constructor_expression": "constructed_type"},
    through={
        "directly_assignable_expression": "",
        "try_expression": "expr",
        "await_expression": "expr",
        "postfix_expression": "target",
        "prefix_expression": "target",
        "tuple_expression": "",
        "additive_expression": "rhs",
        "multiplicative_expression": "rhs",
        "infix_expression": "rhs",
        "value_argument": "value",
        "statements": "-1",
        "control_transfer_statement": "result",
    },
    either={
        "ternary_expression": ("if_true", "if_false"),
        "nil_coalescing_expression": ("value", "if_nil"),
    },
    casts={"as_expression": "name"},
    collections={"array_literal": "", "dictionary_literal": ""},
    literals={
        "line_string_literal": "String",
        "multi_line_string_literal": "String",
        "raw_string_literal": "String",
        "integer_literal": "Int",
        "real_literal": "Double",
        "boolean_literal": "Bool",
        "regex_literal": "Regex",
        "comparison_expression": "Bool",
        "equality_expression": "Bool",
        "conjunction_expression": "Bool",
        "disjunction_expression": "Bool",
        "check_expression": "Bool",
    },
    words={"self_expression": "this", "super_expression": "super"},
    lambda_calls=_LAMBDAS,
    special={
        "simple_identifier": _name,
        "call_expression": _call,
        "prefix_expression": _operator,
        "pattern": _pattern,
    },
    is_placed=True,
)

_BLOCKS = Blocks(
    frozenset(
        {
            "if_statement",
            "while_statement",
            "for_statement",
            "do_statement",
            "switch_entry",
            "catch_block",
            "lambda_literal",
            "function_body",
            "function_declaration",
            "init_declaration",
            "protocol_function_declaration",
            "computed_property",
            "computed_getter",
            "computed_setter",
        }
    ),
    frozenset({"property_declaration", "guard_statement"}),
    frozenset({"assignment"}),
    after={"for_statement": "collection"},
    conditions=_CONDITIONS,
)

SYNTAX = Syntax(("swift",), _EXPRESSIONS, blocks=_BLOCKS)


def _module_of(path: str) -> str:
    """Return the module of a file by its folder; "" if unknown."""
    *folders, _ = path.split("/")
    return next((inner for outer, inner in pairwise(folders) if outer in _TARGETS), "")


RULES = Rules(
    "swift",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    factories=frozenset({"init"}),
    constructors=frozenset({"init"}),
    self_names=frozenset({"Self"}),
    runs=("callAsFunction",),
    has_impls=True,
    has_extensions=True,
    has_labels=True,
    has_optionals=True,
    peek_attributes=frozenset({"first", "last"}),
    hooks=Hooks(namespace=_module_of, element_types=first_of_result),
)
