"""Haskell: what its grammar calls the expressions that can be followed.

A function takes one argument after the other: `pick longer words` is `pick()()`, where `pick()` may be `pick` still.
"""

from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN, Applied, Read, Shapes, quoted, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_APPLYING = frozenset({"$", "$!"})


def _name(node: "Node", _: Read) -> str:
    name = text_of(node)
    return quoted(name.rstrip(".") if node.type == "module" else name)


def _qualified(node: "Node", read: Read) -> str:
    return f"{read(node.child_by_field_name('module'))}.{quoted(text_of(node.child_by_field_name('id')))}"


def _infix(node: "Node", read: Read) -> str:
    """What an operator gives: `f $ x` what `f` does, and one of the source what its function does."""
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left_operand")
    sign = text_of(operator)
    if sign in _APPLYING:
        return f"{read(left)}()"
    return f"{read(node.child_by_field_name('right_operand'))}()" if sign == "&" else f"{read(operator)}()()"


def _section(node: "Node", read: Read) -> str:
    operator = node.child_by_field_name("operator") or node.named_children[0]
    return UNKNOWN if text_of(operator) in _APPLYING else f"{read(operator)}()"


HASKELL = Shapes(
    names=frozenset({"variable", "operator", "module", "name", "constructor"}),
    calls={"apply": "function"},
    through={
        "parens": "",
        "infix_id": "",
        "prefix_id": "",
        "exp": "-1",
        "signature": "expression",
        "let_in": "expression",
    },
    either={"conditional": ("then", "else")},
    collections={"list": "", "tuple": ""},
    literals={"literal": "literal"},
    sequences=frozenset({"do"}),
    readers={
        **dict.fromkeys(("variable", "operator", "module", "name", "constructor"), _name),
        "qualified": _qualified,
        "infix": _infix,
        "left_section": _section,
        "right_section": _section,
    },
    applied=Applied(
        {"apply": ("function", "argument")},
        {"infix": ("left_operand", "operator", "right_operand")},
        before=frozenset({"$", "$!"}),
        behind=frozenset({"&"}),
        around=frozenset({"infix_id", "parens"}),
    ),
)
