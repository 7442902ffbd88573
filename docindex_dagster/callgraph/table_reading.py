"""The table `references` read back, each file when it is asked for.

A file is read by columns: its part of each becomes a list of numbers, and statements are made of these side by side.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import Argument, Expression, FileIR, TypeRef
from docindex_dagster.callgraph.table import KINDS, MADE_WITH, OPERANDS, OPS, REFERENCES
from docindex_dagster.core.hashing import digest_parts

_Row = TypeVar("_Row", bound=NamedTuple)
_SORT_OF = np.array([sort for sort, kinds in enumerate(KINDS.values()) for _ in kinds])  # by the number of a kind
_KIND_OF = tuple(kind for kinds in KINDS.values() for kind in kinds)
_SORTS = np.arange(len(KINDS) + 1)


class References(Mapping[str, FileIR]):
    """What the files of a table say, by their paths; files without structure are not among them."""

    def __init__(self, table: pa.Table) -> None:
        """Take a table, of which nothing is read yet.

        Raises:
            ValueError: it is no table of references.
        """
        if not table.schema.remove_metadata().equals(REFERENCES):
            raise ValueError("the table has other columns than those of references")
        self._table = table
        self._made_with = ((table.schema.metadata or {}).get(MADE_WITH) or b"").decode()

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        problems = self._table["problem"].to_pylist()
        paths = self._table["path"].to_pylist()
        return {path: row for row, (path, problem) in enumerate(zip(paths, problems, strict=True)) if problem is None}

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        columns = (self._table[name].to_pylist() for name in ("path", "content_hash", "language", "problem"))
        return {path: digest_parts(self._made_with, *map(repr, about)) for path, *about in zip(*columns, strict=True)}

    def version_of(self, path: str) -> str:
        """A hash of all that decides what a file says; "" where it has no row."""
        return self._versions.get(path, "")

    @cached_property
    def _columns(self) -> "_Columns":
        return _Columns(self._table)

    def __getitem__(self, path: str) -> FileIR:
        row = self._rows[path]
        return self._columns.file(row, self._table["namespace"][row].as_py())

    def __contains__(self, path: object) -> bool:
        return path in self._rows

    def __iter__(self) -> Any:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class _List:
    """A list column: where the items of each row begin, and what they are."""

    def __init__(self, column: pa.Array) -> None:
        self.ends: NDArray[np.int32] = column.offsets.to_numpy()
        self.items: pa.Array = column.values

    def span(self, row: int) -> tuple[int, int]:
        return int(self.ends[row]), int(self.ends[row + 1])

    def numbers(self, field: str) -> NDArray[Any]:
        """A column of numbers of its items."""
        found: NDArray[Any] = self.items.field(field).to_numpy(zero_copy_only=False)
        return found

    def inner(self, field: str) -> "_List":
        """A column of lists of its items."""
        return _List(self.items.field(field))


class _Columns:
    """All numbers of a table, as they lie in memory."""

    def __init__(self, table: pa.Table) -> None:
        texts, types, expressions, statements = (
            _List(_whole(table[name])) for name in ("texts", "types", "expressions", "statements")
        )
        self._texts = texts
        self._types, self._type_names, self._type_arguments = types, types.numbers("name"), types.inner("arguments")
        self._type_parts = self._type_arguments.items.to_numpy()
        self._expressions, self._ops, self._op_texts = (
            expressions,
            expressions.numbers("op"),
            expressions.numbers("text"),
        )
        self._parts = expressions.inner("parts")
        self._part_numbers = self._parts.items.to_numpy()
        self._statements, self._kinds = statements, statements.numbers("kind")
        self._operands = [statements.numbers(name) for name in OPERANDS]
        self._arguments = statements.inner("arguments")
        self._given = [self._arguments.numbers(name) for name in ("value", "name", "is_block")]

    def file(self, row: int, namespace: str) -> FileIR:
        """What the file of a row says."""
        begin, end = self._texts.span(row)
        texts: list[str] = self._texts.items.slice(begin, end - begin).to_pylist()
        types = self._types_of(row, texts)
        expressions = self._expressions_of(row, texts, types)
        return self._statements_of(row, texts, types, expressions, namespace)

    def _types_of(self, row: int, texts: Sequence[str]) -> list[TypeRef]:
        begin, end = self._types.span(row)
        found: list[TypeRef] = []
        names = self._type_names[begin:end].tolist()
        for name, arguments in zip(names, _parts(self._type_arguments.ends, self._type_parts, begin, end), strict=True):
            found.append(TypeRef(texts[name], tuple([found[part] for part in arguments])))
        return found

    def _expressions_of(self, row: int, texts: Sequence[str], types: Sequence[TypeRef]) -> list[Expression]:
        begin, end = self._expressions.span(row)
        known = _Known(texts, types, [])
        ops, names = self._ops[begin:end].tolist(), self._op_texts[begin:end].tolist()
        for op, name, parts in zip(ops, names, _parts(self._parts.ends, self._part_numbers, begin, end), strict=True):
            known.expressions.append(_MAKERS[op](known, name, parts))
        return known.expressions

    def _statements_of(
        self,
        row: int,
        texts: Sequence[str],
        types: Sequence[TypeRef],
        expressions: Sequence[Expression],
        namespace: str,
    ) -> FileIR:
        begin, end = self._statements.span(row)
        kinds = self._kinds[begin:end]
        borders = np.searchsorted(_SORT_OF[kinds], _SORTS).tolist()
        columns = [column[begin:end].tolist() for column in self._operands]
        given = self._arguments_of(begin, end, texts, expressions)
        kind_of = [_KIND_OF[kind] for kind in kinds.tolist()]
        types = [*types, None]  # type: ignore[list-item]  # at -1: nothing
        found: dict[str, tuple[Any, ...]] = {}
        for sort, read, (first, last) in zip(KINDS, _READERS.values(), pairwise(borders), strict=True):
            if first == last:
                continue
            operands = [column[first:last] for column in columns]
            found[sort] = read(_Statements(texts, types, expressions, kind_of[first:last], operands, given[first:last]))
        return FileIR(**found, namespace=namespace)

    def _arguments_of(
        self, begin: int, end: int, texts: Sequence[str], expressions: Sequence[Expression]
    ) -> list[tuple[Argument, ...]]:
        ends = self._arguments.ends[begin : end + 1].tolist()
        first, last = ends[0], ends[-1]
        values, names, blocks = (column[first:last].tolist() for column in self._given)
        columns = [expressions[value] for value in values], [texts[name] for name in names], blocks
        listed = [*_made(Argument, *columns)]
        return [tuple(listed[one - first : two - first]) if one < two else () for one, two in pairwise(ends)]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def _parts(ends: NDArray[np.int32], numbers: NDArray[np.int32], begin: int, end: int) -> Iterable[list[int]]:
    """The lists of numbers of some items."""
    at = ends[begin : end + 1].tolist()
    first = at[0]
    listed = numbers[first : at[-1]].tolist()
    return [listed[one - first : two - first] for one, two in pairwise(at)]


class _Known(NamedTuple):
    """The texts and types of a file, and the expressions so far."""

    texts: Sequence[str]
    types: Sequence[TypeRef]
    expressions: list[Expression]

    def those(self, parts: Sequence[int]) -> tuple[Expression, ...]:
        return tuple([self.expressions[part] for part in parts])


_Maker = Callable[[_Known, int, Sequence[int]], Expression]


def _record(known: _Known, _: int, parts: Sequence[int]) -> Expression:
    names, values = (known.texts[name] for name in parts[::2]), known.those(parts[1::2])
    return ir.Record(tuple(zip(names, values, strict=True)))


_BY_OP: Mapping[tuple[type, str], _Maker] = {
    (ir.Unknown, ""): lambda *_: ir.UNKNOWN,
    (ir.Name, ""): lambda known, text, _: ir.Name(known.texts[text], ""),
    (ir.Name, "function"): lambda known, text, _: ir.Name(known.texts[text], "function"),
    (ir.Name, "type"): lambda known, text, _: ir.Name(known.texts[text], "type"),
    (ir.NameOrCall, ""): lambda known, text, _: ir.NameOrCall(known.texts[text]),
    (ir.Implicit, ""): lambda known, text, parts: ir.Implicit(known.those(parts), known.texts[text]),
    (ir.Attribute, ""): lambda known, text, parts: ir.Attribute(known.expressions[parts[0]], known.texts[text]),
    (ir.Call, ""): lambda known, _, parts: ir.Call(known.expressions[parts[0]]),
    (ir.New, ""): lambda known, _, parts: ir.New(known.expressions[parts[0]]),
    (ir.Element, ""): lambda known, _, parts: ir.Element(known.expressions[parts[0]]),
    (ir.Instance, ""): lambda known, text, _: ir.Instance(known.types[text]),
    (ir.Literal, ""): lambda known, text, _: ir.Literal(known.texts[text]),
    (ir.Union, ""): lambda known, _, parts: ir.Union(known.those(parts)),
    (ir.Collection, ""): lambda known, _, parts: ir.Collection(known.those(parts)),
    (ir.Record, ""): _record,
    (ir.Function, ""): lambda known, text, _: ir.Function(known.texts[text]),
    (ir.CallbackArgument, ""): lambda known, _, parts: ir.CallbackArgument(known.expressions[parts[0]], *parts[1:]),
    (ir.Module, ""): lambda known, text, _: ir.Module(known.texts[text]),
}
_MAKERS = tuple(_BY_OP[of] for of in OPS)


class _Statements(NamedTuple):
    """The statements of one sort, by columns."""

    texts: Sequence[str]
    types: Sequence[TypeRef]
    expressions: Sequence[Expression]
    kinds: list[Any]
    operands: list[list[int]]
    arguments: list[tuple[Argument, ...]]

    def text(self, at: int) -> list[str]:
        texts = self.texts
        return [texts[number] for number in self.operands[at]]

    def type(self, at: int) -> list[TypeRef]:
        return [self.types[number] for number in self.operands[at]]

    def expression(self, at: int) -> list[Expression]:
        expressions = self.expressions
        return [expressions[number] for number in self.operands[at]]

    @property
    def places(self) -> list[list[int]]:
        """Lines and bytes."""
        return self.operands[-2:]


def _made(row: type[_Row], *columns: Sequence[Any]) -> Iterable[_Row]:
    """Rows from columns, three times as fast as by calls of their class."""
    return map(tuple.__new__, repeat(row), zip(*columns, strict=True))


def _imports(of: _Statements) -> tuple[ir.Import, ...]:
    kinds, passed_on = [kind for kind, _ in of.kinds], [passed for _, passed in of.kinds]
    return tuple(_made(ir.Import, kinds, of.text(0), of.text(1), of.text(2), of.text(3), passed_on, *of.places))


_READERS: Mapping[str, Callable[[_Statements], tuple[Any, ...]]] = {
    "definitions": lambda of: tuple(_made(ir.Definition, *map(of.text, range(5)), of.type(5), of.kinds, *of.places)),
    "calls": lambda of: tuple(_made(ir.CallSite, of.kinds, of.text(0), of.expression(1), of.arguments, *of.places)),
    "imports": _imports,
    "exports": lambda of: tuple(_made(ir.Export, of.text(1), of.expression(2))),
    "assignments": lambda of: tuple(
        _made(ir.Assignment, of.kinds, of.text(0), of.expression(1), of.expression(2), *of.places)
    ),
    "parameters": lambda of: tuple(
        _made(ir.Parameter, of.kinds, of.text(0), of.text(1), of.expression(2), of.text(3), *of.places)
    ),
    "returns": lambda of: tuple(_made(ir.Return, of.text(0), of.expression(1))),
    "bases": lambda of: tuple(_made(ir.Base, of.kinds, of.text(0), of.text(1), of.expression(2), *of.places)),
    "decorators": lambda of: tuple(_made(ir.Decorator, of.text(0), of.text(1), of.expression(2), *of.places)),
    "fills": lambda of: tuple(_made(ir.Fill, of.text(0), of.text(1), of.arguments)),
    "generics": lambda of: tuple(_made(ir.Generic, of.text(0), of.text(1), of.expression(2))),
    "receivers": lambda of: tuple(_made(ir.Receiver, of.text(0), of.type(1))),
    "forwards": lambda of: tuple(_made(ir.Forward, of.text(0), of.text(1))),
    "properties": lambda of: tuple(of.text(0)),
    "hidden": lambda of: tuple(of.text(0)),
}
