"""Bash: what its grammar calls expressions and statements.

A word is the name of a function, wherever it stands; a variable keeps its `$`, so that it is not taken for one.
"""

import re

from docindex_dagster.callgraph.extract.expressions import Expressions, Read, text_of
from docindex_dagster.callgraph.extract.syntax import Node, Syntax
from docindex_dagster.callgraph.ir import UNKNOWN, Expression, Name
from docindex_dagster.callgraph.languages import bash_modules
from docindex_dagster.callgraph.languages.bash_functions import REST
from docindex_dagster.callgraph.rules import Rules

_NAME = re.compile(r"[A-Za-z_][\w.:-]*|\d+")
_FIRST = re.compile(r"[A-Za-z_][\w.:-]*(?=[\s;]|$)")
_OF_CODE = frozenset({"trap", "eval"})  # commands that are given commands as text
_ALL = frozenset({"@", "*"})  # parameters


def _word(node: Node, _: Read) -> Expression:
    """A word that may be the name of a function; of text that is run, its first word."""
    text = text_of(node).strip("'=").strip()
    if text == ".":
        return Name("source")
    name = (_FIRST.match if _is_code(node) else _NAME.fullmatch)(text)
    return Name(name[0].strip(":").replace("::", ".")) if name else UNKNOWN


def _is_code(node: Node) -> bool:
    around = node.parent
    command = around.parent if around is not None and around.type == "string" else around
    name = command.child_by_field_name("name") if command is not None and command.type == "command" else None
    return text_of(name) in _OF_CODE


def _variable(node: Node, _: Read) -> Expression:
    name = text_of(node)
    return REST if name in _ALL else Name(f"${name}")


_EXPRESSIONS = Expressions(
    names=frozenset({"number"}),
    items={"subscript": "name"},
    through={"command_name": "", "simple_expansion": "", "string": ""},
    either={"expansion": ("0", "-1")},
    collections={"array": ""},
    readers={
        "word": _word,
        "string_content": _word,
        "raw_string": _word,
        "variable_name": _variable,
        "special_variable_name": _variable,
    },
    is_placed=True,
)

SYNTAX = Syntax(("bash",), _EXPRESSIONS)

RULES = Rules(
    "bash",
    find=bash_modules.find,
    sharing="loaded",
    redefines=True,
    has_class_scope=False,
    has_marked_variables=True,
    has_numbered_parameters=True,
)
