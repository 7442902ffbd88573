"""Statements of C and C++ declarations: variables, functions and initializers of structs."""

import re
from collections.abc import Iterator

from docindex_dagster.callgraph.extract.callees import written_in
from docindex_dagster.callgraph.extract.expressions import Node, Reader, parts_of, text_of
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.extract.variables import bound
from docindex_dagster.callgraph.ir import (
    FILE,
    ROOT,
    UNKNOWN,
    Assignment,
    Attribute,
    CallSite,
    Collection,
    Expression,
    Forward,
    Instance,
    Literal,
    Name,
    Parameter,
    Record,
    Statement,
    TypeRef,
    Unknown,
    head,
    path,
    path_of,
)

Found = Iterator[tuple[Node, Statement]]

_WRAPPERS = frozenset(
    {"pointer_declarator", "array_declarator", "init_declarator", "reference_declarator", "attributed_declarator"}
)
_FUNCTIONS = frozenset({"function_declarator", "abstract_function_declarator"})
_FUNCTIONS_OR_LAMBDAS = _FUNCTIONS | {"lambda_declarator"}
_NO_CLASS = frozenset({"primitive_type", "placeholder_type_specifier", "sized_type_specifier", "enum_specifier"})
_TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
_MOST_ELEMENTS = 12  # of a collection
_MOST_FIELDS = 200  # elements read from a table


def declared(declaration: Node, reader: Reader) -> Found:
    """Yield the statements for each declarator of a declaration."""
    kind = declaration.child_by_field_name("type")
    for declarator in declaration.children_by_field_name("declarator"):
        function = function_declarator(declarator)
        if function is not None and _is_construction(declaration, function):
            yield from _construction(declaration, function, kind, reader)
        elif function is not None:
            yield from _prototype(declaration, function, reader)
        else:
            yield from _variable(declaration, kind, declarator, reader)


def function_declarator(node: Node | None) -> Node | None:
    """Return the declarator of a function; None for a pointer to a function."""
    *_, node = _inwards(node)
    if node is None or node.type not in _FUNCTIONS_OR_LAMBDAS:
        return None
    inner = node.child_by_field_name("declarator")
    return None if inner is not None and inner.type == "parenthesized_declarator" else node


def _inwards(node: Node | None) -> Iterator[Node | None]:
    """Yield a declarator and its inner declarators, down to one that is not a pointer, array or similar."""
    yield node
    while node is not None and node.type in _WRAPPERS:
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
        yield node


def _is_construction(declaration: Node, function: Node) -> bool:
    """Return whether a local function declaration actually constructs an object from variables."""
    kind = declaration.child_by_field_name("type")
    listed = parts_of(function.child_by_field_name("parameters"))
    return (
        declaration.parent is not None
        and declaration.parent.type == "compound_statement"
        and kind is not None
        and kind.type in {"type_identifier", "qualified_identifier", "template_type"}
        and bool(listed)
        and all(child.type == "parameter_declaration" and child.child_count == 1 for child in listed)
        and all(child.named_children and child.named_children[0].type == "type_identifier" for child in listed)
    )


def _construction(declaration: Node, function: Node, kind: Node | None, reader: Reader) -> Found:
    name = text_of(function.child_by_field_name("declarator"))
    listed = function.child_by_field_name("parameters")
    if kind is None or listed is None or not name.isidentifier() or not (declared := _type_of(kind)):
        return
    yield declaration, bound(Name(name), Instance(declared))
    yield listed, _new(declared, listed, reader)


def _prototype(declaration: Node, function: Node, reader: Reader) -> Found:
    yield declaration, Forward(FILE, qualified_name(function.child_by_field_name("declarator")))
    parent = declaration.parent
    if parent is not None and parent.type == "template_declaration":
        parent = parent.parent
    if parent is not None and parent.type == "field_declaration_list":
        yield from parameters(function, reader)


def signature(node: Node, reader: Reader) -> Found:
    """Yield the parameters of a function with a body."""
    function = function_declarator(node)
    if function is not None:
        yield from parameters(function, reader)


def parameters(function: Node, reader: Reader) -> Found:
    """Yield the parameters of a function, including unnamed ones."""
    listed = function.child_by_field_name("parameters")
    for node in parts_of(listed):
        if node.type in {"variadic_parameter", "variadic_parameter_declaration"}:
            name = _name_of(node.child_by_field_name("declarator"), reader)
            yield node, Parameter("rest", FILE, name, UNKNOWN, "", 0, 0)
        if node.type not in {"parameter_declaration", "optional_parameter_declaration"}:
            continue
        declarator, kind = node.child_by_field_name("declarator"), node.child_by_field_name("type")
        if declarator is None and text_of(node) == "void":
            continue
        is_pointer = declarator is not None and _points_at_function(declarator)
        declared = None if kind is None or is_pointer else declared_type(text_of(kind))
        if declared is TypeRef("auto"):
            declared = None
        elif declared and _is_array(declarator):
            declared = TypeRef("Array", (declared,))
        value = Instance(declared) if declared else UNKNOWN
        yield node, Parameter("", FILE, _name_of(declarator, reader) or "_", value, "", 0, 0)


def _name_of(declarator: Node | None, reader: Reader) -> str:
    return path_of(reader.expression(declarator))


def template(listed: Node, _: Reader) -> Found:
    """Yield the parameters of a class template."""
    for node in parts_of(listed):
        name = "_"
        if node.type in {"type_parameter_declaration", "optional_type_parameter_declaration"}:
            name = text_of(node.child_by_field_name("name") or next(iter(node.named_children), None))
        yield node, Parameter("", FILE, name, UNKNOWN, "", 0, 0)


