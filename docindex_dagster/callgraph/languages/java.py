"""Java: syntax and rules, and the rules shared by JVM languages."""

from collections.abc import Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Lambdas, Syntax
from docindex_dagster.callgraph.extract.library import ITEMS_TO_FUNCTIONS, arithmetic, collected, mapped
from docindex_dagster.callgraph.nesting import is_class
from docindex_dagster.callgraph.resolver.values import Value, Values
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_COLLECTING = "List.of Set.of Arrays.asList Stream.of Optional.of Optional.ofNullable"

SYNTAX = Syntax(
    ("java",),
    Expressions(
        names=frozenset({"identifier", "type_identifier", "scoped_identifier", "scoped_type_identifier"}),
        members={"field_access": ("object", "field"), "method_reference": ("0", "-1")},
        methods={"method_invocation": ("object", "name")},
        new={"object_creation_expression": "type"},
        library=dict.fromkeys(_COLLECTING.split(), collected),
        items={"array_access": "array"},
        through={
            "parenthesized_expression": "",
            "assignment_expression": "right",
            "generic_type": "",
            "array_creation_expression": "value",
        },
        either={
            "ternary_expression": ("consequence", "alternative"),
        },
        casts={"cast_expression": "type"},
        collections={"array_initializer": ""},
        literals={
            "string_literal": "String",
            "text_block": "String",
            "decimal_integer_literal": "int",
            "hex_integer_literal": "int",
            "decimal_floating_point_literal": "double",
            "character_literal": "char",
            "true": "boolean",
            "false": "boolean",
            "null_literal": "null",
            "class_literal": "Class",
        },
        words={"this": "this", "super": "super"},
        lambda_calls=Lambdas(frozenset({"lambda_expression"}), frozenset({"argument_list"}), items=ITEMS_TO_FUNCTIONS),
        special={"method_invocation": mapped, "binary_expression": arithmetic},
    ),
    frozenset({"method_declaration", "constructor_declaration", "lambda_expression"}),
    frozenset({"lambda_expression"}),
    frozenset({"variable_declarator"}),
)


_JAVA_INVOKERS = """
    run get apply accept test call compare applyAsInt applyAsLong applyAsDouble getAsInt getAsLong getAsDouble
    getAsBoolean
"""
JVM = Rules(
    "jvm",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    wrappers=dict.fromkeys(["Lazy"], "object"),
    call_methods=frozenset({*_JAVA_INVOKERS.split(), "invoke"}),
)


def receiver(q: Queries, unit: Unit, scope: str) -> Sequence[Value] | None:
    """Resolve `this` in an extension function."""
    for around in unit.around(scope) if unit.receivers else ():
        if is_class(around):
            return None
        if around.id in unit.receivers:
            return q.typed(unit, around.id, unit.receivers[around.id], None)
    return None


def _accessed(_: Queries, __: Unit, value: Value) -> Values | None:
    """Return the object itself when a call only reads it."""
    return (value,) if value.kind in {"object", "external object"} else None


RULES = replace(JVM, hooks=Hooks(result=_accessed))
