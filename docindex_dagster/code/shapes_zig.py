"""Zig: what its grammar calls the expressions that can be followed.

A chain such as `list.items[0].?.run()` is one node with its parts in a row, read from its first part on. Functions
whose names begin with a capital letter give types; pointers, optionals and slices are taken for what they hold.
"""

import re
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN, Read, Shapes, text_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPE_NAME = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*")
_DECLARED = frozenset({"VarDecl", "ContainerField"})
_OUTSIDE = frozenset({"Decl", "Block", "FnCallArguments", "InitList", "source_file"})
_CASTS = frozenset({"@ptrCast", "@alignCast", "@constCast", "@volatileCast"})


def _chain(node: "Node", read: Read) -> str:
    """An expression with all that is behind it; a declared type."""
    declared = _type_with(node)
    if declared is not None and text_of(declared).startswith("fn"):
        return ":func"
    if declared is not None and (name := _declared(text_of(node))):
        return f":{name}"
    return _up_to(node, None, read)


def _callee(node: "Node", read: Read) -> str:
    """What is called with some arguments."""
    around = node.parent
    if around is None or around.type == "SuffixExpr":
        called = _up_to(around, node, read)
    else:
        called = _member(_up_to(around.parent, around, read), around.child_by_field_name("function_call"))
    return UNKNOWN if called.startswith("@") else called


def _up_to(chain: "Node | None", end: "Node | None", read: Read) -> str:
    """The parts of a chain, or those before one of them."""
    found = ""
    for part in chain.named_children if chain is not None else ():
        if end is not None and part.id == end.id:
            break
        found = _with(found, part, read)
        if found == UNKNOWN:
            break
    return found or UNKNOWN


def _with(found: str, part: "Node", read: Read) -> str:  # noqa: PLR0911 one a part
    """The notation of a chain with one more part."""
    match part.type:
        case "FieldOrFnCall":
            name, called = part.child_by_field_name("field_access"), part.child_by_field_name("function_call")
            member = _member(found, name or called)
            return _called(member, part.named_children[-1], read) if called is not None else member
        case "FnCallArguments":
            return _called(found, part, read)
        case "SuffixOp":
            return f"{found}[]" if text_of(part).startswith("[") else found
        case "BUILTINIDENTIFIER":
            return text_of(part)
        case "IDENTIFIER" if text_of(part.prev_sibling) == ".":
            return f"{_expected(part)}.{text_of(part)}"
        case "FnProto":
            return ":func"
        case _:
            return read(part)


def _member(found: str, name: "Node | None") -> str:
    if found == UNKNOWN or found.startswith("@"):
        return UNKNOWN
    return f"({found}).{text_of(name)}" if found.startswith(":") else f"{found}.{text_of(name)}"


def _called(found: str, arguments: "Node", read: Read) -> str:
    """What a call gives: of the language's own functions a module, the type around, or what is cast."""
    given = arguments.named_children
    if found == "@This":
        return "this"
    if found == "@import" and given:
        return f'"{text_of(given[0]).strip(chr(34))}"'
    if found == "@as" and given:
        return f":{_declared(text_of(given[0]))}"
    if found in _CASTS and given:
        return read(given[-1])
    if found.startswith("@"):
        return UNKNOWN
    is_type = _TYPE_NAME.fullmatch(found) and (declared := _declared(f"{found}{text_of(arguments)}"))
    return f":{declared}" if is_type else f"{found}()"


def _type_with(chain: "Node") -> "Node | None":
    """The declared type that a chain is, or ends; None where it stands elsewhere."""
    node = chain.parent
    while node is not None and node.parent is not None and node.parent.type == "ErrorUnionExpr":
        node = node.parent
    around = node.parent if node is not None else None
    if node is None or around is None:
        return None
    if around.type == "ParamType":
        return node
    before = node.prev_sibling if around.type in _DECLARED else None
    return node if before is not None and before.type in {":", "PrefixTypeOp"} else None


def _declared(written: str) -> str:
    return "" if "@" in written else canonical_type(written.replace("(", "<").replace(")", ">"))


def _expected(chain: "Node") -> str:
    """The type of what `.name` is a member of: that of the variable, or of what the function gives."""
    node = chain.parent
    while node is not None and node.type not in _DECLARED | _OUTSIDE:
        if node.type == "AssignExpr" and node.children[0].type == "return":
            return _result_of(node)
        node = node.parent
    if node is None or node.type not in _DECLARED:
        return UNKNOWN
    types = [child for child in node.named_children if child.type == "ErrorUnionExpr"]
    return f"(:{_declared(text_of(types[0]))})" if len(types) > 1 else UNKNOWN


def _result_of(node: "Node") -> str:
    around: Node | None = node
    while around is not None and around.type != "Decl":
        around = around.parent
    head = around.named_children[0] if around is not None else None
    types = [child for child in head.named_children if child.type == "ErrorUnionExpr"] if head is not None else []
    return f"(:{_declared(text_of(types[-1].named_children[-1]))})" if types else UNKNOWN


ZIG = Shapes(
    names=frozenset({"IDENTIFIER"}),
    through={
        "ErrorUnionExpr": "-1",
        "UnaryExpr": "left",
        "GroupedExpr": "",
        "AssignExpr": "",
        "ForItem": "",
    },
    either={"BinaryExpr": ("left", "right"), "IfExpr": ("1", "-1")},
    labels={"FieldInit": "field_member"},
    beside=frozenset({"InitList", "PrefixTypeOp"}),
    literals={"STRINGLITERALSINGLE": "string", "INTEGER": "int", "FLOAT": "float", "CHAR_LITERAL": "u8"},
    readers={"SuffixExpr": _chain, "FnCallArguments": _callee},
    is_placed=True,
)
ZIG_BLOCKS = frozenset(
    {
        "Block",
        "BinaryExpr",
        "ContainerDecl",
        "FnProto",
        "ForExpr",
        "ForStatement",
        "IfExpr",
        "IfStatement",
        "SwitchProng",
        "WhileExpr",
        "WhileStatement",
    }
)
