"""Statements of the intermediate representation, each made of what a query has captured in one place.

A statement gets its scope, line and byte in `scopes.py`. The queries of `languages/` have these captures:

- `@call` with `@arguments`: what is called; with `@call.item` that may be an item of it. `@read`: what may be called
  by its name alone. `@new`: the type of which an object is made. `@macro`: a macro that is used.
- `@import.module` with `@import.name` and `@import.alias`, or `@import.all`: what is imported, of which module, under
  which name; with `@import.default` what it gives without a name, with `@import.beside` the module is searched beside
  the file, and with `@import.unnamed` the module has no name here. `@import.path` is module and name as one path.
  `@reexport.…` likewise, where it is exported in the same breath. `@use`: a name of a tree of imports.
  `@import.hidden`: a name that is none of all.
- `@export` with `@export.value`: a name under which others find something; `@export.default` has none.
- `@bind` with `@bind.value` (an expression), `@bind.items` (a collection of which it is one) or `@bind.type`: a
  variable, attribute or field; with `@bind.tested` what it is asked whether it is.
  With `@bind.member` it is an attribute of the object; `@bind.attribute` is a name for one.
  `@bind.given` is a function without a name, or its parameters, of which it is what that is given; with `@bind.other`
  it is not known what. `@bind.block`: what a block is given.
  With `@bind.within` it is seen in this node only. With `@bind.sent` or `@bind.filled` it is put into a collection.
  With `@bind.again` it has the type of what is declared before it, with `@bind.self` it is an object of the class
  around it; `@bind.of` stands before the name, and `@bind.place` is a field that has a number for a name.
  Of a list of results `@bind.parts` is the statement that assigns them, of a tuple `@bind.unpacked` what takes
  it apart; of a pattern `@bind.pattern` is its name. `@bind.from` with `@bind.key`: that of which it is a member, under
  another name where the key says so. `@bind.doc` is a comment that names its type.
- `@parameter` with `@parameter.type` and `@parameter.value`, in their order; with `@parameter.rest` all that follow,
  with `@parameter.block` a block, with `@parameter.label` the name by which it is given.
- `@receiver`: the type to which a function is added as a member. `@generic` with `@generic.type`: a type parameter
  and what it is bound by.
- `@fill` with `@arguments`: an object of this type is written with what its fields are.
- `@return`: what a function returns. `@doc`: a comment that names types.
- `@base`, `@base.implements`, and `@base.mixin`, whose members come before those of other bases: what a class is made
  from; `@base.of`: which class; `@base.within`: a name in what has these as the members of a class without a name.
  `@base.companion`: a class in it whose members are its own, or a type that it is of besides.
- `@hidden`: the function or instance around it is not found by its name. `@property`: the method around it is read as
  an attribute; the class around it has one object, of its name.
- `@initial`: what is not a property's own but belongs to what is around it. `@outer`: what runs where the function
  around it is defined. `@decorator`: what is applied to the definition below it.
- `@ignored`: where nothing is found.
- `@again`: what the grammar leaves unread, to be read as code.
- `@namespace`: the package or namespace of the file.
- `@assigned` with `@assigned.value`: an assignment to what is declared elsewhere. `@template` and `@instance`: the
  parameters of a class, and the arguments that these are given somewhere. `@declared` and `@signature`: declarations
  and heads of functions of C and C++; see `declarations.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal as OneOf
from typing import NamedTuple, get_args

from docindex_dagster.callgraph.extract import declarations
from docindex_dagster.callgraph.extract.callees import MOST_FIELDS, arguments_of, called_method, written_in
from docindex_dagster.callgraph.extract.expression_rules import member
from docindex_dagster.callgraph.extract.expressions import Captured, Node, Reader, captured, text_of
from docindex_dagster.callgraph.extract.library import instance_of
from docindex_dagster.callgraph.extract.types import declared_name, declared_type, types_in
from docindex_dagster.callgraph.extract.variables import binding, bound, generic, parameter
from docindex_dagster.callgraph.ir import (
    FILE,
    UNKNOWN,
    Assignment,
    Base,
    Call,
    CallSite,
    Collection,
    Decorator,
    Element,
    Export,
    Expression,
    Fill,
    Import,
    Instance,
    Literal,
    Name,
    NameOrCall,
    Receiver,
    Return,
    Statement,
    TypeRef,
    head,
    path,
    path_of,
)

_Marks = OneOf["property", "hidden", "initial", "outer", "namespace"]
_Bases = OneOf["base", "implements", "mixin", "companion"]


class Mark(NamedTuple):
    """What a place says of the definition around it, or of the file."""

    kind: _Marks
    name: str = ""


Found = Statement | Mark | None

MARKS = {kind: Mark(kind) for kind in get_args(_Marks) if kind != "namespace"}
"""Captures that say one word of the definition around them."""
BASES: "Mapping[str, _Bases]" = {
    "base": "base",
    "base.implements": "implements",
    "base.mixin": "mixin",
    "base.companion": "companion",
}
"""What a class is made from, by captures."""
_QUOTES = frozenset("\"'`")
_LONGEST_MODULE = 300  # characters
# Calls that are captured whole, since what is called is no node of its own.
_WHOLE_CALLS = frozenset(
    {
        "function_call_expression",
        "member_call_expression",
        "nullsafe_member_call_expression",
        "scoped_call_expression",
    }
)


def _call(parts: Captured, reader: Reader) -> Found:
    node = parts["call"][0]
    called = _callee(node, reader)
    if called is UNKNOWN:
        return None
    given = arguments_of(node, captured(parts, "arguments"), reader)
    return CallSite("call", FILE, Element(called) if "call.item" in parts else called, given, 0, 0)


def _read(parts: Captured, reader: Reader) -> Found:
    called = reader.expression(parts["read"][0])
    if called is UNKNOWN:
        return None
    return CallSite("read", FILE, NameOrCall(called.text) if isinstance(called, Name) else called, (), 0, 0)


def _callee(node: Node, reader: Reader) -> Expression:
    kind, syntax = node.type, reader.syntax
    if kind in syntax.methods:
        return called_method(node, reader) if syntax.named else member(*syntax.methods[kind], node, reader, 0)
    called = reader.expression(node)
    if kind not in _WHOLE_CALLS:
        return called
    return called.callee if isinstance(called, Call) else UNKNOWN


def _new(parts: Captured, reader: Reader) -> Found:
    node = parts["new"][0]
    made = reader.expression(node)
    if isinstance(made, Instance):
        made = Instance(TypeRef(made.type.name))
    elif made is UNKNOWN and (name := declared_name(text_of(node))):
        made = path(name)
    elif "<" in (name := path_of(made)):
        made = path(name.partition("<")[0])
    if made is UNKNOWN:
        return None
    return CallSite("new", FILE, made, written_in(captured(parts, "arguments"), reader), 0, 0)


def _macro(parts: Captured, _: Reader) -> Found:
    return CallSite("macro", FILE, path(text_of(parts["macro"][0]).replace("::", ".")), (), 0, 0)


def _import(capture: str, parts: Captured, _: Reader) -> Import | None:
    module = _module(parts.get(f"{capture}.module"))
    module = f"./{module}" if f"{capture}.beside" in parts else module
    if len(module) > _LONGEST_MODULE:
        return None
    member = "default" if f"{capture}.default" in parts else _module(parts.get(f"{capture}.name"))
    if f"{capture}.all" not in parts:
        unnamed = text_of(captured(parts, f"{capture}.unnamed"))  # in quotes, as no name is
        name = unnamed or _module(parts.get(f"{capture}.alias")) or member
        named: OneOf["name", "left out"] = "left out" if f"{capture}.hidden" in parts else "name"
        return Import(named, FILE, name, module, member, capture == "reexport", 0, 0)
    kind: OneOf["all", "directive"] = "directive" if member == "namespace" else "all"
    return Import(kind, FILE, "", module, member if kind == "all" else "", capture == "reexport", 0, 0)


def _import_path(parts: Captured, _: Reader) -> Found:
    written = _module(parts["import.path"]).replace("::", ".").replace("\\", ".").strip(".")
    module, _dot, name = written.rpartition(".")
    return _import_of(_module(parts.get("import.alias")) or name, module, name)


def _use(parts: Captured, _: Reader) -> Found:
    """One name of a tree of imports, after the paths around it."""
    node = parts["use"][0]
    before, around = "", node.parent
    while around is not None and around.type in {"use_list", "scoped_use_list"}:
        outer = text_of(around.child_by_field_name("path"))
        before = f"{outer}::{before}" if outer else before
        around = around.parent
    alias = text_of(node.child_by_field_name("alias"))
    written = text_of(node.child_by_field_name("path") if alias else node)
    *modules, name = [part.strip() for part in f"{before}{written}".strip(":").split("::")]
    if name == "self" and modules:
        *modules, name = modules
    return _import_of(name if name == "*" else alias or name, ".".join(modules), name)


def _import_of(name: str, module: str, member: str) -> Import:
    if name == "*":
        return Import("all", FILE, "", module, "", is_passed_on=False, line=0, byte=0)
    return Import("name", FILE, name, module, member, is_passed_on=False, line=0, byte=0)


def _module(nodes: list[Node] | None) -> str:
    text = "".join(text_of(node) for node in nodes).strip(": \n") if nodes else ""
    is_quoted = text[:1] in _QUOTES or (text[:1] == "<" and any(map(str.isalnum, text)))  # and is no operator
    return text.strip("\"'`<> ") if is_quoted else text


def _export(parts: Captured, reader: Reader) -> Found:
    value, name = captured(parts, "export.value"), _module(parts.get("export")) or "default"
    written = path(name) if value is None else reader.expression(value)
    return None if written is UNKNOWN else Export(name, written)


def _fill(parts: Captured, reader: Reader) -> Found:
    filled = declared_name(text_of(parts["fill"][0]))
    given = written_in(captured(parts, "arguments"), reader, MOST_FIELDS)
    is_known = any(one.name or one.value is not UNKNOWN for one in given)
    return Fill(FILE, filled, given) if filled and is_known else None


def _return(parts: Captured, reader: Reader) -> Found:
    value = reader.expression(parts["return"][0])
    return None if isinstance(head(value), Literal) or value is UNKNOWN else Return(FILE, value)


def _mark(capture: str, *_: object) -> Mark | None:
    return MARKS.get(capture)


def _base(capture: str, parts: Captured, reader: Reader) -> Base | None:
    if capture not in BASES:
        return None
    node = parts[capture][0]
    of = declared_name(text_of(captured(parts, "base.of")))
    if node.type in reader.syntax.calls:
        written = reader.expression(node)
        written = Instance(TypeRef(name)) if (name := path_of(written)) else written
    elif (written := instance_of(node)) is UNKNOWN:
        return None
    return Base(BASES[capture], FILE, of.removesuffix(".prototype"), written, 0, 0)


def _receiver(parts: Captured, _: Reader) -> Found:
    declared = declared_type(text_of(parts["receiver"][0]))
    return Receiver(FILE, declared) if declared else None


def _decorator(parts: Captured, reader: Reader) -> Found:
    value = reader.expression(parts["decorator"][0])
    return None if value is UNKNOWN else Decorator(FILE, "", value, 0, 0)


def _namespace(parts: Captured, _: Reader) -> Found:
    return Mark("namespace", text_of(parts["namespace"][0]).replace("\\", "."))


def _assigned(parts: Captured, reader: Reader) -> Found:
    """What is put into a variable that is declared elsewhere, or into a field."""
    target, value = reader.expression(parts["assigned"][0]), reader.expression(parts["assigned.value"][0])
    if not isinstance(head(target), Name) or value is UNKNOWN or isinstance(head(value), Literal):
        return None
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return Assignment("store", FILE, target, value, 0, 0)


def _documented(node: Node, _: Reader) -> Iterator[tuple[Node, Statement]]:
    """The types of parameters and of what is returned that a comment names."""
    for name, declared in types_in(text_of(node)):
        value = Instance(declared)
        yield node, bound(Name(name), value) if name else Return(FILE, value)


def _instance(node: Node, reader: Reader) -> Iterator[tuple[Node, Statement]]:
    """With which arguments a template is used."""
    name, declared = reader.expression(node), declared_type(text_of(node))
    if declared is not None:
        yield node, Assignment("instance", FILE, name, Instance(declared), 0, 0)


MANY: Mapping[str, Callable[[Node, Reader], Iterator[tuple[Node, Statement]]]] = {
    "template": declarations.template,
    "instance": _instance,
    "declared": declarations.declared,
    "signature": declarations.signature,
    "doc": _documented,
}
"""What makes several statements of one place."""

ONE: Mapping[str, Callable[[Captured, Reader], Found]] = {
    "call": _call,
    "read": _read,
    "new": _new,
    "macro": _macro,
    "import.module": partial(_import, "import"),
    "import.path": _import_path,
    "reexport.module": partial(_import, "reexport"),
    "use": _use,
    "export.value": _export,
    "export": _export,
    "assigned": _assigned,
    "bind": binding,
    "parameter": parameter,
    "fill": _fill,
    "return": _return,
    "receiver": _receiver,
    "generic": generic,
    "decorator": _decorator,
    "namespace": _namespace,
    **{capture: partial(_base, capture) for capture in BASES},
    **{capture: partial(_mark, capture) for capture in MARKS},
}
"""What makes one statement of a place."""
