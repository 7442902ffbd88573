"""What declarations of C and C++ say: one may declare variables and functions, and fill the fields of a struct."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import UNKNOWN, Shapes, expression, text_of
from docindex_dagster.code.shapes_c import path_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

    Found = Iterator[tuple[Node, str, str, str]]

_WRAPPERS = frozenset(
    {"pointer_declarator", "array_declarator", "init_declarator", "reference_declarator", "attributed_declarator"}
)
_NO_CLASS = frozenset({"primitive_type", "placeholder_type_specifier", "sized_type_specifier", "enum_specifier"})
_MOST_HELD = 12  # elements of a collection
_MOST_FIELDS = 200  # elements of a table that are looked at


def declared(declaration: "Node", shapes: Shapes) -> "Found":
    """What each declarator of a declaration says."""
    kind = declaration.child_by_field_name("type")
    for declarator in declaration.children_by_field_name("declarator"):
        function = function_declarator(declarator)
        if function is not None and _is_made(declaration, function):
            yield from _made(declaration, function, kind, shapes)
        elif function is not None:
            yield from _prototype(declaration, function, shapes)
        else:
            yield from _variable(declaration, kind, declarator, shapes)


def function_declarator(node: "Node | None") -> "Node | None":
    """The declarator of a function, as opposed to a pointer to one."""
    while node is not None and node.type in _WRAPPERS:
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    if node is None or node.type not in {"function_declarator", "lambda_declarator", "abstract_function_declarator"}:
        return None
    inner = node.child_by_field_name("declarator")
    return None if inner is not None and inner.type == "parenthesized_declarator" else node


def _is_made(declaration: "Node", function: "Node") -> bool:
    """Whether what looks like a function, declared in another one, is an object that is made of variables."""
    listed, kind = function.child_by_field_name("parameters"), declaration.child_by_field_name("type")
    given = [child for child in listed.named_children if not child.is_extra] if listed is not None else []
    return (
        declaration.parent is not None
        and declaration.parent.type == "compound_statement"
        and kind is not None
        and kind.type in {"type_identifier", "qualified_identifier", "template_type"}
        and bool(given)
        and all(child.type == "parameter_declaration" and child.child_count == 1 for child in given)
        and all(child.named_children and child.named_children[0].type == "type_identifier" for child in given)
    )


def _made(declaration: "Node", function: "Node", kind: "Node | None", shapes: Shapes) -> "Found":
    name = text_of(function.child_by_field_name("declarator"))
    listed = function.child_by_field_name("parameters")
    if kind is None or listed is None or not name.isidentifier() or not (written := _type_of(kind)):
        return
    yield declaration, "bind", name, f":{written}"
    yield listed, "new", written.partition("<")[0], given(listed, shapes)


def _prototype(declaration: "Node", function: "Node", shapes: Shapes) -> "Found":
    yield declaration, "forward", path_of(function.child_by_field_name("declarator")), ""
    parent = declaration.parent
    if parent is not None and parent.type == "template_declaration":
        parent = parent.parent
    if parent is not None and parent.type == "field_declaration_list":
        yield from parameters(function, shapes)


def parameters(function: "Node", shapes: Shapes) -> "Found":
    """The parameters of a function, those without a name, too."""
    listed = function.child_by_field_name("parameters")
    for node in listed.named_children if listed is not None else ():
        if node.type in {"variadic_parameter", "variadic_parameter_declaration"}:
            yield node, "parameter", f"*{expression(node.child_by_field_name('declarator'), shapes)}", UNKNOWN
        if node.type not in {"parameter_declaration", "optional_parameter_declaration"}:
            continue
        declarator, kind = node.child_by_field_name("declarator"), node.child_by_field_name("type")
        if declarator is None and text_of(node) == "void":
            continue
        is_pointer = declarator is not None and _points_at_function(declarator)
        written = "" if kind is None or is_pointer else canonical_type(text_of(kind))
        if written == "auto":
            written = ""
        elif written and _is_array(declarator):
            written = f"Array<{written}>"
        name = expression(declarator, shapes)
        yield node, "parameter", "_" if name == UNKNOWN else name, f":{written}" if written else UNKNOWN


def template(listed: "Node", _: Shapes) -> "Found":
    """The types that a class is given."""
    for node in listed.named_children:
        if node.type in {"type_parameter_declaration", "optional_type_parameter_declaration"}:
            name = node.child_by_field_name("name") or next(iter(node.named_children), None)
            yield node, "parameter", text_of(name), UNKNOWN
        elif not node.is_extra:
            yield node, "parameter", "_", UNKNOWN


def _variable(declaration: "Node", kind: "Node | None", declarator: "Node", shapes: Shapes) -> "Found":
    name = expression(declarator, shapes)
    if name == UNKNOWN:
        return
    value = declarator.child_by_field_name("value") or declaration.child_by_field_name("value")
    if declaration.type == "field_declaration":
        value = declaration.child_by_field_name("default_value")
    written = "" if kind is None or kind.type in _NO_CLASS or _points_at_function(declarator) else _type_of(kind)
    if written:
        yield declarator, "bind", name, f":Array<{written}>" if _is_array(declarator) else f":{written}"
    if value is not None:
        yield from _initialised(declarator, name, written, value, shapes)
    if not written and (declaration.type == "field_declaration" or _points_at_function(declarator)):
        yield declarator, "bind", name, UNKNOWN


def _type_of(kind: "Node") -> str:
    named = kind.child_by_field_name("name") if kind.type.endswith("_specifier") else kind
    return canonical_type(text_of(named))


def _initialised(declarator: "Node", name: str, written: str, value: "Node", shapes: Shapes) -> "Found":
    if value.type in {"argument_list", "initializer_list"} and written:
        if value.parent is not None and not any(child.type == "=" for child in value.parent.children):
            yield value, "new", written.partition("<")[0], given(value, shapes)
        if value.type == "initializer_list":
            is_array = _is_array(declarator)
            yield from _filled(value, written, shapes, is_array=is_array)
            if is_array or written.startswith("std."):
                yield from _held(declarator, name, value, shapes, is_map=written.partition("<")[0].endswith("map"))
            return
    if value.type == "initializer_list" and (field := _function_field(declarator)) is not None:
        yield from _rows(declarator, name, value, field, shapes)
        return
    known = expression(value, shapes)
    if known != UNKNOWN and not known.startswith("#") and known != "{}":
        yield declarator, "bind", name, known


def given(arguments: "Node", shapes: Shapes) -> str:
    """The arguments of a constructor."""
    return "\t".join(expression(child, shapes) for child in arguments.named_children[:8] if not child.is_extra)


def _filled(values: "Node", kind: str, shapes: Shapes, *, is_array: bool) -> "Found":
    """What is put into the fields of a struct, or of the structs of an array."""
    at = 0
    for child in values.named_children[:_MOST_FIELDS]:
        if child.is_extra:
            continue
        is_pair = child.type == "initializer_pair"
        value = child.child_by_field_name("value") if is_pair else child
        if is_array:
            if value is not None and value.type == "initializer_list":
                yield from _filled(value, kind, shapes, is_array=False)
            continue
        designator = child.child_by_field_name("designator") if is_pair else None
        field = path_of(designator).lstrip("\\.") if designator is not None else f"#{at}"
        at += 1
        known = expression(value, shapes)
        if known != UNKNOWN and known[0] not in "#{":
            yield child, "bind", f":{kind.partition('<')[0]}.{field}", known


def _held(declarator: "Node", name: str, values: "Node", shapes: Shapes, *, is_map: bool) -> "Found":
    """What a collection is made with."""
    for child in values.named_children[:_MOST_HELD]:
        value = child.child_by_field_name("value") if _is_pair(child) else child
        if is_map and value is not None and value.type == "initializer_list" and value.named_children:
            value = value.named_children[-1]
        known = expression(value, shapes)
        if known[0] not in "?#" and known.strip("{}"):
            yield declarator, "bind", name, f"{{{known}}}"


def _function_field(declarator: "Node") -> tuple[int, str] | None:
    """Where a struct without a name has its one pointer to a function."""
    declaration = declarator.parent
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    body = kind.child_by_field_name("body") if kind is not None and kind.child_by_field_name("name") is None else None
    fields = [child for child in body.named_children if child.type == "field_declaration"] if body is not None else []
    found = [
        (at, field.child_by_field_name("declarator")) for at, field in enumerate(fields) if _may_be_function(field)
    ]
    if len(found) != 1:
        return None
    at, named = found[0]
    while named is not None and named.type != "field_identifier":
        named = named.child_by_field_name("declarator") or next(iter(named.named_children), None)
    return at, text_of(named)


def _may_be_function(field: "Node") -> bool:
    kind = field.child_by_field_name("type")
    return _points_at_function(field.child_by_field_name("declarator")) or (
        kind is not None and kind.type == "type_identifier"
    )


def _rows(declarator: "Node", name: str, values: "Node", field: tuple[int, str], shapes: Shapes) -> "Found":
    """The functions in a table whose rows have no type of their own: the rows are followed as these."""
    for row in values.named_children[:_MOST_FIELDS]:
        if row.type != "initializer_list":
            continue
        cells = [child for child in row.named_children if not child.is_extra]
        pairs = {path_of(one.child_by_field_name("designator")).lstrip("\\."): one for one in cells if _is_pair(one)}
        cell = pairs.get(field[1]) or (cells[field[0]] if field[0] < len(cells) and not pairs else None)
        value = cell.child_by_field_name("value") if cell is not None and _is_pair(cell) else cell
        known = expression(value, shapes)
        if known[0] not in "?#{":
            yield declarator, "bind", name, f"{{{known}}}"


def _is_pair(node: "Node") -> bool:
    return node.type == "initializer_pair"


def _is_array(node: "Node | None") -> bool:
    while node is not None and node.type in _WRAPPERS:
        if node.type == "array_declarator":
            return True
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    return False


def _points_at_function(node: "Node | None") -> bool:
    while node is not None and node.type in _WRAPPERS:
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    return node is not None and node.type in {"function_declarator", "abstract_function_declarator"}
