"""Rows of the table `references` from the intermediate representation of files."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Expression, FileIR, TypeRef, children
from docindex_dagster.callgraph.table import ARGUMENTS, EXPRESSIONS, KINDS, OPERANDS, OPS, REFERENCES, STATEMENTS, TYPES

MOST_DEEP = 100
"""What is made of more levels is not followed: its expression is unknown, and of its type the name is left."""
_NOTHING = FileIR()
_OPS = {of: number for number, of in enumerate(OPS)}
_KINDS = {
    (sort, kind): number
    for number, (sort, kind) in enumerate((sort, kind) for sort, kinds in KINDS.items() for kind in kinds)
}


class Extracted(NamedTuple):
    """What a file says; None, and why, where its structure cannot be had."""

    path: str
    content_hash: str
    language: str
    file_ir: FileIR | None
    problem: str | None = None


def reference_rows(files: Sequence[Extracted]) -> pa.Table:
    """The rows of files, in their order."""
    lists = _Lists()
    for file in files:
        lists.add(file.file_ir or _NOTHING)
    columns = {
        "path": [file.path for file in files],
        "content_hash": [file.content_hash for file in files],
        "language": [file.language for file in files],
        "problem": [file.problem for file in files],
        "namespace": [file.file_ir.namespace if file.file_ir else "" for file in files],
        "texts": lists.texts,
        **lists.nested(),
    }
    return pa.Table.from_arrays([_as_array(columns[each.name], each.type) for each in REFERENCES], schema=REFERENCES)


def _as_array(values: object, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _numbers() -> "array[int]":
    return array("i")


def _begin() -> "array[int]":
    return array("i", [0])


@dataclass(slots=True)
class _Lists:
    """The lists of all files, one behind the other, and where that of each file ends."""

    texts: list[list[str]] = field(default_factory=list)
    type_ends: "array[int]" = field(default_factory=_begin)
    type_names: "array[int]" = field(default_factory=_numbers)
    type_arguments: "array[int]" = field(default_factory=_numbers)
    type_argument_ends: "array[int]" = field(default_factory=_begin)
    expression_ends: "array[int]" = field(default_factory=_begin)
    ops: "array[int]" = field(default_factory=_numbers)
    op_texts: "array[int]" = field(default_factory=_numbers)
    parts: "array[int]" = field(default_factory=_numbers)
    part_ends: "array[int]" = field(default_factory=_begin)
    statement_ends: "array[int]" = field(default_factory=_begin)
    kinds: "array[int]" = field(default_factory=_numbers)
    operands: "tuple[array[int], ...]" = field(default_factory=lambda: tuple(_numbers() for _ in OPERANDS))
    arguments: "tuple[array[int], array[int], array[int]]" = field(
        default_factory=lambda: (_numbers(), _numbers(), _numbers())
    )
    argument_ends: "array[int]" = field(default_factory=_begin)

    def add(self, file_ir: FileIR) -> None:
        """Add the lists of a file."""
        file = _File(self)
        for sort, write in _WRITERS.items():
            for one in getattr(file_ir, sort):
                self._add(sort, write(file, one), file)
        self.texts.append([*file.texts])
        self.type_ends.append(len(self.type_names))
        self.expression_ends.append(len(self.ops))
        self.statement_ends.append(len(self.kinds))

    def _add(self, sort: str, one: "_Statement", file: "_File") -> None:
        self.kinds.append(_KINDS[sort, one.kind])
        unused = (0,) * (len(OPERANDS) - 3 - len(one.operands))
        for column, operand in zip(
            self.operands, (file.text(one.scope), *one.operands, *unused, *one.place), strict=True
        ):
            column.append(operand)
        for value, name, is_block in one.arguments:
            given = file.expression(value), file.text(name), int(is_block)
            for column, operand in zip(self.arguments, given, strict=True):
                column.append(operand)
        self.argument_ends.append(len(self.arguments[0]))

    def nested(self) -> dict[str, pa.Array]:
        """The columns that are lists of structures."""
        arguments = _lists(self.type_arguments, self.type_argument_ends, TYPES.value_type.field("arguments").type)
        parts = _lists(self.parts, self.part_ends, EXPRESSIONS.value_type.field("parts").type)
        value, name, is_block = self.arguments
        given = _lists_of((_array(value), _array(name), _array(is_block, pa.bool_())), self.argument_ends, ARGUMENTS)
        operands = [_array(column) for column in self.operands]
        statements = (_array(self.kinds, pa.int8()), *operands, given)
        expressions = (_array(self.ops, pa.int8()), _array(self.op_texts), parts)
        return {
            "types": _lists_of((_array(self.type_names), arguments), self.type_ends, TYPES),
            "expressions": _lists_of(expressions, self.expression_ends, EXPRESSIONS),
            "statements": _lists_of(statements, self.statement_ends, STATEMENTS),
        }


def _array(values: "array[int]", kind: pa.DataType = None) -> pa.Array:
    found = pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])
    return found if kind is None else found.cast(kind)


def _lists(values: "array[int]", ends: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(_array(ends), _array(values), type=kind)


def _lists_of(columns: Sequence[pa.Array], ends: "array[int]", kind: pa.DataType) -> pa.Array:
    items = pa.StructArray.from_arrays(columns, fields=[*kind.value_type])
    return pa.ListArray.from_arrays(_array(ends), items, type=kind)


class _File:
    """The texts, types and expressions of a file by their positions in its lists."""

    def __init__(self, lists: _Lists) -> None:
        self._lists = lists
        self.texts: dict[str, int] = {}
        self._types: dict[TypeRef, int] = {}
        self._expressions: dict[Expression, int] = {}
        self._levels: dict[TypeRef | Expression, int] = {}

    def text(self, text: str) -> int:
        """The position of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def type(self, wanted: TypeRef) -> int:
        """The position of a type."""
        stack = [wanted]
        while stack:
            current = stack[-1]
            missing = [one for one in current.arguments if one not in self._types]
            if missing and current not in self._types:
                stack += missing
            else:
                stack.pop()
                self._add_type(current)
        return self._types[wanted]

    def _add_type(self, one: TypeRef) -> None:
        if one in self._types:
            return
        level = 1 + max((self._levels[part] for part in one.arguments), default=0)
        arguments = one.arguments if level <= MOST_DEEP else ()
        self._levels[one] = min(level, MOST_DEEP)
        self._types[one] = len(self._types)
        self._lists.type_names.append(self.text(one.name))
        self._lists.type_arguments.extend(self._types[part] for part in arguments)
        self._lists.type_argument_ends.append(len(self._lists.type_arguments))

    def expression(self, wanted: Expression) -> int:
        """The position of an expression."""
        stack = [wanted]
        while stack:
            current = stack[-1]
            missing = [one for one in children(current) if one not in self._expressions]
            if missing and current not in self._expressions:
                stack += missing
            else:
                stack.pop()
                self._add_expression(current)
        return self._expressions[wanted]

    def _add_expression(self, one: Expression) -> None:
        if one in self._expressions:
            return
        level = self._levels[one] = 1 + max((self._levels[part] for part in children(one)), default=0)
        if level > MOST_DEEP:
            self._expressions[one] = self.expression(UNKNOWN)
            return
        text, parts = self._operands(one)
        self._expressions[one] = len(self._lists.ops) - self._lists.expression_ends[-1]
        self._lists.ops.append(_OPS[type(one), one.space if isinstance(one, ir.Name) else ""])
        self._lists.op_texts.append(text)
        self._lists.parts.extend(parts)
        self._lists.part_ends.append(len(self._lists.parts))

    def _operands(self, one: Expression) -> tuple[int, Iterable[int]]:
        """The position of what it has as text, and its parts."""
        parts = [self._expressions[part] for part in children(one)]
        match one:
            case ir.Name(text) | ir.NameOrCall(text) | ir.Literal(text) | ir.Function(text) | ir.Module(text):
                return self.text(text), parts
            case ir.Implicit(_, text) | ir.Attribute(_, text):
                return self.text(text), parts
            case ir.Instance(of):
                return self.type(of), parts
            case ir.Record(fields):
                names = [self.text(name) for name, _ in fields]
                return 0, [number for pair in zip(names, parts, strict=True) for number in pair]
            case ir.CallbackArgument(_, argument, position):
                return 0, [*parts, argument, position]
            case _:
                return 0, parts


