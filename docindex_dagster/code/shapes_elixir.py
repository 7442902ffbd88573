"""Elixir: what its grammar calls the expressions that can be followed.

A variable and a function may have one name: `names.(x)` calls what the variable holds, as its member `call`, and
`names(x)` the function. An attribute of the module, `@names`, is the variable `$names`.
"""

from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN, Read, Shapes, expression, part_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LAST = frozenset({"|>", "=", "||", "&&", "or", "and"})
"""Operators whose value is that of what stands behind them, or may be."""

_ITEM = frozenset(
    {
        "Enum.at",
        "Enum.find",
        "Enum.random",
        "Keyword.fetch!",
        "Keyword.get",
        "List.first",
        "Map.fetch!",
        "Map.get",
        "hd",
    }
)
"""Functions that give one of what they are given first."""
_SAME = frozenset(
    {"Enum.filter", "Enum.reject", "Enum.reverse", "Enum.sort", "Enum.take", "Enum.to_list", "Map.values"}
)
_DEFAULT = frozenset({"Application.compile_env", "Application.get_env"})
"""Functions that may give what they are given last."""


def _operator(node: "Node", read: Read) -> str:
    is_last = text_of(node.child_by_field_name("operator")) in _LAST
    return read(node.child_by_field_name("right")) if is_last else UNKNOWN


def _signed(node: "Node", read: Read) -> str:
    """An attribute of the module, or a function that is handed on: `@name`, `&name/1`, `&Module.name/1`."""
    sign, operand = text_of(node.child_by_field_name("operator")), node.child_by_field_name("operand")
    if operand is None or sign not in {"@", "&"}:
        return UNKNOWN
    if sign == "@":
        return f"${text_of(operand.child_by_field_name('target') or operand)}"
    named = operand.child_by_field_name("left")
    if operand.type != "binary_operator" or named is None or b"/" not in (operand.text or b""):
        return UNKNOWN
    return read(named.child_by_field_name("target")) if named.type == "call" else f"(&{text_of(named)})"


def _member(node: "Node", read: Read) -> str:
    """What is behind a dot; a module of Erlang, which is an atom, is followed as one in `erlang`."""
    owner, name = node.child_by_field_name("left"), text_of(node.child_by_field_name("right"))
    is_atom = owner is not None and owner.type == "atom"
    return f"{f'erlang.{text_of(owner)[1:]}' if is_atom else read(owner)}.{name or 'call'}"


def _call(node: "Node", read: Read) -> str:
    """What a call gives; without brackets, a field of anything but a module."""
    target = node.child_by_field_name("target")
    owner = target.child_by_field_name("left") if target is not None and target.type == "dot" else None
    is_field = owner is not None and owner.type != "alias" and not any(one.type == "arguments" for one in node.children)
    if is_field:
        return read(target)
    called = read(target)
    if called in _ITEM:
        return f"{read(_given(node, 0))}[]"
    return read(_given(node, 0 if called in _SAME else -1)) if called in _SAME | _DEFAULT else f"{called}()"


def _given(call: "Node", at: int) -> "Node | None":
    """What a call is given first or last, which may be piped to it."""
    listed = next((one for one in call.children if one.type == "arguments"), None)
    given = [one for one in listed.named_children if not one.is_extra] if listed is not None else []
    pipe = call.parent
    if pipe is not None and pipe.type == "binary_operator" and text_of(pipe.child_by_field_name("operator")) == "|>":
        given = [*filter(None, [pipe.child_by_field_name("left")]), *given]
    return given[at] if given else None


def _delegate(node: "Node", shapes: Shapes) -> str:
    """The function to which `defdelegate name(x), to: Module, as: :other` leads; "" of other keywords."""
    given = {
        text_of(pair.child_by_field_name("key")).strip(": "): part_of(pair, "value") for pair in node.named_children
    }
    head = node.prev_named_sibling
    named = head.child_by_field_name("target") or head if head is not None else None
    name = text_of(given.get("as")).lstrip(":") or text_of(named)
    return f"{expression(given['to'], shapes)}.{name}" if "to" in given and name else ""


def _key(node: "Node", _: Read) -> str:
    return text_of(node).strip(": ")


ELIXIR = Shapes(
    names=frozenset({"identifier", "alias"}),
    members={"arguments": ("0", "1")},
    items={"access_call": "target"},
    calls={"call": "target"},
    collections={"list": "", "keywords": "value"},
    casts={"struct": ""},
    through={"pair": "value", "block": "-1", "map": "", "map_content": ""},
    literals={
        "string": "String",
        "integer": "Integer",
        "float": "Float",
        "boolean": "Atom",
        "atom": "Atom",
        "charlist": "List",
        "nil": "nil",
    },
    readers={
        "binary_operator": _operator,
        "unary_operator": _signed,
        "dot": _member,
        "call": _call,
        "keyword": _key,
    },
    special={"keywords": _delegate},
    piped=("binary_operator", "|>"),
)
