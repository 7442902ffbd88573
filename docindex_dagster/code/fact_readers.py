"""The readers of facts: each makes one of what a query has captured in one place."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from docindex_dagster.code import facts_c
from docindex_dagster.code.callees import called_method, callee
from docindex_dagster.code.docblocks import types_in
from docindex_dagster.code.expressions import (
    SEPARATOR,
    UNKNOWN,
    Shapes,
    expression,
    may_be_repeated,
    part_of,
    text_of,
)
from docindex_dagster.code.fact_values import Found, bind, generic, parameter
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

    Parts = Mapping[str, list[Node]]

_MOST_ARGUMENTS = 8
_MOST_FIELDS = 40
_LONGEST_MODULE = 300  # characters
_NOTHING_KNOWN = f"{UNKNOWN}{SEPARATOR}"
# Calls that are captured whole, since what is called is no node of its own.
_WHOLE_CALLS = frozenset(
    {
        "function_call_expression",
        "member_call_expression",
        "nullsafe_member_call_expression",
        "scoped_call_expression",
    }
)
# Their types of nodes, and the fields that hold the names.
_NAMED_ARGUMENTS = {
    "keyword_argument": "name",
    "argument": "name",
    "value_argument": "name",
    "pair": "key",
    "keyed_element": "key",
    "field_initializer": "field",
}


def _call(parts: "Parts", shapes: Shapes) -> Found:
    node = parts["call"][0]
    called = _callee(node, shapes)
    if called == UNKNOWN or "~" in called:  # a destructor
        return None
    given = _arguments(parts, shapes)
    if (
        shapes.named
        and node.type in shapes.methods
        and text_of(part_of(node, shapes.methods[node.type][1])) in shapes.named
    ):
        given = given.partition(SEPARATOR)[2]  # without the name of what is called
    return "call", f"{called}[]" if "call.item" in parts else called, given


def _callee(node: "Node", shapes: Shapes) -> str:
    kind = node.type
    if kind in shapes.methods:
        return called_method(node, shapes) if shapes.named else callee(node, shapes)
    called = expression(node, shapes)
    if kind not in _WHOLE_CALLS:
        return called
    return called.removesuffix("()") if called.endswith("()") else UNKNOWN


def _new(parts: "Parts", shapes: Shapes) -> Found:
    node = parts["new"][0]
    made = expression(node, shapes)
    if made == UNKNOWN:
        made = canonical_type(text_of(node))
    made = made.partition("<")[0]
    return ("new", made, _arguments(parts, shapes)) if made else None


def _macro(parts: "Parts", _: Shapes) -> Found:
    return "macro", text_of(parts["macro"][0]).replace("::", "."), ""


def _arguments(parts: "Parts", shapes: Shapes) -> str:
    """What is given by position and by name; "" where nothing in it can be followed."""
    if "arguments" not in parts:
        return ""
    node, most = parts["arguments"][0], _MOST_FIELDS if "fill" in parts else _MOST_ARGUMENTS
    if not may_be_repeated(node, shapes):
        return _all_given(node, most, shapes)
    texts, key = shapes.opened.arguments, (most, node.type, node.text)
    known = texts.get(key)
    if known is None:
        known = texts[key] = _all_given(node, most, shapes)
    return known


def _all_given(node: "Node", most: int, shapes: Shapes) -> str:
    listed = [child for child in _listed(node) if child.type not in shapes.beside]
    return SEPARATOR.join([_given(child, shapes) for child in listed[:most]])


def _given(argument: "Node", shapes: Shapes) -> str:
    kind = argument.type
    if kind == "shorthand_field_initializer":
        return f"{text_of(argument)}={text_of(argument)}"
    if kind == "block_argument":
        return f"&{expression(argument, shapes)}"
    if kind in shapes.labels:
        value = argument.child_by_field_name("value") or argument.named_children[-1]
        written = expression(value, shapes)
        name = text_of(argument.child_by_field_name(shapes.labels[kind]))
        return f"{name}={written}" if name.isidentifier() else written
    if kind not in _NAMED_ARGUMENTS:
        return "#fun" if _is_function(kind, shapes) else expression(argument, shapes)
    name, value = _named(argument)
    written = "#fun" if _is_function(value.type, shapes) else expression(value, shapes)
    return f"{name}={written}" if name else written


def _is_function(kind: str, shapes: Shapes) -> bool:
    return shapes.given is not None and (kind in shapes.given.functions or kind == "annotated_lambda")


def _listed(node: "Node") -> "list[Node]":
    """What is in brackets, with a function that stands behind them."""
    if node.type != "call_suffix":
        return [child for child in node.named_children if not child.is_extra]
    found: list[Node] = []
    for child in node.named_children:
        if child.type == "value_arguments":
            found += child.named_children
        elif not child.is_extra and child.type != "type_arguments":
            found.append(child)
    return found


def _named(argument: "Node") -> "tuple[str, Node]":
    """The name and the value of an argument."""
    if not argument.named_children:
        return "", argument
    parts = [child for child in argument.named_children if not child.is_extra]
    name = argument.child_by_field_name(_NAMED_ARGUMENTS[argument.type])
    if name is None and len(parts) > 1 and argument.type == "value_argument":
        name = parts[0]
    value = argument.child_by_field_name("value") or (parts[-1] if parts else argument)
    return text_of(name), value


def _import(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return _imported("import", parts)


def _reexport(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return _imported("reexport", parts)


def _imported(kind: str, parts: "Parts") -> Found:
    module = _module(parts.get(f"{kind}.module"))
    module = f"./{module}" if f"{kind}.beside" in parts else module
    if len(module) > _LONGEST_MODULE:
        return None
    name = "default" if f"{kind}.default" in parts else _module(parts.get(f"{kind}.name"))
    alias = _module(parts.get(f"{kind}.alias"))
    here = "*" if f"{kind}.all" in parts else alias or name
    return kind, here, f"{module}{SEPARATOR}{name}"


def _import_path(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    path = _module(parts["import.path"]).replace("::", ".").replace("\\", ".").strip(".")
    module, _, name = path.rpartition(".")
    return ("import", _module(parts.get("import.alias")) or name, f"{module}{SEPARATOR}{name}")


def _use(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    """One name of a tree of imports, after the paths around it."""
    node = parts["use"][0]
    path, around = "", node.parent
    while around is not None and around.type in {"use_list", "scoped_use_list"}:
        before = text_of(around.child_by_field_name("path"))
        path = f"{before}::{path}" if before else path
        around = around.parent
    alias = text_of(node.child_by_field_name("alias"))
    written = text_of(node.child_by_field_name("path") if alias else node)
    *modules, name = [part.strip() for part in f"{path}{written}".strip(":").split("::")]
    if name == "self" and modules:
        *modules, name = modules
    if name == "*":
        return "import", "*", f"{'.'.join(modules)}{SEPARATOR}"
    return "import", alias or name, f"{'.'.join(modules)}{SEPARATOR}{name}"


def _module(nodes: "list[Node] | None") -> str:
    return "".join(text_of(node) for node in nodes).strip("\"'`<> \n") if nodes else ""


def _export(parts: "Parts", shapes: Shapes) -> Found:
    value = parts.get("export.value")
    name = _module(parts.get("export")) or "default"
    written = expression(value[0], shapes) if value else name
    return None if written == UNKNOWN else ("export", name, written)


def _fill(parts: "Parts", shapes: Shapes) -> Found:
    filled = canonical_type(text_of(parts["fill"][0])).partition("<")[0]
    given = _arguments(parts, shapes)
    return ("fill", filled, given) if filled and given.strip(_NOTHING_KNOWN) else None


def _return(parts: "Parts", shapes: Shapes) -> Found:
    value = expression(parts["return"][0], shapes)
    return None if value == UNKNOWN or value.startswith("#") else ("return", "", value)


def _base(parts: "Parts", shapes: Shapes) -> Found:
    return _inherited("base", parts, shapes)


def _implements(parts: "Parts", shapes: Shapes) -> Found:
    return _inherited("base.implements", parts, shapes)


def _mixin(parts: "Parts", shapes: Shapes) -> Found:
    return _inherited("base.mixin", parts, shapes)


def _inherited(capture: str, parts: "Parts", shapes: Shapes) -> Found:
    node = parts[capture][0]
    written = expression(node, shapes) if node.type in shapes.calls else canonical_type(text_of(node))
    of = canonical_type(text_of(parts["base.of"][0])).partition("<")[0] if "base.of" in parts else ""
    return (capture.rpartition(".")[2], of.removesuffix(".prototype"), written) if written else None


def _property(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return "property", "", ""


def _hidden(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return "hidden", "", ""


def _companion(parts: "Parts", shapes: Shapes) -> Found:
    return _inherited("base.companion", parts, shapes)


def _receiver(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    written = canonical_type(text_of(parts["receiver"][0]))
    return ("receiver", "", written) if written else None


def _initial(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return "initial", "", ""


def _outer(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return "outer", "", ""


def _decorator(parts: "Parts", shapes: Shapes) -> Found:
    value = expression(parts["decorator"][0], shapes)
    return None if value == UNKNOWN else ("decorator", "", value)


def _namespace(parts: "Parts", shapes: Shapes) -> Found:  # noqa: ARG001 as the others
    return "namespace", text_of(parts["namespace"][0]).replace("\\", "."), ""


def _assigned(parts: "Parts", shapes: Shapes) -> Found:
    """What is put into a variable that is declared elsewhere, or into a field."""
    name, value = expression(parts["assigned"][0], shapes), expression(parts["assigned.value"][0], shapes)
    if UNKNOWN in {name, value} or name[0] in "?(" or value[0] == "#":
        return None
    while name.endswith("[]"):
        name, value = name.removesuffix("[]"), f"{{{value}}}"
    return "bind", name if "." in name else f".{name}", value


def _documented(node: "Node", _: Shapes) -> "Iterator[tuple[Node, str, str, str]]":
    """The types of parameters and of what is returned that a comment names."""
    for name, declared in types_in(text_of(node)):
        yield node, "bind" if name else "return", name, f":{declared}"


def _signature(node: "Node", shapes: Shapes) -> "Iterator[tuple[Node, str, str, str]]":
    function = facts_c.function_declarator(node)
    if function is not None:
        yield from facts_c.parameters(function, shapes)


def _instance(node: "Node", shapes: Shapes) -> "Iterator[tuple[Node, str, str, str]]":
    """With which arguments a template is used."""
    name = expression(node, shapes)
    yield node, "bind", f"<{name}", f":{canonical_type(text_of(node))}"


MANY = {
    "template": facts_c.template,
    "instance": _instance,
    "declared": facts_c.declared,
    "signature": _signature,
    "doc": _documented,
}
"""Readers that find several facts in one place."""

READERS = {
    "call": _call,
    "new": _new,
    "macro": _macro,
    "import.module": _import,
    "import.path": _import_path,
    "reexport.module": _reexport,
    "use": _use,
    "export.value": _export,
    "export": _export,
    "assigned": _assigned,
    "bind": bind,
    "parameter": parameter,
    "fill": _fill,
    "return": _return,
    "base": _base,
    "base.implements": _implements,
    "base.mixin": _mixin,
    "property": _property,
    "hidden": _hidden,
    "base.companion": _companion,
    "receiver": _receiver,
    "generic": generic,
    "initial": _initial,
    "outer": _outer,
    "decorator": _decorator,
    "namespace": _namespace,
}
