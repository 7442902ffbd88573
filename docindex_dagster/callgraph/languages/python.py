"""Python: what its grammar calls expressions and statements."""

import builtins

from docindex_dagster.callgraph.extract.expressions import Expressions
from docindex_dagster.callgraph.extract.library import attribute, bounded, first, last, typed
from docindex_dagster.callgraph.extract.syntax import Syntax
from docindex_dagster.callgraph.languages import python_modules
from docindex_dagster.callgraph.rules import Rules

_SAME = "list tuple set sorted reversed enumerate iter next weakref.proxy"

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
    library={
        **dict.fromkeys(_SAME.split(), last),
        **dict.fromkeys(("update_wrapper", "functools.update_wrapper"), first),
        **dict.fromkeys(("TypeVar", "t.TypeVar", "typing.TypeVar"), bounded),
        **dict.fromkeys(("cast", "t.cast", "typing.cast"), typed),
        "type": attribute("__class__"),
    },
)

SYNTAX = Syntax(("python",), _EXPRESSIONS, has_selves=True)

RULES = Rules(
    "python",
    find=python_modules.find,
    redefines=True,
    runs=("__call__",),
    constructors=frozenset({"__init__", "__new__"}),
    self_name="self",
    class_name="cls",
    has_decorators=True,
    has_local_imports=True,
    has_fixtures=True,
    wrappers=frozenset({"Optional", "Annotated", "Final", "ClassVar", "Awaitable", "Coroutine", "Type", "type"}),
    class_types=frozenset({"Type", "type"}),
    classes=frozenset({"__class__"}),
    properties=frozenset({"property", "cached_property", "functools.cached_property"}),
    builtins=frozenset(dir(builtins)),
)
