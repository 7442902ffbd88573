"""What a name stands for that is assigned together with others, or in a pattern."""

from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN, Shapes, expression, text_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node


def assigned_part(name: "Node", statement: "Node", shapes: Shapes) -> str:
    """Of a statement that assigns several values, or the parts of one, what goes to a name."""
    value = statement.child_by_field_name("right") or statement.child_by_field_name("value")
    left = statement.child_by_field_name("left")
    names = left.named_children if left is not None else statement.children_by_field_name("name")
    at = next((index for index, node in enumerate(names) if node.id == name.id), -1)
    if value is None or at < 0:
        return UNKNOWN
    values = [node for node in value.named_children if not node.is_extra]
    if len(values) == len(names):
        return expression(values[at], shapes)
    if len(values) != 1:
        return UNKNOWN
    if values[0].type not in shapes.calls:  # and whether there is such a value
        return expression(values[0], shapes) if at == 0 else UNKNOWN
    whole = expression(values[0], shapes)
    return whole if whole == UNKNOWN else f"{whole}.{at}"


def unpacked(name: "Node", statement: "Node", shapes: Shapes) -> str:
    """Of what a statement or loop of Python takes apart, what goes to a name."""
    names = [node for node in name.parent.named_children if not node.is_extra] if name.parent is not None else []
    at = next((index for index, node in enumerate(names) if node.id == name.id), -1)
    value = statement.child_by_field_name("right")
    if value is None or any(node.type == "list_splat_pattern" for node in names[: at + 1]):
        return UNKNOWN
    if statement.type != "assignment":
        return _looped(value, at, len(names), shapes)
    if value.type in _WRITTEN_OUT:
        values = [node for node in value.named_children if not node.is_extra]
        return expression(values[at], shapes) if len(values) == len(names) else UNKNOWN
    whole = expression(value, shapes)
    if whole[0] in "?#" or len(whole) > _LONGEST_WHOLE:
        return UNKNOWN
    return f"({whole}).{at}" if whole[0] == ":" else f"{whole}.{at}"


def _looped(value: "Node", at: int, count: int, shapes: Shapes) -> str:
    """Of what a loop takes each element apart, what goes to the name at a place."""
    if text_of(value).startswith("zip("):
        arguments = value.child_by_field_name("arguments")
        zipped = arguments.named_children if arguments is not None else []
        return _each(expression(zipped[at], shapes)) if at < len(zipped) else UNKNOWN
    each, is_last = _each(expression(value, shapes)), at == count - 1
    if each == UNKNOWN or len(each) > _LONGEST_WHOLE:
        return UNKNOWN
    if any(mark in text_of(value) for mark in _PAIRING):  # an element is the last of its pair
        return each if is_last else UNKNOWN
    return f"({each}.{at}|{each})" if is_last else f"{each}.{at}"


def _each(whole: str) -> str:
    if whole[0] in "?#":
        return UNKNOWN
    return f"({whole})[]" if whole[0] == ":" else f"{whole}[]"


def repeated_type(name: "Node") -> str:
    """The type of the constant before one that repeats it."""
    before = name.parent.prev_named_sibling if name.parent is not None else None
    while before is not None and before.child_by_field_name("value") is None:
        before = before.prev_named_sibling
    declared = canonical_type(text_of(before.child_by_field_name("type"))) if before is not None else ""
    return f":{declared}" if declared else UNKNOWN


_WRITTEN_OUT = frozenset({"expression_list", "tuple", "list"})
_PAIRING = (".items(", "enumerate(")
_LONGEST_WHOLE = 80  # characters of what is taken apart
_VALUES = frozenset({"let_declaration", "let_condition", "match_expression", "for_expression"})
_HOLDERS = frozenset({"Some", "Ok"})
# Methods of iterators and the like that give each element, or what there is, to the function that they are given.
_EACH_NAMES = """
    map filter for_each any all find position filter_map flat_map and_then inspect take_while skip_while find_map
    retain retain_mut is_some_and is_ok_and partition min_by_key max_by_key sort_by_key sort_unstable_by_key
    sort_by_cached_key sort_by sort_unstable_by min_by max_by map_or map_or_else try_for_each map_while rposition
    and_modify modify update then group_by dedup_by_key
"""
_EACH = frozenset(_EACH_NAMES.split())
_FOLDS = frozenset({"fold", "try_fold", "scan"})


def matched(name: "Node", shapes: Shapes) -> str:
    """What a name in a pattern of Rust stands for: the part of the value to which the pattern is matched."""
    steps: list[str] = []
    node = name
    while (outer := node.parent) is not None:
        if outer.type == "tuple_struct_pattern":
            variant = expression(outer.child_by_field_name("type"), shapes)
            if variant not in _HOLDERS:
                return _with(f"{variant}#{_position(node, outer) - 1}", steps)
            steps.append("[]")
        elif outer.type == "tuple_pattern":
            steps.append(f".{_position(node, outer)}" if node.next_named_sibling else f".{_position(node, outer)}$")
        elif outer.type == "field_pattern":
            return _with(_field(name, node, outer, shapes), steps)
        elif outer.type == "closure_parameters":
            return _with(_given(outer, node, shapes), steps)
        elif outer.type == "parameter":
            return UNKNOWN
        elif outer.type in _VALUES:
            value, steps = _tuple_part(outer.child_by_field_name("value"), steps, shapes)
            return _with(f"{value}[]" if outer.type == "for_expression" else value, steps)
        node = outer
    return UNKNOWN


def _tuple_part(value: "Node | None", steps: list[str], shapes: Shapes) -> tuple[str, list[str]]:
    """Of a tuple that is written as one, the part to which the outermost step leads."""
    if value is not None and value.type == "tuple_expression" and steps and steps[-1].startswith("."):
        parts = value.named_children
        at = int(steps[-1].strip(".$"))
        return (expression(parts[at], shapes), steps[:-1]) if at < len(parts) else (UNKNOWN, [])
    return expression(value, shapes), steps


def _with(value: str, steps: list[str]) -> str:
    """A value with the steps to a part of it. The last of a pair may be the value of a map, of which pairs are read."""
    for step in reversed(steps):
        if value.startswith(UNKNOWN):
            return UNKNOWN
        part = f"{value}{step.rstrip('$')}"
        value = f"({part}|{value})" if step.endswith("$") and value.endswith("[]") else part
    return value


def _position(node: "Node", parent: "Node") -> int:
    return next((at for at, child in enumerate(parent.named_children) if child.id == node.id), 0)


def _field(name: "Node", node: "Node", pattern: "Node", shapes: Shapes) -> str:
    """A field of a struct, or of a variant of an enum."""
    of = pattern.parent.child_by_field_name("type") if pattern.parent is not None else None
    field = pattern.child_by_field_name("name") or (node if node.id == name.id else None)
    if of is None or field is None:
        return UNKNOWN
    mark = "#" if of.type == "scoped_type_identifier" else "."
    return f"{expression(of, shapes)}{mark}{expression(field, shapes)}"


def _given(parameters: "Node", node: "Node", shapes: Shapes) -> str:
    """What a closure is called with that a method of an iterator or the like is given."""
    closure = parameters.parent
    call = closure.parent.parent if closure is not None and closure.parent is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    if function is None or function.type != "field_expression":
        return UNKNOWN
    method = expression(function.child_by_field_name("field"), shapes)
    is_last = node.next_named_sibling is None
    if method not in _EACH and not (method in _FOLDS and is_last):
        return UNKNOWN
    value = expression(function.child_by_field_name("value"), shapes)
    return value if value == UNKNOWN else f"{value}[]"