class _Statement(NamedTuple):
    """What the columns of a statement hold."""

    kind: object
    scope: str
    operands: tuple[int, ...] = ()
    place: tuple[int, int] = (0, 0)
    arguments: Sequence[Argument] = ()


def _definition(file: _File, one: ir.Definition) -> _Statement:
    named = file.text(one.name), file.text(one.kind), file.text(one.qualified), file.text(one.parent)
    returns = -1 if one.returns is None else file.type(one.returns)
    return _Statement(one.is_local, one.id, (*named, returns), one[-2:])


def _call(file: _File, one: ir.CallSite) -> _Statement:
    return _Statement(one.kind, one.scope, (file.expression(one.callee),), one[-2:], one.arguments)


def _import(file: _File, one: ir.Import) -> _Statement:
    named = file.text(one.name), file.text(one.module), file.text(one.member)
    return _Statement((one.kind, one.is_passed_on), one.scope, named, one[-2:])


def _assignment(file: _File, one: ir.Assignment) -> _Statement:
    return _Statement(one.role, one.scope, (file.expression(one.target), file.expression(one.value)), one[-2:])


def _named(file: _File, name: str, value: Expression) -> tuple[int, int]:
    return file.text(name), file.expression(value)


_WRITERS: Mapping[str, Callable[[_File, Any], _Statement]] = {
    "definitions": _definition,
    "calls": _call,
    "imports": _import,
    "exports": lambda file, one: _Statement("", "", _named(file, one.name, one.value)),
    "assignments": _assignment,
    "parameters": lambda file, one: _Statement(one.kind, one.scope, _named(file, one.name, one.value), one[-2:]),
    "returns": lambda file, one: _Statement("", one.scope, (file.expression(one.value),)),
    "bases": lambda file, one: _Statement(one.kind, one.scope, _named(file, one.cls, one.value), one[-2:]),
    "decorators": lambda file, one: _Statement("", one.scope, _named(file, one.decorated, one.value), one[-2:]),
    "fills": lambda file, one: _Statement("", one.scope, (file.text(one.type),), arguments=one.arguments),
    "generics": lambda file, one: _Statement("", one.scope, _named(file, one.name, one.bound)),
    "receivers": lambda file, one: _Statement("", one.scope, (file.type(one.type),)),
    "forwards": lambda file, one: _Statement("", one.scope, (file.text(one.name),)),
    "properties": lambda _, scope: _Statement("", scope),
    "hidden": lambda _, scope: _Statement("", scope),
}
