"""Python: what its grammar calls expressions and statements."""

from docindex_dagster.callgraph.extract.syntax import Expressions, Syntax

_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "dotted_name"}),
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    items={"subscript": "value"},
    through={"await": "", "parenthesized_expression": "", "named_expression": "value", "type": "", "as_pattern": ""},
    either={"conditional_expression": ("0", "-1"), "boolean_operator": ("left", "right")},
    collections={
        "list": "",
        "set": "",
        "tuple": "",
        "dictionary": "value",
        "list_comprehension": "body",
        "set_comprehension": "body",
        "generator_expression": "body",
    },
    literals={
        "string": "str",
        "concatenated_string": "str",
        "integer": "int",
        "float": "float",
        "true": "bool",
        "false": "bool",
        "none": "None",
    },
    copies=frozenset({"list", "tuple", "set", "sorted", "reversed", "enumerate", "iter", "next"}),
)

SYNTAX = Syntax(("python",), _EXPRESSIONS, has_selves=True)
