"""What a name stands for that is assigned together with others, or in a pattern."""

from collections.abc import Sequence
from typing import NamedTuple

from docindex_dagster.callgraph.extract.expressions import Node, Reader, parts_of, text_of
from docindex_dagster.callgraph.extract.library import instance_of
from docindex_dagster.callgraph.ir import (
    UNKNOWN,
    Attribute,
    Element,
    Expression,
    Instance,
    Name,
    TypeRef,
    Union,
    Unknown,
    either,
    head,
    is_known,
    path_of,
)


def assigned_part(name: Node, statement: Node, reader: Reader) -> Expression:
    """Of a statement that assigns several values, or the parts of one, what goes to a name."""
    value = statement.child_by_field_name("right") or statement.child_by_field_name("value")
    left = statement.child_by_field_name("left")
    names = left.named_children if left is not None else statement.children_by_field_name("name")
    at = next((index for index, node in enumerate(names) if node.id == name.id), -1)
    if value is None or at < 0:
        return UNKNOWN
    values = parts_of(value)
    if len(values) == len(names):
        return reader.expression(values[at])
    if len(values) != 1:
        return UNKNOWN
    whole = reader.expression(values[0])
    if values[0].type not in reader.syntax.calls:  # and whether there is such a value
        return whole if at == 0 else UNKNOWN
    return whole if whole is UNKNOWN else Attribute(whole, str(at))


def unpacked(name: Node, statement: Node, reader: Reader) -> Expression:
    """Of what a statement or loop of Python takes apart, what goes to a name."""
    names = parts_of(name.parent)
    at = next((index for index, node in enumerate(names) if node.id == name.id), -1)
    value = statement.child_by_field_name("right")
    if value is None or any(node.type == "list_splat_pattern" for node in names[: at + 1]):
        return UNKNOWN
    if statement.type != "assignment":
        return _looped(value, at, len(names), reader)
    if value.type in _WRITTEN_OUT:
        values = parts_of(value)
        return reader.expression(values[at]) if len(values) == len(names) else UNKNOWN
    whole = reader.expression(value)
    return Attribute(whole, str(at)) if is_known(whole) else UNKNOWN


def _looped(value: Node, at: int, count: int, reader: Reader) -> Expression:
    """Of what a loop takes each element apart, what goes to the name at a place."""
    if text_of(value).startswith("zip("):
        zipped = parts_of(value.child_by_field_name("arguments"))
        return _each(reader.expression(zipped[at])) if at < len(zipped) else UNKNOWN
    each, is_last = _each(reader.expression(value)), at == count - 1
    if each is UNKNOWN:
        return UNKNOWN
    if any(mark in text_of(value) for mark in _PAIRING):  # an element is the last of its pair
        return each if is_last else UNKNOWN
    part = Attribute(each, str(at))
    return Union((part, each)) if is_last else part


def _each(whole: Expression) -> Expression:
    return Element(whole) if is_known(whole) else UNKNOWN


def repeated_type(name: Node) -> Expression:
    """Something of the type of the constant before one that repeats it."""
    before = name.parent.prev_named_sibling if name.parent is not None else None
    while before is not None and before.child_by_field_name("value") is None:
        before = before.prev_named_sibling
    return instance_of(before.child_by_field_name("type")) if before is not None else UNKNOWN


_WRITTEN_OUT = frozenset({"expression_list", "tuple", "list"})
_PAIRING = (".items(", "enumerate(")
_VALUES = frozenset({"let_declaration", "let_condition", "match_expression", "for_expression"})
_HOLDERS = frozenset({Name("Some"), Name("Ok")})
# Methods of iterators and the like that give each element, or what there is, to the function that they are given.
_EACH_NAMES = """
    map filter for_each any all find position filter_map flat_map and_then inspect take_while skip_while find_map
    retain retain_mut is_some_and is_ok_and partition min_by_key max_by_key sort_by_key sort_unstable_by_key
    sort_by_cached_key sort_by sort_unstable_by min_by max_by map_or map_or_else try_for_each map_while rposition
    and_modify modify update then group_by dedup_by_key
"""
_EACH = frozenset(_EACH_NAMES.split())
_FOLDS = frozenset({"fold", "try_fold", "scan"})


