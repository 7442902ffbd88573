"""What a fact says of a variable or parameter: its name, and what it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from docindex_dagster.code.callees import called_method, what_is_given
from docindex_dagster.code.docblocks import type_after
from docindex_dagster.code.expressions import (
    UNKNOWN,
    Shapes,
    expression,
    text_of,
)
from docindex_dagster.code.patterns import assigned_part, matched, repeated_type
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

    Parts = Mapping[str, list[Node]]

LAST = 8  # position of the last argument that is recorded
_BLOCK = 9  # that of a block
Found = tuple[str, str, str] | None
"""Kind, name and value of a fact."""

_FOLDS = {"reduce": 0, "reduceRight": 0, "inject": 0, "each_with_object": 1}
_PATTERNS = frozenset({"object_pattern", "array_pattern"})


def bind(parts: "Parts", shapes: Shapes) -> Found:  # noqa: C901, PLR0911 one a capture
    """A variable, attribute or field, and what it is."""
    if "bind.place" in parts:
        name = _place_of(parts["bind"][0])
    else:
        name = expression(parts["bind"][0], shapes) if "bind.from" not in parts else text_of(parts["bind"][0])
    if "bind.pattern" in parts and name[:1].isupper():  # a constant
        return None
    if "bind.of" in parts:
        name = f"{text_of(parts['bind.of'][0])}#{name}"
    if not name or name[0] in "?:({":
        return None
    name = name.removesuffix("'")
    if "bind.given" in parts:
        is_last = "bind.other" not in parts
        return "bind", name, what_is_given(parts["bind.given"][0], shapes) if is_last else UNKNOWN
    if "bind.attribute" in parts:
        name = text_of(parts["bind"][0]).lstrip(":")
        return "bind", name, f"this.%{name}"
    if name.endswith("()"):  # self.name = …
        owner, _, name = name.removesuffix("()").rpartition(".")
        name = f"this.%{name}"
        if owner != "this":
            return None
    if "bind.block" in parts:
        return "bind", name, _block_given(parts["bind"][0], shapes)
    if "bind.from" in parts:
        return "bind", name, _member_of(parts, name, shapes)
    name = f"this.{name}" if "bind.member" in parts else name
    name = f"{name}[]" if "bind.filled" in parts or "bind.sent" in parts else name
    name = f"is {name}" if "bind.tested" in parts else name
    return "bind", name, value_of(parts, "bind", shapes)


def _place_of(node: "Node") -> str:
    """The number of a field that has no name."""
    around = node.parent
    fields = around.children_by_field_name("type") if around is not None else []
    return str(next((at for at, field in enumerate(fields) if field.id == node.id), 0))


def _block_given(node: "Node", shapes: Shapes) -> str:
    """What a block is given by the method that it is given to."""
    listed = node.parent
    call = listed.parent.parent if listed is not None and listed.parent is not None else None
    if call is None or listed is None or call.type not in shapes.methods:
        return UNKNOWN
    called = called_method(call, shapes)
    position = [child.id for child in listed.named_children].index(node.id)
    if (start := folded(call, called, position, shapes)) != UNKNOWN:
        return start
    return UNKNOWN if called == UNKNOWN or position > LAST else f"{called}^{_BLOCK}{position}"


def folded(call: "Node", called: str, position: int, shapes: Shapes) -> str:
    """What a fold begins with, for the parameter that holds what came of it so far."""
    if _FOLDS.get(called.rpartition(".")[2]) != position:
        return UNKNOWN
    arguments = call.child_by_field_name("arguments")
    given = [child for child in arguments.named_children if not child.is_extra] if arguments is not None else []
    return expression(given[-1], shapes) if given and given[-1].type in shapes.values else UNKNOWN


def _member_of(parts: "Parts", name: str, shapes: Shapes) -> str:
    """What a variable is that is taken out of an object by its name."""
    node = parts["bind.from"][0]
    if node.type in _PATTERNS:
        return f"{_pattern_name(node)}.{text_of(parts['bind.key'][0]) if 'bind.key' in parts else name}"
    declared = canonical_type(text_of(node)) if node.type == "type_annotation" else ""
    owner = f":{declared}" if declared else expression(node, shapes)
    owner = f"({owner})" if owner.startswith(":") else owner
    key = text_of(parts["bind.key"][0]).rstrip(": ") if "bind.key" in parts else name
    return UNKNOWN if owner == UNKNOWN or not key.isidentifier() else f"{owner}.{key}"


def _pattern_name(node: "Node") -> str:
    """A name for a parameter that is written as a pattern."""
    return f"$p{node.start_byte}"


def parameter(parts: "Parts", shapes: Shapes) -> Found:
    """A parameter, with its type and default."""
    node = parts["parameter"][0]
    name = _pattern_name(node) if node.type in _PATTERNS else text_of(node).lstrip("&*:")
    name = f"&{name}" if "parameter.block" in parts else name
    value = value_of(parts, "parameter", shapes)
    if "parameter.rest" not in parts and not _takes_the_rest(node):
        return "parameter", name, value
    is_one = value.startswith(":") and not value.startswith(":Array<")
    return "parameter", f"*{name}", f":Array<{value[1:]}>" if is_one else value


def _takes_the_rest(name: "Node") -> bool:
    """Whether the parameter of this name has `vararg` before it."""
    around = name.parent if name.type == "simple_identifier" else None
    before = around.prev_sibling if around is not None else None
    return before is not None and before.type == "parameter_modifiers" and b"vararg" in (before.text or b"")


def value_of(parts: "Parts", capture: str, shapes: Shapes) -> str:  # noqa: PLR0911 one a capture
    """The declared type, where there is one, else the value."""
    if f"{capture}.doc" in parts and (declared := type_after("@var", text_of(parts[f"{capture}.doc"][0]))):
        return f":{declared}"
    if f"{capture}.type" in parts and (declared := canonical_type(text_of(parts[f"{capture}.type"][0]))):
        return f":{declared}"
    if f"{capture}.each" in parts:
        return f":Array<{canonical_type(text_of(parts[f'{capture}.each'][0])) or '?'}>"
    if f"{capture}.parts" in parts:
        return assigned_part(parts["bind"][0], parts[f"{capture}.parts"][0], shapes)
    if f"{capture}.pattern" in parts:
        return matched(parts[capture][0], shapes)
    if f"{capture}.again" in parts:
        return repeated_type(parts[capture][0])
    if f"{capture}.self" in parts:
        return "this"
    nodes = parts.get(f"{capture}.value") or parts.get(f"{capture}.sent")
    if nodes:
        return expression(nodes[0], shapes)
    if f"{capture}.items" in parts:
        value = expression(parts[f"{capture}.items"][0], shapes)
        return value if value == UNKNOWN else f"{value}[]"
    return UNKNOWN


def generic(parts: "Parts", shapes: Shapes) -> Found:
    """A type parameter, and what it is bound by."""
    return "generic", text_of(parts["generic"][0]), value_of(parts, "generic", shapes)
