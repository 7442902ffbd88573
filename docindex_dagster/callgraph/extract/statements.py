"""Statements of the intermediate representation, each built from the captures of a query match.

`scopes.py` adds scope, line and byte to each statement. The queries in `languages/` use these captures:

- Calls:
  - `@call` with `@arguments`: the callee; with `@call.item`, an element of it may be called.
  - `@read`: a bare name that may be a call. `@new`: an instantiated type. `@macro`: a macro invocation.
- Imports and exports:
  - `@import.module` with `@import.name` and `@import.alias`, or with `@import.all`: an import from a module.
  - `@import.default`: imports the default export. `@import.beside`: the module path is relative to the file.
    `@import.unnamed`: the module has no name in this file.
  - `@import.path`: module and name as a single path. `@import.hidden`: a name excluded from a wildcard import.
  - `@reexport.…`: the same for re-exports. `@use`: a name in a tree of imports.
  - `@export` with `@export.value`: an exported name; `@export.default` has no name.
- Variables, attributes and fields:
  - `@bind` with `@bind.value` (an expression), `@bind.items` (a collection that contains it) or `@bind.type`.
  - `@bind.tested`: the statement tests the target for a type.
  - `@bind.member`: the target is an attribute of the object. `@bind.attribute`: it is a name for an attribute.
  - `@bind.given`: an anonymous function or its parameters; the target is its argument. With `@bind.other`, the argument
    is unknown. `@bind.block`: the target is the argument of a block.
  - `@bind.within`: the node in which the target is visible.
  - `@bind.sent`, `@bind.filled`: the value is added to the target, a collection.
  - `@bind.again`: the target has the type of the preceding declaration. `@bind.self`: it is an instance of the
    enclosing class.
  - `@bind.of`: a prefix of the name. `@bind.place`: a field with a number as its name.
  - `@bind.parts`: the statement that assigns several results. `@bind.unpacked`: the statement that unpacks a tuple.
    `@bind.pattern`: a name in a pattern.
  - `@bind.from` with `@bind.key`: the object that the target is a member of; the key is its name there if it differs.
  - `@bind.doc`: a comment with the type.
- Parameters:
  - `@parameter` with `@parameter.type` and `@parameter.value`, in order. `@parameter.rest`: a variadic parameter.
    `@parameter.block`: a block. `@parameter.label`: the argument label.
  - `@receiver`: the type that a function extends. `@generic` with `@generic.type`: a type parameter and its bound.
- `@fill` with `@arguments`: an initializer of an object of this type, with its field values.
- `@return`: a returned value. `@doc`: a comment that contains types.
- Base classes:
  - `@base`, `@base.implements`, and `@base.mixin`, whose members take precedence over other bases.
  - `@base.of`: the derived class. `@base.within`: a name in an anonymous class, whose members have these bases.
  - `@base.companion`: a nested class whose members belong to the class, or an additional type of an object.
- `@hidden`: the enclosing function or instance cannot be found by name. `@property`: the enclosing method is read as an
  attribute, or the enclosing class has a single object with its name.
- `@initial`: code in a property that belongs to the enclosing scope. `@outer`: code that runs where the enclosing
  function is defined. `@decorator`: a decorator of the definition below it.
- `@ignored`: nodes without statements. `@again`: code that the grammar does not parse, to be parsed separately.
- `@namespace`: the package or namespace of the file.
- C and C++, see `declarations.py`:
  - `@assigned` with `@assigned.value`: an assignment to a name declared elsewhere.
  - `@template` and `@instance`: the parameters of a class template, and the arguments of an instantiation.
  - `@declared` and `@signature`: declarations and function heads.
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
    """A property of the enclosing definition or of the file."""

    kind: _Marks
    name: str = ""


Found = Statement | Mark | None

MARKS = {kind: Mark(kind) for kind in get_args(_Marks) if kind != "namespace"}
"""The marks of the enclosing definition, by capture."""
BASES: "Mapping[str, _Bases]" = {
    "base": "base",
    "base.implements": "implements",
    "base.mixin": "mixin",
    "base.companion": "companion",
}
"""The kinds of base classes, by capture."""
_QUOTES = frozenset("\"'`")
_LONGEST_MODULE = 300  # characters
# Calls captured as a whole node, since the callee has no node of its own.
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
    arguments = arguments_of(node, captured(parts, "arguments"), reader)
    return CallSite("call", FILE, Element(called) if "call.item" in parts else called, arguments, 0, 0)


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
    cls = reader.expression(node)
    if isinstance(cls, Instance):
        cls = Instance(TypeRef(cls.type.name))
    elif cls is UNKNOWN and (name := declared_name(text_of(node))):
        cls = path(name)
    elif "<" in (name := path_of(cls)):
        cls = path(name.partition("<")[0])
    if cls is UNKNOWN:
        return None
    return CallSite("new", FILE, cls, written_in(captured(parts, "arguments"), reader), 0, 0)


def _macro(parts: Captured, _: Reader) -> Found:
    return CallSite("macro", FILE, path(text_of(parts["macro"][0]).replace("::", ".")), (), 0, 0)


def _import(capture: str, parts: Captured, _: Reader) -> Import | None:
    module = _module(parts.get(f"{capture}.module"))
    module = f"./{module}" if f"{capture}.beside" in parts else module
    if len(module) > _LONGEST_MODULE:
        return None
    member = "default" if f"{capture}.default" in parts else _module(parts.get(f"{capture}.name"))
    if f"{capture}.all" not in parts:
        unnamed = text_of(captured(parts, f"{capture}.unnamed"))  # quoted, so it cannot equal a name
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
    """Return the import of a name in a `use` tree, prefixed with the enclosing paths."""
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
    is_quoted = text[:1] in _QUOTES or (text[:1] == "<" and any(map(str.isalnum, text)))  # not an operator
    return text.strip("\"'`<> ") if is_quoted else text


def _export(parts: Captured, reader: Reader) -> Found:
    value, name = captured(parts, "export.value"), _module(parts.get("export")) or "default"
    written = path(name) if value is None else reader.expression(value)
    return None if written is UNKNOWN else Export(name, written)


def _fill(parts: Captured, reader: Reader) -> Found:
    filled = declared_name(text_of(parts["fill"][0]))
    arguments = written_in(captured(parts, "arguments"), reader, MOST_FIELDS)
    is_known = any(one.name or one.value is not UNKNOWN for one in arguments)
    return Fill(FILE, filled, arguments) if filled and is_known else None


def _return(parts: Captured, reader: Reader) -> Found:
    value = reader.expression(parts["return"][0])
    return None if isinstance(head(value), Literal) or value is UNKNOWN else Return(FILE, value)


def _mark(capture: str, *_: object) -> Mark | None:
    return MARKS.get(capture)


def _base(capture: str, parts: Captured, reader: Reader) -> Base | None:
    if capture not in BASES:
        return None
    node = parts[capture][0]
    derived = declared_name(text_of(captured(parts, "base.of")))
    if node.type in reader.syntax.calls:
        written = reader.expression(node)
        written = Instance(TypeRef(name)) if (name := path_of(written)) else written
    elif (written := instance_of(node)) is UNKNOWN:
        return None
    return Base(BASES[capture], FILE, derived.removesuffix(".prototype"), written, 0, 0)


def _receiver(parts: Captured, _: Reader) -> Found:
    declared = declared_type(text_of(parts["receiver"][0]))
    return Receiver(FILE, declared) if declared else None


def _decorator(parts: Captured, reader: Reader) -> Found:
    value = reader.expression(parts["decorator"][0])
    return None if value is UNKNOWN else Decorator(FILE, "", value, 0, 0)


def _namespace(parts: Captured, _: Reader) -> Found:
    return Mark("namespace", text_of(parts["namespace"][0]).replace("\\", "."))


def _assigned(parts: Captured, reader: Reader) -> Found:
    """Return an assignment to a field or to a variable declared elsewhere."""
    target, value = reader.expression(parts["assigned"][0]), reader.expression(parts["assigned.value"][0])
    if not isinstance(head(target), Name) or value is UNKNOWN or isinstance(head(value), Literal):
        return None
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return Assignment("store", FILE, target, value, 0, 0)


def _documented(node: Node, _: Reader) -> Iterator[tuple[Node, Statement]]:
    """Yield the types of parameters and return values documented in a comment."""
    for name, declared in types_in(text_of(node)):
        value = Instance(declared)
        yield node, bound(Name(name), value) if name else Return(FILE, value)


def _instance(node: Node, reader: Reader) -> Iterator[tuple[Node, Statement]]:
    """Yield the template arguments of an instantiation."""
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
"""Functions that build several statements from a match, by capture."""

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
"""Functions that build a single statement from a match, by capture."""
