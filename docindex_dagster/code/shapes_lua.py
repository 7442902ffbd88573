"""Lua: what its grammar calls the expressions that can be followed.

A table is its own class: `setmetatable(object, Class)` stands for its last argument, in which members are looked for.
"""

from docindex_dagster.code.expressions import Shapes

LUA = Shapes(
    names=frozenset({"identifier"}),
    members={"dot_index_expression": ("table", "field"), "method_index_expression": ("table", "method")},
    calls={"function_call": "name"},
    items={"bracket_index_expression": "table"},
    through={"parenthesized_expression": "", "expression_list": ""},
    either={"binary_expression": ("left", "right")},
    collections={"table_constructor": "value"},
    keys={"field": "name", "bracket_index_expression": "field"},
    labels={"field": "name"},
    written=frozenset({"function_definition"}),
    modules=frozenset({"require"}),
    copies=frozenset({"setmetatable", "ipairs", "pairs"}),
    literals={"string": "string", "number": "number", "true": "boolean", "false": "boolean", "nil": "nil"},
    words={"self": "this"},
)
LUA_ANONYMOUS = frozenset({"function_definition"})
LUA_FUNCTIONS = frozenset({"function_declaration"}) | LUA_ANONYMOUS
LUA_NAMING = frozenset({"assignment_statement", "field"})
