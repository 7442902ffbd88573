"""The facts that chunks have as text, read into the intermediate representation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Expression, Name, TypeRef
from docindex_dagster.code.expressions import SEPARATOR, unquoted
from docindex_dagster.code.facts import symbol_ids

_POINTERS = frozenset({"link", "ref", "anchor", "label"})  # of documents


class Fact(NamedTuple):
    """A line of the facts of a chunk, and where the chunk begins."""

    kind: str
    scope: str
    name: str
    value: str
    line: int
    byte: int


def file_of(rows: Sequence[Mapping[str, Any]]) -> ir.FileIR:
    """What a file says, from the rows of its chunks in their order."""
    by_kind: dict[str, list[Fact]] = {}
    for fact in _facts(rows):
        by_kind.setdefault(fact.kind, []).append(fact)

    def of(*kinds: str) -> Iterator[Fact]:
        return (fact for kind in kinds for fact in by_kind.get(kind, ()))

    is_c = rows[0]["language"] in {"c", "cpp"}
    return ir.FileIR(
        definitions=tuple(_definitions(rows)),
        calls=tuple(map(_call, of("call", "new", "macro"))),
        imports=tuple(map(_import, of("import", "reexport"))),
        exports=tuple(ir.Export(fact.name, expression(fact.value)) for fact in of("export")),
        assignments=tuple(_assignment(fact, is_c=is_c) for fact in of("bind")),
        parameters=tuple(map(_parameter, of("parameter"))),
        returns=tuple(ir.Return(fact.scope, expression(fact.value)) for fact in of("return")),
        bases=tuple(map(_base, of("base", "implements", "mixin", "companion"))),
        decorators=tuple(
            ir.Decorator(fact.scope, fact.name, expression(fact.value), fact.line, fact.byte)
            for fact in of("decorator")
        ),
        fills=tuple(ir.Fill(fact.scope, fact.name, _arguments(fact.value)) for fact in of("fill")),
        generics=tuple(ir.Generic(fact.scope, fact.name, expression(fact.value)) for fact in of("generic")),
        receivers=tuple(ir.Receiver(fact.scope, type_ref(fact.value)) for fact in of("receiver")),
        forwards=tuple(ir.Forward(fact.scope, fact.name) for fact in of("forward")),
        properties=tuple(fact.scope for fact in of("property")),
        hidden=tuple(fact.scope for fact in of("hidden")),
        namespace=next((fact.name for fact in of("namespace")), ""),
    )


def starts_of(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where each chunk of a file begins: its first byte, or its number where that is not known."""
    return [at if row["start_byte"] is None else row["start_byte"] for at, row in enumerate(rows)]


def _facts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    for row, start in zip(rows, starts_of(rows), strict=True):
        for text in row["facts"].split("\n") if row["facts"] else ():
            line, kind, scope, name, value = text.split("\t")
            if kind not in _POINTERS:
                yield Fact(kind, scope, name, value, int(line), start)


def _definitions(rows: Sequence[Mapping[str, Any]]) -> Iterator[ir.Definition]:
    starts = starts_of(rows)
    symbols = [(symbol, start) for row, start in zip(rows, starts, strict=True) for symbol in row["symbols"] or ()]
    ids = symbol_ids([symbol["qualified_name"] for symbol, _ in symbols])
    for identifier, (symbol, byte) in zip(ids, symbols, strict=True):
        yield ir.Definition(
            id=identifier,
            name=symbol["name"],
            kind=symbol["kind"],
            qualified=symbol["qualified_name"],
            parent=symbol["parent"] or "",
            returns=type_ref(symbol["returns"]) if symbol["returns"] else None,
            is_local=bool(symbol["is_local"]),
            line=symbol["start_line"],
            byte=byte,
        )


def _call(fact: Fact) -> ir.CallSite:
    callee, given = expression(fact.name), _arguments(fact.value)
    return ir.CallSite(fact.kind, fact.scope, callee, given, fact.line, fact.byte)  # type: ignore[arg-type]


def _arguments(value: str) -> tuple[Argument, ...]:
    return tuple(map(_argument, value.split(SEPARATOR))) if value else ()


@lru_cache(maxsize=100_000)
def _argument(text: str) -> Argument:
    name, equals, value = text.partition("=")
    if equals and name.isidentifier():
        return Argument(expression(value), name)
    return Argument(expression(text.removeprefix("&")), "", text.startswith("&"))


def _import(fact: Fact) -> ir.Import:
    module, _, member = fact.value.partition(SEPARATOR)
    is_reexport = fact.kind == "reexport"
    if fact.name != "*":
        return ir.Import("name", fact.scope, fact.name, module, member, is_reexport, fact.line, fact.byte)
    kind = "directive" if member == "namespace" else "all"
    of = "" if kind == "directive" else member
    return ir.Import(kind, fact.scope, "", module, of, is_reexport, fact.line, fact.byte)  # type: ignore[arg-type]


def _assignment(fact: Fact, *, is_c: bool) -> ir.Assignment:
    name, role = fact.name, "bind"
    if name.startswith("is "):
        role, target = "test", _target(name.removeprefix("is "))
    elif name.startswith("<"):
        role, target = "instance", _target(name[1:])
    elif name.startswith(":"):
        written, _, field = name[1:].rpartition(".")
        role, target = "initial", ir.Attribute(ir.Instance(TypeRef(written)), field)
    else:
        role = "store" if name.startswith(".") or (is_c and "." in name) else "bind"
        target = _target(name.removeprefix("."))
    return ir.Assignment(role, fact.scope, target, expression(fact.value), fact.line, fact.byte)  # type: ignore[arg-type]


