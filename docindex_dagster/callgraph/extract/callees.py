"""What is called and with which arguments, and what functions without a name are given by the calls around them."""

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
"""Methods that make one thing of all, with the position of the parameter that is what came of the elements so far."""
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
"""Types of arguments that may have names, and the fields that hold these."""


def callee(call: Node, reader: Reader) -> Expression:
    """What a call calls; of what is no call, what it is."""
    syntax, kind = reader.syntax, call.type
    if kind in syntax.methods:
        return member(*syntax.methods[kind], call, reader, 0)
    return reader.expression(part_of(call, syntax.calls[kind]) if kind in syntax.calls else call)


def called_method(node: Node, reader: Reader) -> Expression:
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


def what_is_given(node: Node, reader: Reader, position: int = 1) -> Expression:
    """What a function without a name is given by the call that it stands in; `node` is it, or its parameters."""
    given = reader.syntax.given
    return given_by(call_around(node, given), reader, position) if given is not None else UNKNOWN


def given_by(call: Node | None, reader: Reader, position: int = 1) -> Expression:
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


def passed(call: Node, called: Expression, argument: int, position: int, reader: Reader) -> Expression:
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


def _dependency(call: Node, argument: int, position: int) -> str:
    """The module that AMD gives a function as a parameter: the one at its place in the list before it. "" for none."""
    given = parts_of(call.child_by_field_name("arguments"))
    listed = given[argument - 1] if 0 < argument < len(given) else None
    named = parts_of(listed) if listed is not None and listed.type == "array" else []
    found = named[position] if position < len(named) else None
    return text_of(found)[1:-1] if found is not None and found.type == "string" else ""


def _start_of(fold: Node, reader: Reader) -> Expression:
    """What a fold begins with."""
    given = parts_of(fold.child_by_field_name("arguments"))
    return reader.expression(given[-1]) if given and given[-1].type in reader.syntax.values else UNKNOWN


def call_around(node: Node, given: Lambdas) -> Node | None:
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


def arguments_of(call: Node, listed: Node | None, reader: Reader) -> tuple[Argument, ...]:
    """What a call is given that names its arguments in `listed`."""
    others = reader.syntax.listed
    if others is not None:
        return tuple([_given(one, reader) for one in islice(others(call, listed), _MOST_ARGUMENTS)])
    return written_in(listed, reader, _MOST_ARGUMENTS)


def written_in(listed: Node | None, reader: Reader, most: int = _MOST_ARGUMENTS) -> tuple[Argument, ...]:
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


def _all_given(listed: Node, reader: Reader, most: int) -> tuple[Argument, ...]:
    nodes = _behind(listed) if listed.type == "call_suffix" else parts_of(listed)
    if beside := reader.syntax.beside:
        nodes = [node for node in nodes if node.type not in beside]
    return tuple([_given(node, reader) for node in nodes[:most]])


def _behind(suffix: Node) -> list[Node]:
    """The arguments in brackets, and a trailing function."""
    found: list[Node] = []
    for child in parts_of(suffix):
        if child.type != "type_arguments":
            found += child.named_children if child.type == "value_arguments" else [child]
    return found


def _given(argument: Node, reader: Reader) -> Argument:
    kind = argument.type
    made = _sorts(reader.syntax).get(kind)
    return Argument(reader.expression(argument)) if made is None else made(argument, reader)


def _labelled(field: str, argument: Node, reader: Reader) -> Argument:
    """An argument whose name is written without quotes, if it has one."""
    name = text_of(argument.child_by_field_name(field))
    value = reader.expression(argument.child_by_field_name("value") or argument.named_children[-1])
    return Argument(value, name if name.isidentifier() else "")


def _named(field: str, argument: Node, reader: Reader) -> Argument:
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


def _block(argument: Node, reader: Reader) -> Argument:
    return Argument(reader.expression(argument), is_block=True)


def _shorthand(argument: Node, _: Reader) -> Argument:
    return Argument(path(text_of(argument)), text_of(argument))


@cache
def _sorts(syntax: Expressions) -> Mapping[str, Callable[[Node, Reader], Argument]]:
    """How arguments are read that are more than an expression, by the types of their nodes."""
    functions = syntax.given.functions | {"annotated_lambda"} if syntax.given is not None else ()
    return {
        **dict.fromkeys(functions, _function),
        **{kind: partial(_named, field) for kind, field in _NAMED.items()},
        **{kind: partial(_labelled, field) for kind, field in syntax.labels.items()},
        "block_argument": _block,
        "shorthand_field_initializer": _shorthand,
    }
