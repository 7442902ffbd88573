"""What a function is given where it is applied to one argument after the other, or by an operator."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import text_of
from docindex_dagster.callgraph.extract.syntax import Applied

if TYPE_CHECKING:
    from tree_sitter import Node


def applied_to(function: "Node", applied: Applied) -> "Iterator[Node]":
    """The arguments of a function where it stands, or of an operator."""
    node = function
    while (outer := node.parent) is not None:
        if outer.type in applied.chains and (name := applied.chains[outer.type]):
            called, given = outer.child_by_field_name(name[0]), outer.child_by_field_name(name[1])
            if called is None or given is None or called.id != node.id:
                return
            yield given
        elif outer.type in applied.infixes:
            yield from _operands(node, outer, applied)
            return
        elif outer.type not in applied.around:
            return
        node = outer


def _operands(node: "Node", infix: "Node", applied: Applied) -> "Iterator[Node]":
    """What stands on both sides of an operator, or what it hands to the function on its other side."""
    left, operator, right = (infix.child_by_field_name(name) for name in applied.infixes[infix.type])
    if operator is not None and operator.id == node.id:
        yield from filter(None, (left, right))
    elif left is not None and right is not None and left.id == node.id and text_of(operator) in applied.before:
        yield right
    elif left is not None and right is not None and right.id == node.id and text_of(operator) in applied.behind:
        yield left
