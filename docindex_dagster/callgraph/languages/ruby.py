"""Ruby: what its grammar calls expressions and statements."""

from docindex_dagster.callgraph.extract.syntax import Expressions, Syntax

_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "constant", "global_variable"}),
    members={"scope_resolution": ("scope", "name")},
    methods={"call": ("receiver", "method")},
    items={"element_reference": "object"},
    through={
        "assignment": "right",
        "operator_assignment": "right",
        "splat_argument": "",
        "block_argument": "",
        "superclass": "",
    },
    sequences=frozenset({"then", "else", "block_body", "body_statement", "parenthesized_statements"}),
    either={
        "conditional": ("consequence", "alternative"),
        "if": ("consequence", "alternative"),
        "unless": ("consequence", "alternative"),
        "binary": ("left", "right"),
    },
    collections={"array": "", "hash": "value", "right_assignment_list": ""},
    literals={
        "string": "String",
        "integer": "Integer",
        "float": "Float",
        "simple_symbol": "Symbol",
        "regex": "Regexp",
        "true": "TrueClass",
        "false": "FalseClass",
        "nil": "nil",
        "string_array": "Array",
        "symbol_array": "Array",
    },
    words={"self": "this", "super": "super", "yield": "yield"},
    bare=frozenset({"identifier"}),
    named={"send": True, "public_send": True, "__send__": True, "method": False, "public_method": False},
    attributes=frozenset({"instance_variable", "class_variable"}),
    lambdas=frozenset({"block", "do_block"}),
    values=frozenset({"identifier", "call", "instance_variable", "array", "hash", "constant"}),
    spreads=frozenset({"splat_argument"}),
)

SYNTAX = Syntax(("ruby",), _EXPRESSIONS)
