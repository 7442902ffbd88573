"""Rows of the table `references` from the intermediate representation of files."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Expression, FileIR, TypeRef, children
from docindex_dagster.callgraph.table import (
    ARGUMENTS,
    EXPRESSIONS,
    KINDS,
    NUMBERS,
    OPERANDS,
    OPS,
    REFERENCES,
    STATEMENTS,
    TYPES,
)

MOST_DEEP = 100
"""What is made of more levels is not followed: its expression is unknown, and of its type the name is left."""
_NOTHING = FileIR()
_OPS = {of: number for number, of in enumerate(OPS)}
_NUMBERS = count()
_KINDS = {sort: {kind: next(_NUMBERS) for kind in kinds} for sort, kinds in KINDS.items()}
_UNUSED = (0,) * (len(OPERANDS) - 3)  # operands, besides scope, line and byte


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


class _Rows:
    """Rows of so many numbers each, and where the rows of each list end."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.values = array("i")
        self.ends = array("i", [0])

    def __len__(self) -> int:
        return len(self.values) // self._width

    def end(self) -> None:
        """End a list."""
        self.ends.append(len(self.values) // self._width)

    def columns(self) -> list[pa.Array]:
        """The numbers by columns."""
        rows = np.frombuffer(self.values, np.int32).reshape(-1, self._width)
        return [pa.array(np.ascontiguousarray(column)) for column in rows.T]

    def lists(self, *columns: pa.Array, kind: pa.DataType) -> pa.Array:
        """Lists of structures with these columns, of the kind of a column of the table."""
        fields = [*kind.value_type]
        cast = [column.cast(each.type) for column, each in zip(columns, fields, strict=True)]
        items = pa.StructArray.from_arrays(cast, fields=fields)
        return pa.ListArray.from_arrays(pa.array(np.frombuffer(self.ends, np.int32)), items, type=kind)

    def numbers(self) -> pa.Array:
        """Lists of the numbers themselves, of rows of one."""
        ends = pa.array(np.frombuffer(self.ends, np.int32))
        return pa.ListArray.from_arrays(ends, *self.columns(), type=NUMBERS)


class _Lists:
    """The lists of all files, one behind the other."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []
        self.types, self.type_arguments = _Rows(1), _Rows(1)
        self.expressions, self.parts = _Rows(2), _Rows(1)
        self.statements, self.arguments = _Rows(1 + len(OPERANDS)), _Rows(3)

    def add(self, file_ir: FileIR) -> None:
        """Add the lists of a file."""
        file = _File(self)
        for sort, write in _WRITERS.items():
            kinds = _KINDS[sort]
            for one in getattr(file_ir, sort):
                kind, scope, operands, place, arguments = write(file, one)
                self.statements.values.extend(
                    (kinds[kind], file.text(scope), *operands, *_UNUSED[len(operands) :], *place)
                )
                for value, name, is_block in arguments:
                    self.arguments.values.extend((file.expression(value), file.text(name), is_block))
                self.arguments.end()
        self.texts.append([*file.texts])
        for rows in (self.types, self.expressions, self.statements):
            rows.end()

    def nested(self) -> dict[str, pa.Array]:
        """The columns that are lists of structures."""
        given = self.arguments.lists(*self.arguments.columns(), kind=ARGUMENTS)
        return {
            "types": self.types.lists(*self.types.columns(), self.type_arguments.numbers(), kind=TYPES),
            "expressions": self.expressions.lists(*self.expressions.columns(), self.parts.numbers(), kind=EXPRESSIONS),
            "statements": self.statements.lists(*self.statements.columns(), given, kind=STATEMENTS),
        }


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
        if wanted in self._types:
            return self._types[wanted]
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
        self._lists.types.values.append(self.text(one.name))
        self._lists.type_arguments.values.extend([self._types[part] for part in arguments])
        self._lists.type_arguments.end()

    def expression(self, wanted: Expression) -> int:
        """The position of an expression."""
        known = self._expressions
        if wanted in known:
            return known[wanted]
        stack = [wanted]
        while stack:
            current = stack[-1]
            parts = children(current)
            missing = [part for part in parts if part not in known]
            if missing and current not in known:
                stack += missing
                continue
            stack.pop()
            if current not in known:
                known[current] = self._add_expression(current, parts)
        return known[wanted]

    def _add_expression(self, one: Expression, parts: Sequence[Expression]) -> int:
        level = self._levels[one] = 1 + max([self._levels[part] for part in parts]) if parts else 1
        if level > MOST_DEEP:
            return self.expression(UNKNOWN)
        text, numbers = self._operands(one, [self._expressions[part] for part in parts])
        lists = self._lists
        position = len(lists.expressions) - lists.expressions.ends[-1]
        lists.expressions.values.extend((_OPS[type(one), one.space if type(one) is ir.Name else ""], text))
        lists.parts.values.extend(numbers)
        lists.parts.end()
        return position

    def _operands(self, one: Expression, parts: list[int]) -> tuple[int, list[int]]:
        """The position of what it has as text, and the numbers that are kept as its parts."""
        match one:
            case ir.Name(text) | ir.Attribute(_, text) | ir.Implicit(_, text) | ir.NameOrCall(text):
                return self.text(text), parts
            case ir.Literal(text) | ir.Function(text) | ir.Module(text):
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
    "parameters": lambda file, one: _Statement(
        one.kind, one.scope, (*_named(file, one.name, one.value), file.text(one.label)), one[-2:]
    ),
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
