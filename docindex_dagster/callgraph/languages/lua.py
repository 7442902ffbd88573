"""Lua: what its grammar calls expressions and statements.

A table is its own class: `setmetatable(object, Class)` stands for its last argument, in which members are looked for.
"""

from docindex_dagster.callgraph.extract.expressions import Expressions
from docindex_dagster.callgraph.extract.library import last, module
from docindex_dagster.callgraph.extract.syntax import Syntax
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.rules import Rules

_EXPRESSIONS = Expressions(
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
    library={"require": module, **dict.fromkeys(("setmetatable", "ipairs", "pairs"), last)},
    literals={"string": "string", "number": "number", "true": "boolean", "false": "boolean", "nil": "nil"},
    words={"self": "this"},
)

_ANONYMOUS = frozenset({"function_definition"})

SYNTAX = Syntax(
    ("lua",),
    _EXPRESSIONS,
    frozenset({"function_declaration"}) | _ANONYMOUS,
    _ANONYMOUS,
    frozenset({"assignment_statement", "field"}),
)

_BUILTINS = """
    _ENV _G _VERSION arg assert bit bit32 collectgarbage coroutine debug describe dofile error getfenv getmetatable io
    ipairs it jit load loadfile loadstring love math module newproxy next ngx os package pairs pcall print rawequal
    rawget rawlen rawset redis require select setfenv setmetatable string table tonumber tostring type unpack utf8 vim
    warn xpcall
"""

_MODULES = Search(
    tuple(f"{folder}{{}}{end}" for folder in ("", "lua/", "src/", "lib/", "app/") for end in (".lua", "/init.lua")),
    ending=".lua",
    is_dotted=True,
)

RULES = Rules(
    "lua",
    find=_MODULES.find,
    sharing="global",
    redefines=True,
    has_class_scope=False,
    has_open_dispatch=True,
    has_tables=True,
    gives_one_value=True,
    runs=("__call",),
    supers=frozenset({"super", "__super", "_super"}),
    constructors=frozenset({"init", "initialize", "_init", "__init", "new", "ctor", "constructor"}),
    globals_name="_G",
    builtins=frozenset(_BUILTINS.split()),
)