@lru_cache(maxsize=100_000)
def _target(text: str) -> Expression:
    found = expression(text)
    return Name(text) if isinstance(found, ir.Unknown | ir.Literal) else found


def _parameter(fact: Fact) -> ir.Parameter:
    kind = "rest" if fact.name.startswith("*") else "block" if fact.name.startswith("&") else ""
    value = expression(fact.value)
    return ir.Parameter(kind, fact.scope, fact.name.lstrip("*&"), value, fact.line, fact.byte)  # type: ignore[arg-type]


def _base(fact: Fact) -> ir.Base:
    value = expression(fact.value) if fact.value.endswith(")") else ir.Instance(type_ref(fact.value))
    return ir.Base(fact.kind, fact.scope, fact.name, value, fact.line, fact.byte)  # type: ignore[arg-type]


@lru_cache(maxsize=100_000)
def type_ref(text: str) -> TypeRef:
    """A type from its notation, `Name<Argument,…>`."""
    name, _, inside = text.partition("<")
    return TypeRef(name, tuple(map(type_ref, _split(inside[:-1]))) if inside else ())


def _split(inside: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(inside):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            yield inside[start:at]
            start = at + 1
    yield inside[start:]


@lru_cache(maxsize=100_000)
def expression(text: str) -> Expression:
    """An expression from the notation of `code/expressions.py`; what is not in it is unknown."""
    if text.startswith(":"):
        return ir.Instance(type_ref(text[1:])) if len(text) > 1 else UNKNOWN
    if text.isidentifier():
        return Name(text)
    found, at = _expression(text, 0)
    return found if at == len(text) else UNKNOWN


def _expression(text: str, at: int) -> tuple[Expression, int]:
    found, at = _primary(text, at)
    while at < len(text):
        if text.startswith("@()", at):
            found, at = ir.New(found), at + 3
        elif text.startswith("()", at):
            found, at = ir.Call(found), at + 2
        elif text.startswith("[]", at):
            found, at = ir.Element(found), at + 2
        elif text.startswith("^*", at):
            found, at = ir.CallbackArgument(found, ir.ANY, int(text[at + 2 : at + 3] or 0)), at + 3
        elif text[at] == "^" and text[at + 1 : at + 3].isdigit():
            found, at = ir.CallbackArgument(found, int(text[at + 1]), int(text[at + 2])), at + 3
        elif text[at] == "'" and isinstance(found, Name):
            found, at = ir.NameOrCall(found.text), at + 1
        elif text[at] == ";":
            name, at = _name(text, at + 1)
            found = ir.Implicit(found.parts if isinstance(found, ir.Union) else (found,), name)
        elif text[at] == ".":
            name, at = _name(text, at + 1)
            found = ir.Attribute(found, name)
        else:
            break
    return found, at


def _primary(text: str, at: int) -> tuple[Expression, int]:  # noqa: PLR0911 one a form
    first = text[at : at + 1]
    if first == "(":
        parts, at = _parts(text, at + 1, ")")
        if len(parts) == 1 and isinstance(parts[0][1], ir.Function):
            return parts[0][1], at
        return ir.Union(tuple(part for _, part in parts)), at
    if first == "{":
        parts, at = _parts(text, at + 1, "}")
        if any(name for name, _ in parts):
            return ir.Record(parts), at
        return ir.Collection(tuple(part for _, part in parts)), at
    if first == '"':
        end = text.find('"', at + 1)
        return (ir.Module(text[at + 1 : end]), end + 1) if end > 0 else (UNKNOWN, len(text))
    if first == "&":
        name, at = _name(text, at + 1)
        return ir.Function(name), at
    if first == ":":
        end = _end_of_type(text, at + 1)
        return ir.Instance(type_ref(text[at + 1 : end])), end
    name, end = _name(text, at)
    if name.startswith("#"):
        return ir.Literal(name[1:]), end
    return (Name(name), end) if name and name != "?" else (UNKNOWN, max(end, at + 1))


def _parts(text: str, at: int, close: str) -> tuple[tuple[tuple[str, Expression], ...], int]:
    """The parts up to a bracket, with their names."""
    parts = []
    while at < len(text) and text[at] != close:
        name = _PART_NAME.match(text, at)
        part, at = _expression(text, name.end() if name else at)
        parts.append((name[1] if name else "", part))
        at += text[at : at + 1] in {",", "|"}
    return tuple(parts), at + 1


_NAME_END = re.compile(r"[.(){}|,@\[\]^'=;]")
_PART_NAME = re.compile(r"(#?[^\W\d]\w*[?!]?)=")


def _name(text: str, at: int) -> tuple[str, int]:
    end = _NAME_END.search(text, at)
    stop = end.start() if end else len(text)
    return unquoted(text[at:stop]), stop


def _end_of_type(text: str, at: int) -> int:
    """Where a type ends, whose arguments may hold commas."""
    depth = 0
    for index in range(at, len(text)):
        character = text[index]
        depth += (character == "<") - (character == ">")
        if depth == 0 and character in "(){}|,@^;[]":
            return index
    return len(text)
