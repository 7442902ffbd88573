"""Scala: what its grammar calls the expressions that can be followed."""

from typing import TYPE_CHECKING

from docindex_dagster.code.callees import callee, what_is_given
from docindex_dagster.code.expressions import UNKNOWN, Given, Shapes, expression, text_of
from docindex_dagster.code.lambdas import body_of
from docindex_dagster.code.shadows import Blocks
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

_ITEMS_NAMES = """
    foreach map filter flatMap collect filterNot withFilter exists forall find count sortBy sortWith groupBy partition
    maxBy minBy sumBy takeWhile dropWhile reduce reduceLeft indexWhere distinctBy span collectFirst tapEach mapValues
    groupMap fold
"""
_ITEMS = frozenset(_ITEMS_NAMES.split())
_GIVEN = Given(
    functions=frozenset({"lambda_expression", "colon_argument", "case_block"}),
    between=frozenset({"arguments", "block", "parenthesized_expression"}),
    items=_ITEMS,
)
_HOLDERS = frozenset({"Some", "Right", "Success", "List", "Seq", "Vector"})
_MAPPING = frozenset({"map", "flatMap"})
_JOINING = frozenset({"::", ":::", "+:", ":+", "++"})
_CASTS = frozenset({"asInstanceOf", "summon", "implicitly", "super"})


def _generic(node: "Node", shapes: Shapes) -> str:
    """Something of the type that a cast, or a search for an instance, names; a call, where it has no other brackets."""
    called = node.child_by_field_name("function")
    while called is not None and called.type == "infix_expression":  # of `a + b[T]` the grammar reads `a + b` first
        called = called.child_by_field_name("right")
    named = called.child_by_field_name("field") if called is not None and called.type == "field_expression" else called
    if text_of(named) not in _CASTS:
        around, made = node.parent, expression(called, shapes)
        is_called = around is not None and around.type == "call_expression" and around.named_children[0].id == node.id
        return made if is_called or made == UNKNOWN else f"{made}()"
    return f":{canonical_type(text_of(node.child_by_field_name('type_arguments')).strip('[]'))}"


def _joined(node: "Node", shapes: Shapes) -> str:
    """A collection with an element more, or of two others; "" of other operators."""
    operator = text_of(node.child_by_field_name("operator"))
    if operator not in _JOINING:
        return ""
    left, right = (expression(node.child_by_field_name(name), shapes) for name in ("left", "right"))
    left = f"{{{left}}}" if operator in {"::", "+:"} and left != UNKNOWN else left
    right = f"{{{right}}}" if operator == ":+" and right != UNKNOWN else right
    known = [one for one in (left, right) if one != UNKNOWN]
    return f"({'|'.join(known)})" if len(known) > 1 else next(iter(known), UNKNOWN)


def _mapped(node: "Node", shapes: Shapes) -> str:
    """A call that makes something of each element, by what its function gives; "" of other calls."""
    called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or given is None or called.type != "field_expression":
        return ""
    method = text_of(called.child_by_field_name("field"))
    if method not in _MAPPING or given.named_child_count != 1:
        return ""
    function, owner = given.named_children[0], expression(called.child_by_field_name("value"), shapes)
    if function.type == "lambda_expression":
        made = body_of(function, f"{owner}[]", shapes)
    else:
        made = expression(function, shapes)
        made = f"{made}()" if function.type in {"identifier", "field_expression"} and "^*" not in made else made
    if made.startswith((UNKNOWN, "#")) or owner == UNKNOWN:
        return ""
    return f"({owner}.{method}()|{{{made}[]}})" if method == "flatMap" else f"({owner}.{method}()|{{{made}}})"


def _placeholder(node: "Node", shapes: Shapes) -> str:
    """What `_` stands for in an argument that is a function by it."""
    function = node
    while function.parent is not None and not _is_argument(function):
        function = function.parent
    call = function.parent
    if call is not None and call.type in _GIVEN.between:
        call = call.parent
    if call is None or call.type not in {"call_expression", "infix_expression"} or function.id == node.id:
        return UNKNOWN
    called = callee(call, shapes)
    owner, _, method = called.rpartition(".")
    if called == UNKNOWN or not owner:
        return UNKNOWN if called == UNKNOWN else f"{called}^*1"
    return f"({owner}[]|{called}^*1)" if method in _ITEMS else f"{called}^*1"


def _is_argument(node: "Node") -> bool:
    """Whether a node is what is given to a call."""
    around = node.parent
    if around is None or around.type == "infix_expression":
        return around is not None and node.type == "parenthesized_expression"
    return around.type in {"arguments", "block"}


def matched(name: "Node", shapes: Shapes) -> str:
    """What a name in a pattern stands for: the part of the value to which the pattern is matched."""
    steps: list[tuple[str, str]] = []  # the class of a pattern, or "", and the step into it
    node = name
    while (outer := node.parent) is not None:
        parts = [child for child in outer.named_children if child.type != "type_arguments"]
        at = next((index for index, part in enumerate(parts) if part.id == node.id), 0)
        if outer.type == "case_class_pattern":
            cls = canonical_type(text_of(outer.child_by_field_name("type")))
            last = cls.rpartition(".")[2]
            steps.append(("", "[]") if last in _HOLDERS else (cls, f".{last}#{at - 1}"))
        elif outer.type == "tuple_pattern":
            steps.append(("", f".{at}$" if at == len(parts) - 1 else f".{at}"))
        elif outer.type == "infix_pattern":
            steps.append(("", "[]" if at == 0 else ""))
        elif outer.type in {"case_clause", "val_definition", "var_definition", "enumerator"}:
            return _with(_subject(outer, shapes), steps)
        node = outer
    return UNKNOWN


def _subject(around: "Node", shapes: Shapes) -> str:
    """The value to which a pattern is matched."""
    if around.type != "case_clause":
        if (whole := around.child_by_field_name("value")) is not None:
            return expression(whole, shapes)
        value = expression(around.named_children[1] if around.named_child_count > 1 else None, shapes)
        return value if value == UNKNOWN else f"{value}[]"
    cases = around.parent
    match = cases.parent if cases is not None else None
    if cases is None or match is None or match.type == "catch_clause":
        return UNKNOWN
    if match.type == "match_expression":
        return expression(match.child_by_field_name("value"), shapes)
    return what_is_given(cases, shapes)


def _with(value: str, steps: list[tuple[str, str]]) -> str:
    """A value with the steps to a part of it, from what classes in the pattern tell where the value tells nothing."""
    for cls, step in reversed(steps):
        part = UNKNOWN if value == UNKNOWN else f"{value}{step.rstrip('$')}"
        if step.endswith("$") and value.endswith(("[]", "^*1)")):
            part = f"({part}|{value})"
        of_class = f"(:{cls}){step}" if cls else UNKNOWN
        known = [one for one in (part, of_class) if one != UNKNOWN]
        value = f"({'|'.join(known)})" if len(known) > 1 else next(iter(known), UNKNOWN)
    return value


SCALA = Shapes(
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
    collecting=frozenset({"List", "Seq", "Vector", "Set", "Array", "Some", "Option", "Right", "Iterator"}),
    literals={
        "string": "String",
        "interpolated_string_expression": "String",
        "integer_literal": "Int",
        "floating_point_literal": "Double",
        "boolean_literal": "Boolean",
        "character_literal": "Char",
        "null_literal": "null",
    },
    given=_GIVEN,
    special={
        "call_expression": _mapped,
        "infix_expression": _joined,
        "generic_function": _generic,
        "wildcard": _placeholder,
    },
    matching=matched,
    is_placed=True,
)

SCALA_BLOCKS = Blocks(
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
