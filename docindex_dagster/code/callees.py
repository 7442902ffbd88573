"""What is called, and what functions without a name are given by the calls in which they stand."""

from typing import TYPE_CHECKING

from docindex_dagster.code.expression_rules import member, named_method
from docindex_dagster.code.expressions import LONGEST, UNKNOWN, Given, Shapes, expression, part_of

if TYPE_CHECKING:
    from tree_sitter import Node


def callee(call: "Node", shapes: Shapes) -> str:
    """The notation of what a call calls; of what is no call, its own."""
    kind = call.type
    if kind in shapes.methods:
        return member(*shapes.methods[kind], call, shapes, 0)
    return expression(part_of(call, shapes.calls[kind]) if kind in shapes.calls else call, shapes)


def called_method(node: "Node", shapes: Shapes) -> str:
    """The notation of what is called by a call that names object and method itself; `?` where it calls nothing."""
    called, successor = named_method(*shapes.methods[node.type], node, shapes, 0)
    return called if successor == "()" and len(called) <= LONGEST else UNKNOWN


def what_is_given(node: "Node", shapes: Shapes, position: int = 1) -> str:
    """What a function without a name is given by the call that it stands in; `node` is it, or its parameters."""
    given = shapes.given
    call = call_around(node, given) if given is not None else None
    called = callee(call, shapes) if call is not None else UNKNOWN
    if given is None or not called or called == UNKNOWN:
        return UNKNOWN
    owner, _, method = called.rpartition(".")
    if owner and method in given.same:
        return owner
    if method in given.items:
        return f"({owner or 'this'}[]|{called}^*{position})"
    return f"{called}^*{position}"


def call_around(node: "Node", given: Given) -> "Node | None":
    """The call to which a function without a name is given."""
    around = node
    while around.type not in given.functions:
        if around.parent is None:
            return None
        around = around.parent
    call = around.parent
    while call is not None and call.type in given.between:
        call = call.parent
    return call