class Step(NamedTuple):
    """A step from a value to a part of it: one under a name, or, without a name, what it holds."""

    name: str = ""
    is_last: bool = False  # the last of a tuple
    cls: TypeRef | None = None  # what the pattern says of the value


HELD = Step()


def matched(name: Node, reader: Reader) -> Expression:
    """What a name in a pattern of Rust stands for: the part of the value to which the pattern is matched."""
    steps: list[Step] = []
    node = name
    while (outer := node.parent) is not None:
        if outer.type == "tuple_struct_pattern":
            variant = reader.expression(outer.child_by_field_name("type"))
            if variant not in _HOLDERS:
                return with_steps(_field_of(variant, str(position(node, outer.named_children) - 1)), steps)
            steps.append(HELD)
        elif outer.type == "tuple_pattern":
            steps.append(Step(str(position(node, outer.named_children)), not node.next_named_sibling))
        elif outer.type == "field_pattern":
            return with_steps(_field(name, node, outer, reader), steps)
        elif outer.type == "closure_parameters":
            return with_steps(_given(outer, node, reader), steps)
        elif outer.type == "parameter":
            return UNKNOWN
        elif outer.type in _VALUES:
            value, steps = _tuple_part(outer.child_by_field_name("value"), steps, reader)
            return with_steps(Element(value) if outer.type == "for_expression" else value, steps)
        node = outer
    return UNKNOWN


def _tuple_part(value: Node | None, steps: list[Step], reader: Reader) -> tuple[Expression, list[Step]]:
    """Of a tuple that is written as one, the part to which the outermost step leads."""
    if value is not None and value.type == "tuple_expression" and steps and steps[-1] is not HELD:
        parts, at = value.named_children, int(steps[-1].name)
        return (reader.expression(parts[at]), steps[:-1]) if at < len(parts) else (UNKNOWN, [])
    return reader.expression(value), steps


def with_steps(value: Expression, steps: Sequence[Step]) -> Expression:
    """A value with the steps to a part of it, from what the pattern tells of a class where the value tells nothing.

    The last of a pair may be the value of a map, of which pairs are read.
    """
    for step in reversed(steps):
        part = Attribute(value, step.name) if step.name else Element(value)
        found: list[Expression] = [] if isinstance(head(value), Unknown) else [part]
        if step.is_last and isinstance(value, Element | Union):
            found.append(value)
        value = either([*found, Attribute(Instance(step.cls), step.name)] if step.cls else found)
    return value


def position(node: Node, nodes: Sequence[Node]) -> int:
    """The place of a node among some; 0 where it is none of them."""
    return next((at for at, other in enumerate(nodes) if other.id == node.id), 0)


def _field_of(variant: Expression, field: str) -> Expression:
    """The field of a variant of an enum, which has a name of its own."""
    match variant:
        case Name(text):
            return Name(f"{text}#{field}")
        case Attribute(of, name):
            return Attribute(of, f"{name}#{field}")
        case _:
            return UNKNOWN


def _field(name: Node, node: Node, pattern: Node, reader: Reader) -> Expression:
    """A field of a struct, or of a variant of an enum."""
    of = pattern.parent.child_by_field_name("type") if pattern.parent is not None else None
    field = pattern.child_by_field_name("name") or (node if node.id == name.id else None)
    if of is None or field is None:
        return UNKNOWN
    whole, part = reader.expression(of), text_of(field)
    return _field_of(whole, part) if of.type == "scoped_type_identifier" else Attribute(whole, part)


def _given(parameters: Node, node: Node, reader: Reader) -> Expression:
    """What a closure is called with that a method of an iterator or the like is given."""
    closure = parameters.parent
    call = closure.parent.parent if closure is not None and closure.parent is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    if function is None or function.type != "field_expression":
        return UNKNOWN
    method = path_of(reader.expression(function.child_by_field_name("field")))
    is_last = node.next_named_sibling is None
    if method not in _EACH and not (method in _FOLDS and is_last):
        return UNKNOWN
    value = reader.expression(function.child_by_field_name("value"))
    return value if value is UNKNOWN else Element(value)
