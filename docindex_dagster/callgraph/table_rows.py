"""Rows of the table `references` from the intermediate representation of files."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from docindex_dagster.callgraph.ir import UNKNOWN, Expression, FileIR, TypeRef, children
from docindex_dagster.callgraph.schema import REFERENCES
from docindex_dagster.callgraph.table import NODES, Change, Fields

MOST_DEEP = 100
"""What is made of more levels is not followed: its expression is unknown, and of its type the name is left."""


class Extracted(NamedTuple):
    """What a file says; None, and why, where its structure cannot be had."""

    path: str
    content_hash: str
    language: str
    file_ir: FileIR | None
    problem: str | None = None


def reference_rows(files: Sequence[Extracted]) -> pa.Table:
    """The rows of files, in their order."""
    writer = _Writer()
    content = [writer.content(file.file_ir) if file.file_ir is not None else b"" for file in files]
    columns = [[getattr(file, name) for file in files] for name in REFERENCES.names[:-1]]
    return pa.Table.from_pydict(dict(zip(REFERENCES.names, (*columns, content), strict=True)), schema=REFERENCES)


class _Writer:
    """Writes one file after the other: the texts, types and expressions of one, by their positions."""

    def __init__(self) -> None:
        self._texts: defaultdict[str, int] = defaultdict()
        self._texts.default_factory = self._texts.__len__
        self._nodes = _Positions(self._add)
        self._written: list[Sequence[Any]] = []
        self._levels: dict[TypeRef | Expression, int] = {}
        fields = Fields(self._texts.__getitem__, self._nodes.__getitem__, _columns, _flattened)
        self._lists = fields.of_file()
        self._forms = {node: _form(number, node, fields.of(node)) for number, node in enumerate(NODES)}

    def content(self, file_ir: FileIR) -> bytes:
        """What the row of a file holds."""
        for known in (self._texts, self._nodes, self._written, self._levels):
            known.clear()
        self._nodes[None] = 0
        lists = [write(getattr(file_ir, name)) for name, write in self._lists.items()]
        return orjson.dumps([[*self._texts], self._written, [file_ir.namespace, file_ir.language], *lists])

    def _add(self, wanted: TypeRef | Expression) -> None:
        known, stack = self._nodes, [wanted]
        while stack:
            current = stack[-1]
            parts = current.arguments if isinstance(current, TypeRef) else children(current)
            if parts and (missing := [part for part in parts if part not in known]):
                stack += missing
                continue
            stack.pop()
            if current not in known:
                known[current] = self._position(current, parts)

    def _position(self, one: TypeRef | Expression, parts: Sequence[TypeRef | Expression]) -> int:
        level = self._levels[one] = 1 + max([self._levels[part] for part in parts]) if parts else 1
        if level > MOST_DEEP:
            return self._nodes[TypeRef(one.name) if isinstance(one, TypeRef) else UNKNOWN]
        written = self._forms[type(one)](one)
        self._written.append(written)
        return len(self._written)


class _Positions(dict[Any, int]):
    """The positions of types and expressions; what is missing is added as it is asked for."""

    def __init__(self, add: Callable[[Any], None]) -> None:
        self._add = add

    def __missing__(self, node: TypeRef | Expression) -> int:
        self._add(node)
        return self[node]


def _form(number: int, node: type[TypeRef | Expression], fields: Sequence[Change]) -> Change:
    """How a type or expression of a class is written."""
    match fields:
        case []:
            return lambda _: (number,)
        case [write]:
            get = attrgetter(*node.__match_args__)
            return lambda one: (number, write(get(one)))
        case _:
            get = attrgetter(*node.__match_args__)
            return lambda one: (number, *[write(value) for write, value in zip(fields, get(one), strict=True)])


def _columns(_: Any, columns: Sequence[Change]) -> Change:
    return lambda rows: [write(column) for write, column in zip(columns, zip(*rows, strict=True), strict=False)]


def _flattened(write: Change) -> Change:
    return lambda lists: [[*map(len, lists)], write(chain.from_iterable(lists))]
