"""Callees and arguments of calls, and the arguments that calls pass to anonymous functions."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import islice

from docindex_dagster.callgraph.extract.expression_rules import member, named_method
from docindex_dagster.callgraph.extract.expressions import (
    Expressions,
    Lambdas,
    Node,
    Reader,
    part_of,
    parts_of,
    text_of,
)
from docindex_dagster.callgraph.ir import (
    ANY,
    BLOCK,
    LAST_ARGUMENT,
    THIS,
    UNKNOWN,
    Argument,
    Attribute,
    CallbackArgument,
    Element,
    Expression,
    Literal,
    Module,
    Name,
    Union,
    path,
)

_FOLDS = {"reduce": 0, "reduceRight": 0, "inject": 0, "each_with_object": 1}
"""Methods that fold all elements into a single value, with the position of the accumulator parameter."""
MOST_FIELDS = 40
_MOST_ARGUMENTS = 8
_FUNCTION = Argument(Literal("fun"))
_NAMED: Mapping[str, str] = {
    "keyword_argument": "name",
    "argument": "name",
    "value_argument": "name",
    "pair": "key",
    "keyed_element": "key",
    "field_initializer": "field",
}
"""Node types of arguments that may have names, and the fields of the names."""


def callee(call: Node, reader: Reader) -> Expression:
    """Return the callee of a call, or the expression of a node that is not a call."""
    syntax, kind = reader.syntax, call.type
    if kind in syntax.methods:
        return member(*syntax.methods[kind], call, reader, 0)
    return reader.expression(part_of(call, syntax.calls[kind]) if kind in syntax.calls else call)


def called_method(node: Node, reader: Reader) -> Expression:
    """Return the method called by a call with fields for object and method; `UNKNOWN` if it only names one."""
    called, is_run = named_method(*reader.syntax.methods[node.type], node, reader, 0)
    return called if is_run else UNKNOWN


def method_of(called: Expression) -> tuple[Expression | None, str]:
    """Return the receiver, or None, and the name of a called method."""
    match called:
        case Attribute(of, name):
            return of, name
        case Name(name):
            return None, name
        case _:
            return None, ""


def lambda_argument(node: Node, reader: Reader, position: int = 1) -> Expression:
    """Return the argument that the enclosing call passes to an anonymous function; `node` is it or its parameters."""
    lambdas = reader.syntax.lambda_calls
    return argument_from_call(call_around(node, lambdas), reader, position) if lambdas is not None else UNKNOWN


def argument_from_call(call: Node | None, reader: Reader, position: int = 1) -> Expression:
    """Return the argument that a call passes to an anonymous function."""
    lambdas = reader.syntax.lambda_calls
    called = callee(call, reader) if call is not None else UNKNOWN
    if lambdas is None or called is UNKNOWN:
        return UNKNOWN
    owner, method = method_of(called)
    if owner is not None and method in lambdas.same:
        return owner
    argument = CallbackArgument(called, ANY, position)
    return Union((Element(owner or THIS), argument)) if method in lambdas.items else argument


def passed(call: Node, called: Expression, argument: int, position: int, reader: Reader) -> Expression:
    """Return the value that a call passes to one of its callback arguments, at a position."""
    match called:
        case Attribute(Module() as loaded, "then") if position == 0:
            return loaded
        case Name("define" | "require" | "requirejs") if dependency := _dependency(call, argument, position):
            return Module(dependency)
    is_far = position > LAST_ARGUMENT or (argument > LAST_ARGUMENT and argument != BLOCK)
    value = UNKNOWN if called is UNKNOWN or is_far else CallbackArgument(called, argument, position)
    start = _start_of(call, reader) if _FOLDS.get(method_of(called)[1]) == position else UNKNOWN
    return value if start is UNKNOWN else start


def _dependency(call: Node, argument: int, position: int) -> str:
    """Return the AMD module passed to a function at a position, from the list before the function; "" if none."""
    arguments = parts_of(call.child_by_field_name("arguments"))
    listed = arguments[argument - 1] if 0 < argument < len(arguments) else None
    named = parts_of(listed) if listed is not None and listed.type == "array" else []
    found = named[position] if position < len(named) else None
    return text_of(found)[1:-1] if found is not None and found.type == "string" else ""


def _start_of(fold: Node, reader: Reader) -> Expression:
    """Return the initial value of a fold."""
    arguments = parts_of(fold.child_by_field_name("arguments"))
    has_start = bool(arguments) and arguments[-1].type in reader.syntax.values
    return reader.expression(arguments[-1]) if has_start else UNKNOWN


def call_around(node: Node, lambdas: Lambdas) -> Node | None:
    """Return the call that an anonymous function is an argument of."""
    around = node
    while around.type not in lambdas.functions:
        if around.parent is None:
            return None
        around = around.parent
    call = around.parent
    while call is not None and call.type in lambdas.between:
        call = call.parent
    return call


def arguments_of(call: Node, listed: Node | None, reader: Reader) -> tuple[Argument, ...]:
    """Return the arguments of a call whose argument list is `listed`."""
    others = reader.syntax.listed
    if others is not None:
        return tuple([_argument(one, reader) for one in islice(others(call, listed), _MOST_ARGUMENTS)])
    return written_in(listed, reader, _MOST_ARGUMENTS)


def written_in(listed: Node | None, reader: Reader, limit: int = _MOST_ARGUMENTS) -> tuple[Argument, ...]:
    """Return the arguments in an argument list; short lists are cached by text."""
    if listed is None or not listed.named_child_count:
        return ()
    if not reader.is_cacheable(listed):
        return _arguments(listed, reader, limit)
    key = (limit, listed.type, listed.text)
    known = reader.arguments.get(key)
    if known is None:
        known = reader.arguments[key] = _arguments(listed, reader, limit)
    return known


def _arguments(listed: Node, reader: Reader, limit: int) -> tuple[Argument, ...]:
    nodes = _in_suffix(listed) if listed.type == "call_suffix" else parts_of(listed)
    if adjacent := reader.syntax.adjacent:
        nodes = [node for node in nodes if node.type not in adjacent]
    return tuple([_argument(node, reader) for node in nodes[:limit]])


def _in_suffix(suffix: Node) -> list[Node]:
    """Return the arguments in parentheses and a trailing lambda."""
    found: list[Node] = []
    for child in parts_of(suffix):
        if child.type != "type_arguments":
            found += child.named_children if child.type == "value_arguments" else [child]
    return found


def _argument(argument: Node, reader: Reader) -> Argument:
    kind = argument.type
    read = _readers(reader.syntax).get(kind)
    return Argument(reader.expression(argument)) if read is None else read(argument, reader)


def _labelled(field: str, argument: Node, reader: Reader) -> Argument:
    """Return an argument that may have an unquoted name."""
    name = text_of(argument.child_by_field_name(field))
    value = reader.expression(argument.child_by_field_name("value") or argument.named_children[-1])
    return Argument(value, name if name.isidentifier() else "")


def _named(field: str, argument: Node, reader: Reader) -> Argument:
    """Return an argument that may have a name."""
    parts = parts_of(argument) if argument.named_child_count else []
    named = argument.child_by_field_name(field) if parts else None
    if named is None and len(parts) > 1 and argument.type == "value_argument":
        named = parts[0]
    name = text_of(named).rstrip(": ")
    if name and not name.isidentifier():
        return Argument(UNKNOWN)
    value = argument.child_by_field_name("value") or (parts[-1] if parts else argument)
    is_function = _readers(reader.syntax).get(value.type) is _function
    return Argument(_FUNCTION.value if is_function else reader.expression(value), name)


def _function(*_: object) -> Argument:
    return _FUNCTION


def _block(argument: Node, reader: Reader) -> Argument:
    return Argument(reader.expression(argument), is_block=True)


def _shorthand(argument: Node, _: Reader) -> Argument:
    return Argument(path(text_of(argument)), text_of(argument))


@cache
def _readers(syntax: Expressions) -> Mapping[str, Callable[[Node, Reader], Argument]]:
    """Return the readers of arguments that are not plain expressions, by node type."""
    functions = syntax.lambda_calls.functions | {"annotated_lambda"} if syntax.lambda_calls is not None else ()
    return {
        **dict.fromkeys(functions, _function),
        **{kind: partial(_named, field) for kind, field in _NAMED.items()},
        **{kind: partial(_labelled, field) for kind, field in syntax.labels.items()},
        "block_argument": _block,
        "shorthand_field_initializer": _shorthand,
    }
