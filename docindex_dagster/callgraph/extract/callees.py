"""What is called, and what functions without a name are given by the calls in which they stand."""

from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expression_rules import member, named_method
from docindex_dagster.callgraph.extract.expressions import Lambdas, Reader, part_of, parts_of, text_of
from docindex_dagster.callgraph.ir import (
    ANY,
    BLOCK,
    LAST_ARGUMENT,
    THIS,
    UNKNOWN,
    Attribute,
    CallbackArgument,
    Element,
    Expression,
    Module,
    Name,
    Union,
)

if TYPE_CHECKING:
    from tree_sitter import Node


_FOLDS = {"reduce": 0, "reduceRight": 0, "inject": 0, "each_with_object": 1}
"""Methods that make one thing of all, with the position of the parameter that is what came of the elements so far."""


def callee(call: "Node", reader: Reader) -> Expression:
    """What a call calls; of what is no call, what it is."""
    syntax, kind = reader.syntax, call.type
    if kind in syntax.methods:
        return member(*syntax.methods[kind], call, reader, 0)
    return reader.expression(part_of(call, syntax.calls[kind]) if kind in syntax.calls else call)


def called_method(node: "Node", reader: Reader) -> Expression:
    """What is called by a call that names object and method itself; unknown where it calls nothing."""
    called, is_run = named_method(*reader.syntax.methods[node.type], node, reader, 0)
    return called if is_run else UNKNOWN


def method_of(called: Expression) -> tuple[Expression | None, str]:
    """The object of which something is called, None where it is called without one, and the name of the method."""
    match called:
        case Attribute(of, name):
            return of, name
        case Name(name):
            return None, name
        case _:
            return None, ""


def what_is_given(node: "Node", reader: Reader, position: int = 1) -> Expression:
    """What a function without a name is given by the call that it stands in; `node` is it, or its parameters."""
    given = reader.syntax.given
    return given_by(call_around(node, given), reader, position) if given is not None else UNKNOWN


def given_by(call: "Node | None", reader: Reader, position: int = 1) -> Expression:
    """What a call gives to a function without a name."""
    given = reader.syntax.given
    called = callee(call, reader) if call is not None else UNKNOWN
    if given is None or called is UNKNOWN:
        return UNKNOWN
    owner, method = method_of(called)
    if owner is not None and method in given.same:
        return owner
    argument = CallbackArgument(called, ANY, position)
    return Union((Element(owner or THIS), argument)) if method in given.items else argument


def passed(call: "Node", called: Expression, argument: int, position: int, reader: Reader) -> Expression:
    """What a call gives as the parameter at a position of its argument."""
    match called:
        case Attribute(Module() as loaded, "then") if position == 0:
            return loaded
        case Name("define" | "require" | "requirejs") if dependency := _dependency(call, argument, position):
            return Module(dependency)
    is_far = position > LAST_ARGUMENT or (argument > LAST_ARGUMENT and argument != BLOCK)
    given = UNKNOWN if called is UNKNOWN or is_far else CallbackArgument(called, argument, position)
    start = _start_of(call, reader) if _FOLDS.get(method_of(called)[1]) == position else UNKNOWN
    return given if start is UNKNOWN else start


def _dependency(call: "Node", argument: int, position: int) -> str:
    """The module that AMD gives a function as a parameter: the one at its place in the list before it. "" for none."""
    given = parts_of(call.child_by_field_name("arguments"))
    listed = given[argument - 1] if 0 < argument < len(given) else None
    named = parts_of(listed) if listed is not None and listed.type == "array" else []
    found = named[position] if position < len(named) else None
    return text_of(found)[1:-1] if found is not None and found.type == "string" else ""


def _start_of(fold: "Node", reader: Reader) -> Expression:
    """What a fold begins with."""
    given = parts_of(fold.child_by_field_name("arguments"))
    return reader.expression(given[-1]) if given and given[-1].type in reader.syntax.values else UNKNOWN


def call_around(node: "Node", given: Lambdas) -> "Node | None":
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
