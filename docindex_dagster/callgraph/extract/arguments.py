"""What calls are given, by position and by name."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import Expressions, Reader, parts_of, text_of
from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Literal, path

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_FIELDS = 40
_MOST_ARGUMENTS = 8
_FUNCTION = Argument(Literal("fun"))


def arguments_of(call: "Node", listed: "Node | None", reader: Reader) -> tuple[Argument, ...]:
    """What a call is given that names its arguments in `listed`."""
    others = reader.syntax.listed
    if others is not None:
        return tuple([_given(one, reader) for one in islice(others(call, listed), _MOST_ARGUMENTS)])
    return written_in(listed, reader, _MOST_ARGUMENTS)


def written_in(listed: "Node | None", reader: Reader, most: int = _MOST_ARGUMENTS) -> tuple[Argument, ...]:
    """What is written in brackets; read once a file of what is short, with the same text."""
    if listed is None or not listed.named_child_count:
        return ()
    if not reader.may_be_repeated(listed):
        return _all_given(listed, reader, most)
    key = (most, listed.type, listed.text)
    known = reader.arguments.get(key)
    if known is None:
        known = reader.arguments[key] = _all_given(listed, reader, most)
    return known


def _all_given(listed: "Node", reader: Reader, most: int) -> tuple[Argument, ...]:
    nodes = _behind(listed) if listed.type == "call_suffix" else parts_of(listed)
    if beside := reader.syntax.beside:
        nodes = [node for node in nodes if node.type not in beside]
    return tuple([_given(node, reader) for node in nodes[:most]])


def _behind(suffix: "Node") -> "list[Node]":
    """What is in brackets, with a function that stands behind them."""
    found: list[Node] = []
    for child in parts_of(suffix):
        if child.type != "type_arguments":
            found += child.named_children if child.type == "value_arguments" else [child]
    return found


def _given(argument: "Node", reader: Reader) -> Argument:
    kind = argument.type
    made = _sorts(reader.syntax).get(kind)
    return Argument(reader.expression(argument)) if made is None else made(argument, reader)


def _labelled(field: str, argument: "Node", reader: Reader) -> Argument:
    """An argument whose name is written without quotes, if it has one."""
    name = text_of(argument.child_by_field_name(field))
    value = reader.expression(argument.child_by_field_name("value") or argument.named_children[-1])
    return Argument(value, name if name.isidentifier() else "")


def _named(field: str, argument: "Node", reader: Reader) -> Argument:
    """An argument that may have a name."""
    parts = parts_of(argument) if argument.named_child_count else []
    named = argument.child_by_field_name(field) if parts else None
    if named is None and len(parts) > 1 and argument.type == "value_argument":
        named = parts[0]
    name = text_of(named).rstrip(": ")
    if name and not name.isidentifier():
        return Argument(UNKNOWN)
    value = argument.child_by_field_name("value") or (parts[-1] if parts else argument)
    is_function = _sorts(reader.syntax).get(value.type) is _function
    return Argument(_FUNCTION.value if is_function else reader.expression(value), name)


def _function(*_: object) -> Argument:
    return _FUNCTION


def _block(argument: "Node", reader: Reader) -> Argument:
    return Argument(reader.expression(argument), is_block=True)


def _shorthand(argument: "Node", _: Reader) -> Argument:
    return Argument(path(text_of(argument)), text_of(argument))


_NAMED: Mapping[str, str] = {
    "keyword_argument": "name",
    "argument": "name",
    "value_argument": "name",
    "pair": "key",
    "keyed_element": "key",
    "field_initializer": "field",
}
"""Types of arguments that may have names, and the fields that hold these."""


@cache
def _sorts(syntax: Expressions) -> "Mapping[str, Callable[[Node, Reader], Argument]]":
    """How arguments are read that are more than an expression, by the types of their nodes."""
    functions = syntax.given.functions | {"annotated_lambda"} if syntax.given is not None else ()
    return {
        **dict.fromkeys(functions, _function),
        **{kind: partial(_named, field) for kind, field in _NAMED.items()},
        **{kind: partial(_labelled, field) for kind, field in syntax.labels.items()},
        "block_argument": _block,
        "shorthand_field_initializer": _shorthand,
    }
