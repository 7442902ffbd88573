"""Names and values of captured variables, attributes, parameters and type parameters.

A variable may be assigned together with others or be part of a pattern.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal as OneOf
from typing import NamedTuple

from docindex_dagster.callgraph.extract.callees import called_method, lambda_argument, passed
from docindex_dagster.callgraph.extract.expressions import Captured, Node, Reader, captured, parts_of, text_of
from docindex_dagster.callgraph.extract.library import instance_of
from docindex_dagster.callgraph.extract.types import declared_type, type_after
from docindex_dagster.callgraph.ir import (
    BLOCK,
    FILE,
    THIS,
    UNKNOWN,
    Assignment,
    Attribute,
    Call,
    Collection,
    Element,
    Expression,
    Generic,
    Instance,
    Name,
    NameOrCall,
    Parameter,
    TypeRef,
    Union,
    Unknown,
    either,
    head,
    is_known,
    types_in,
)

_NO_TARGETS = (Unknown, Instance, Union, Collection)
_PATTERNS = frozenset({"object_pattern", "array_pattern"})
_LITERALS = frozenset({"expression_list", "tuple", "list"})
_PAIRING = (".items(", "enumerate(")


def binding(parts: Captured, reader: Reader) -> Assignment | None:
    """Return the assignment of a value to a variable, attribute or field."""
    target = _target(parts, parts["bind"][0], reader)
    if target is None:
        return None
    if "bind.member" in parts:
        target = _of_this(target)
    if "bind.filled" in parts or "bind.sent" in parts:
        target = Element(target)
    role: OneOf["test", "bind"] = "test" if "bind.tested" in parts else "bind"
    return Assignment(role, FILE, target, value_of(parts, "bind", reader), 0, 0)


def bound(target: Expression, value: Expression) -> Assignment:
    """Return an assignment whose scope and position are not known yet."""
    return Assignment("bind", FILE, target, value, 0, 0)


def _target(parts: Captured, node: Node, reader: Reader) -> Expression | None:
    """Return the declared or assigned target; None if it has no name."""
    target: Expression
    if "bind.place" in parts:
        target = Name(_field_number(node))
    elif "bind.from" in parts or "bind.attribute" in parts:
        target = Name(text_of(node).lstrip(":"))
    else:
        target = reader.expression(node)
    match target:
        case NameOrCall(text):
            return Name(text)
        case Call(Attribute(of, name)) if of is THIS:  # self.name = …
            return Attribute(THIS, f"%{name}")
        case Name("") | Call():
            return None
        case Name(text) if "bind.pattern" in parts and text[:1].isupper():  # a constant
            return None
        case Name(text) if "bind.of" in parts:
            return Name(f"{text_of(parts['bind.of'][0])}#{text}")
        case _:
            return None if isinstance(head(target), _NO_TARGETS) else target


def _of_this(target: Expression) -> Expression:
    """Turn the name of a declared member into an attribute of the object."""
    match target:
        case Name(text):
            return Attribute(THIS, text)
        case Attribute(of, name):
            return Attribute(_of_this(of), name)
        case _:
            return target


def _field_number(node: Node) -> str:
    """Return the position of an unnamed field, or of the parameter with this type."""
    around = node.parent
    names = ("type", "name")
    fields = [field for name in names for field in around.children_by_field_name(name)] if around is not None else []
    if around is not None and around.type == "class_parameter" and around.parent is not None:
        node, fields = around, around.parent.named_children
    return str(next((at for at, field in enumerate(fields) if field.id == node.id), 0))


def _lambda_argument(parts: Captured, capture: str, reader: Reader) -> Expression:
    function = parts[f"{capture}.given"][0]
    return UNKNOWN if f"{capture}.other" in parts else lambda_argument(function, reader)


def _block_argument(parts: Captured, capture: str, reader: Reader) -> Expression:
    """Return the argument that a method passes to its block."""
    node = parts[capture][0]
    listed = node.parent
    call = listed.parent.parent if listed is not None and listed.parent is not None else None
    if call is None or listed is None or call.type not in reader.syntax.methods:
        return UNKNOWN
    position = [child.id for child in listed.named_children].index(node.id)
    return passed(call, called_method(call, reader), BLOCK, position, reader)


def _member_of(parts: Captured, capture: str, reader: Reader) -> Expression:
    """Return the member that a variable is destructured from."""
    node = parts[f"{capture}.from"][0]
    key = text_of(parts.get(f"{capture}.key", parts[capture])[0]).rstrip(": ")
    if node.type in _PATTERNS:
        return Attribute(Name(_pattern_name(node)), key)
    declared = declared_type(text_of(node)) if node.type == "type_annotation" else None
    owner = Instance(declared) if declared else reader.expression(node)
    return UNKNOWN if owner is UNKNOWN or not key.isidentifier() else Attribute(owner, key)


def _pattern_name(node: Node) -> str:
    """Return a unique name for a parameter that is a pattern."""
    return f"$p{node.start_byte}"


def parameter(parts: Captured, reader: Reader) -> Parameter:
    """Return a parameter with its type or default."""
    node = parts["parameter"][0]
    name = _pattern_name(node) if node.type in _PATTERNS else text_of(node).lstrip("&*:")
    label = text_of(captured(parts, "parameter.label"))
    value = value_of(parts, "parameter", reader)
    if "parameter.rest" not in parts and not _is_vararg(node):
        return Parameter("block" if "parameter.block" in parts else "", FILE, name, value, label, 0, 0)
    if isinstance(value, Instance) and not (value.type.name == "Array" and value.type.arguments):
        value = Instance(TypeRef("Array", (value.type,)))
    return Parameter("rest", FILE, name, value, label, 0, 0)


def _is_vararg(name: Node) -> bool:
    """Return whether the parameter with this name has the modifier `vararg`."""
    around = name.parent if name.type == "simple_identifier" else None
    before = around.prev_sibling if around is not None else None
    return before is not None and before.type == "parameter_modifiers" and b"vararg" in (before.text or b"")


def value_of(parts: Captured, capture: str, reader: Reader) -> Expression:
    """Return an instance of the declared type, if there is one, or else the value."""
    for read in _value_readers(tuple(parts), capture):
        value = read(parts, capture, reader)
        if value is not None:
            return value
    return UNKNOWN


@lru_cache(maxsize=1_000)
def _value_readers(captures: tuple[str, ...], capture: str) -> "tuple[_ValueReader, ...]":
    return tuple(read for part, read in _VALUES.items() if f"{capture}.{part}" in captures)


def _documented(parts: Captured, capture: str, _: Reader) -> Expression | None:
    declared = type_after("@var", text_of(parts[f"{capture}.doc"][0]))
    return Instance(declared) if declared else None


def _typed(parts: Captured, capture: str, reader: Reader) -> Expression | None:
    declared = declared_type(text_of(parts[f"{capture}.type"][0]))
    return _declared(declared, parts.get(f"{capture}.value"), reader) if declared else None


def _of_each(parts: Captured, capture: str, _: Reader) -> Expression:
    each = declared_type(text_of(parts[f"{capture}.each"][0]))
    return Instance(TypeRef("Array", (each or TypeRef("?"),)))


def _matched(parts: Captured, capture: str, reader: Reader) -> Expression:
    matching = reader.syntax.matching
    return matching(parts[capture][0], reader) if matching is not None else UNKNOWN


def _item_of(parts: Captured, capture: str, reader: Reader) -> Expression:
    value = reader.expression(parts[f"{capture}.items"][0])
    return value if value is UNKNOWN else Element(value)


_ValueReader = Callable[["Captured", str, Reader], Expression | None]
_VALUES: Mapping[str, _ValueReader] = {
    "attribute": lambda parts, capture, _: Attribute(THIS, f"%{text_of(parts[capture][0]).lstrip(':')}"),
    "given": _lambda_argument,
    "block": _block_argument,
    "from": _member_of,
    "doc": _documented,
    "type": _typed,
    "each": _of_each,
    "parts": lambda parts, capture, reader: assigned_part(parts["bind"][0], parts[f"{capture}.parts"][0], reader),
    "unpacked": lambda parts, capture, reader: unpacked(parts["bind"][0], parts[f"{capture}.unpacked"][0], reader),
    "pattern": _matched,
    "again": lambda parts, capture, _: repeated_type(parts[capture][0]),
    "self": lambda *_: THIS,
    "value": lambda parts, capture, reader: reader.expression(parts[f"{capture}.value"][0]),
    "sent": lambda parts, capture, reader: reader.expression(parts[f"{capture}.sent"][0]),
    "items": _item_of,
}
"""Readers of the value, by suffix of the capture; the first result that is not None counts."""


def _declared(declared: TypeRef, value: list[Node] | None, reader: Reader) -> Expression:
    """Return an instance of a declared type; for a function type, also the value."""
    is_function = value and any(one.name.rpartition(".")[2] == "Callable" for one in types_in(declared))
    written = reader.expression(value[0]) if value and is_function else UNKNOWN
    return Union((Instance(declared), written)) if is_known(written) else Instance(declared)


def generic(parts: Captured, reader: Reader) -> Generic:
    """Return a type parameter with its bound."""
    return Generic(FILE, text_of(parts["generic"][0]), value_of(parts, "generic", reader))


def assigned_part(name: Node, statement: Node, reader: Reader) -> Expression:
    """Return the value assigned to a name by a statement that assigns several values or results."""
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
    result = reader.expression(values[0])
    if values[0].type not in reader.syntax.calls:  # `value, ok = …`: the second result is a boolean
        return result if at == 0 else UNKNOWN
    return result if result is UNKNOWN else Attribute(result, str(at))


def unpacked(name: Node, statement: Node, reader: Reader) -> Expression:
    """Return the value that a statement or loop in Python unpacks into a name."""
    names = parts_of(name.parent)
    at = next((index for index, node in enumerate(names) if node.id == name.id), -1)
    value = statement.child_by_field_name("right")
    if value is None or any(node.type == "list_splat_pattern" for node in names[: at + 1]):
        return UNKNOWN
    if statement.type != "assignment":
        return _looped(value, at, len(names), reader)
    if value.type in _LITERALS:
        values = parts_of(value)
        return reader.expression(values[at]) if len(values) == len(names) else UNKNOWN
    items = reader.expression(value)
    return Attribute(items, str(at)) if is_known(items) else UNKNOWN


def _looped(value: Node, at: int, count: int, reader: Reader) -> Expression:
    """Return the part of each element that a loop unpacks into the name at a position."""
    if text_of(value).startswith("zip("):
        zipped = parts_of(value.child_by_field_name("arguments"))
        return _each(reader.expression(zipped[at])) if at < len(zipped) else UNKNOWN
    each, is_last = _each(reader.expression(value)), at == count - 1
    if each is UNKNOWN:
        return UNKNOWN
    if any(mark in text_of(value) for mark in _PAIRING):  # the element is the second of its pair
        return each if is_last else UNKNOWN
    part = Attribute(each, str(at))
    return Union((part, each)) if is_last else part


def _each(items: Expression) -> Expression:
    return Element(items) if is_known(items) else UNKNOWN


def repeated_type(name: Node) -> Expression:
    """Return an instance of the type of the preceding constant, which a constant without value repeats."""
    before = name.parent.prev_named_sibling if name.parent is not None else None
    while before is not None and before.child_by_field_name("value") is None:
        before = before.prev_named_sibling
    return instance_of(before.child_by_field_name("type")) if before is not None else UNKNOWN


class AccessStep(NamedTuple):
    """A step from a value to a part of it: a member, or, without a name, an element."""

    name: str = ""
    is_last: bool = False  # the last item of a tuple
    cls: TypeRef | None = None  # the class of the value, from the pattern


HELD = AccessStep()


def with_steps(value: Expression, steps: Sequence[AccessStep]) -> Expression:
    """Apply steps to a value; a pattern's class serves as the type if the value is unknown.

    The last item of a pair may also be the value itself, since elements of a map are its values.
    """
    for step in reversed(steps):
        part = Attribute(value, step.name) if step.name else Element(value)
        found: list[Expression] = [] if isinstance(head(value), Unknown) else [part]
        if step.is_last and isinstance(value, Element | Union):
            found.append(value)
        value = either([*found, Attribute(Instance(step.cls), step.name)] if step.cls else found)
    return value


def position(node: Node, nodes: Sequence[Node]) -> int:
    """Return the position of a node in a list; 0 if it is not in the list."""
    return next((at for at, other in enumerate(nodes) if other.id == node.id), 0)
