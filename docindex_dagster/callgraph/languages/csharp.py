"""C#: syntax and rules."""

from docindex_dagster.callgraph.extract.expressions import Expressions, Lambdas, Node, Reader, Syntax, outside, text_of
from docindex_dagster.callgraph.extract.library import ITEMS_TO_FUNCTIONS, arithmetic, mapped
from docindex_dagster.callgraph.extract.types import declared_name
from docindex_dagster.callgraph.ir import UNKNOWN, Expression, path
from docindex_dagster.callgraph.rules import Rules

_TARGETS = frozenset({"variable_declarator", "arrow_expression_clause", "return_statement", "block", "if_statement"})


def _new(node: Node, reader: Reader) -> Expression:
    """Return an instance for `new(…)` from the declared type of its target; unknown if inferred there."""
    around = outside(node, _TARGETS)
    if around is None:
        return UNKNOWN
    if around.type == "assignment_expression":
        return reader.expression(around.child_by_field_name("left"))
    declared = around.child_by_field_name("type") or around.child_by_field_name("returns")
    name = declared_name(text_of(declared))
    return path(name) if name else UNKNOWN


SYNTAX = Syntax(
    ("csharp",),
    Expressions(
        names=frozenset({"identifier", "qualified_name", "predefined_type", "implicit_parameter"}),
        members={
            "member_access_expression": ("expression", "name"),
            "conditional_access_expression": ("condition", "-1"),
            "alias_qualified_name": ("name", "name"),
        },
        calls={"invocation_expression": "function"},
        new={"object_creation_expression": "type"},
        items={"element_access_expression": "expression"},
        through={
            "await_expression": "",
            "parenthesized_expression": "",
            "assignment_expression": "right",
            "postfix_unary_expression": "",
            "generic_name": "",
            "argument": "-1",
            "arrow_expression_clause": "",
            "checked_expression": "",
            "with_expression": "",
            "array_creation_expression": "-1",
            "implicit_array_creation_expression": "-1",
        },
        either={
            "conditional_expression": ("consequence", "alternative"),
            "binary_expression": ("left", "right"),
        },
        casts={"cast_expression": "type", "as_expression": "right"},
        collections={"initializer_expression": "", "collection_expression": ""},
        literals={
            "string_literal": "String",
            "verbatim_string_literal": "String",
            "raw_string_literal": "String",
            "interpolated_string_expression": "String",
            "integer_literal": "int",
            "real_literal": "double",
            "character_literal": "char",
            "boolean_literal": "bool",
            "null_literal": "null",
            "typeof_expression": "Type",
        },
        words={"this": "this", "base": "super"},
        lambda_calls=Lambdas(
            frozenset({"lambda_expression", "anonymous_method_expression"}),
            frozenset({"argument", "argument_list"}),
            items=ITEMS_TO_FUNCTIONS,
        ),
        special={
            "invocation_expression": mapped,
            "binary_expression": arithmetic,
            "implicit_object_creation_expression": _new,
        },
        is_placed=True,
    ),
    frozenset({"method_declaration", "constructor_declaration", "local_function_statement", "lambda_expression"}),
    frozenset({"lambda_expression", "anonymous_method_expression"}),
    frozenset({"variable_declarator"}),
)

RULES = Rules(
    "csharp",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    sees_outer_namespaces=True,
    has_partial_classes=True,
    wrappers=dict.fromkeys(["Task", "ValueTask", "Nullable", "Lazy"], "object"),
    call_methods=frozenset({"Invoke", "BeginInvoke", "DynamicInvoke"}),
)