def _variable(declaration: Node, kind: Node | None, declarator: Node, reader: Reader) -> Found:
    name = reader.expression(declarator)
    if name is UNKNOWN:
        return
    value = declarator.child_by_field_name("value") or declaration.child_by_field_name("value")
    if declaration.type == "field_declaration":
        value = declaration.child_by_field_name("default_value")
    is_untyped = kind is None or kind.type in _NO_CLASS or _points_at_function(declarator)
    declared = None if kind is None or is_untyped else _type_of(kind)
    if declared:
        is_array = _is_array(declarator)
        yield declarator, bound(name, Instance(TypeRef("Array", (declared,)) if is_array else declared))
    if value is not None:
        yield from _initialized(declarator, name, declared, value, reader)
    if not declared and (declaration.type == "field_declaration" or _points_at_function(declarator)):
        yield declarator, bound(name, UNKNOWN)


def _type_of(kind: Node) -> TypeRef | None:
    named = kind.child_by_field_name("name") if kind.type.endswith("_specifier") else kind
    return declared_type(text_of(named))


def _initialized(declarator: Node, name: Expression, declared: TypeRef | None, value: Node, reader: Reader) -> Found:
    if value.type in {"argument_list", "initializer_list"} and declared:
        if value.parent is not None and not any(child.type == "=" for child in value.parent.children):
            yield value, _new(declared, value, reader)
        if value.type == "initializer_list":
            is_array = _is_array(declarator)
            yield from _filled(value, declared, reader, is_array=is_array)
            if is_array or declared.name.startswith("std."):
                yield from _elements(declarator, name, value, reader, is_map=declared.name.endswith("map"))
            return
    if value.type == "initializer_list" and (field := _function_field(declarator)) is not None:
        yield from _rows(declarator, name, value, field, reader)
        return
    known = reader.expression(value)
    if known is not UNKNOWN and known is not Collection(()) and not isinstance(head(known), Literal):
        yield declarator, bound(name, known)


def _new(declared: TypeRef, arguments: Node, reader: Reader) -> CallSite:
    """Return the constructor call of a declaration."""
    return CallSite("new", FILE, path(declared.name), written_in(arguments, reader), 0, 0)


def _filled(values: Node, kind: TypeRef, reader: Reader, *, is_array: bool) -> Found:
    """Yield the initial values of the fields of a struct, or of the structs in an array."""
    at = 0
    for child in values.named_children[:_MOST_FIELDS]:
        if child.is_extra:
            continue
        value = _value_of(child)
        if is_array:
            if value is not None and value.type == "initializer_list":
                yield from _filled(value, kind, reader, is_array=False)
            continue
        designator = child.child_by_field_name("designator") if _is_pair(child) else None
        field = _field_name(designator) if designator is not None else f"#{at}"
        at += 1
        known = reader.expression(value)
        if _may_run(known):
            target = Attribute(Instance(TypeRef(kind.name)), field)
            yield child, Assignment("initial", FILE, target, known, 0, 0)


def _elements(declarator: Node, name: Expression, values: Node, reader: Reader, *, is_map: bool) -> Found:
    """Yield the elements that a collection is initialized with."""
    for child in values.named_children[:_MOST_ELEMENTS]:
        value = _value_of(child)
        if is_map and value is not None and value.type == "initializer_list" and value.named_children:
            value = value.named_children[-1]
        known = reader.expression(value)
        if not isinstance(head(known), Unknown | Literal) and known is not Collection(()):
            yield declarator, bound(name, Collection((known,)))


def _function_field(declarator: Node) -> tuple[int, str] | None:
    """Return the position and name of the only function pointer in an anonymous struct."""
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


def _may_be_function(field: Node) -> bool:
    kind = field.child_by_field_name("type")
    return _points_at_function(field.child_by_field_name("declarator")) or (
        kind is not None and kind.type == "type_identifier"
    )


def _rows(declarator: Node, name: Expression, values: Node, field: tuple[int, str], reader: Reader) -> Found:
    """Yield the functions in a table whose rows have an anonymous type; a row is treated as its function."""
    for row in values.named_children[:_MOST_FIELDS]:
        if row.type != "initializer_list":
            continue
        cells = parts_of(row)
        pairs = {_field_name(one.child_by_field_name("designator")): one for one in cells if _is_pair(one)}
        cell = pairs.get(field[1]) or (cells[field[0]] if field[0] < len(cells) and not pairs else None)
        known = reader.expression(_value_of(cell))
        if _may_run(known):
            yield declarator, bound(name, Collection((known,)))


def _field_name(designator: Node | None) -> str:
    return qualified_name(designator).lstrip(f"{ROOT}.")


def qualified_name(node: Node | None) -> str:
    """Return a dotted name with its scopes, without template arguments."""
    text = text_of(node)
    shorter = _TEMPLATE_ARGUMENTS.sub("", text)
    while shorter != text:
        text, shorter = shorter, _TEMPLATE_ARGUMENTS.sub("", shorter)
    text = "".join(text.split()).replace("::", ".")
    if ".*" in text:  # a pointer to a member
        return text.rpartition("*")[2]
    return f"{ROOT}{text}" if text.startswith(".") else text


def _is_pair(node: Node) -> bool:
    return node.type == "initializer_pair"


def _value_of(child: Node | None) -> Node | None:
    """Return the value of an initializer, with or without a field name."""
    return child.child_by_field_name("value") if child is not None and _is_pair(child) else child


def _may_run(known: Expression) -> bool:
    """Return whether a value may be a function or an object."""
    return not isinstance(head(known), Unknown | Literal | Collection | Record)


def _is_array(node: Node | None) -> bool:
    return any(one is not None and one.type == "array_declarator" for one in _inwards(node))


def _points_at_function(node: Node | None) -> bool:
    *_, last = _inwards(node)
    return last is not None and last.type in _FUNCTIONS
