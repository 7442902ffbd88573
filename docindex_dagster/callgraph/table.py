"""The intermediate representation in Arrow: the table `references`, a row a file.

What a file says is one JSON array, the `content` of its row, so that a file is read without any other:

1. its texts, each once;
2. its types and expressions, each once, and behind those of which it is made: the number of its class in `NODES`, then
   its fields;
3. its namespace, and the language of its code where that is not its own;
4. the lists of `FileIR` in their order, each by columns: an array for each field of their statements.

A field is a position among the texts, or among the types and expressions, where 0 is nothing; a number or truth value
is as it is. What calls are given is by columns likewise, behind how much each is given. All this follows from the
fields of `ir.py` and their types.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from docindex_dagster.callgraph.ir import Expression, FileIR, TypeRef

NODES: Sequence[type[TypeRef | Expression]] = (TypeRef, *get_args(Expression))
"""What stands among the types and expressions of a file; of a class, its number is its position here."""

Change = Callable[[Any], Any]


class Fields(NamedTuple):
    """How fields are changed as they are written, or read."""

    text: Change
    node: Change  # a type or expression
    rows: Callable[[Any, Sequence[Change]], Change]  # statements of a class, by how each column is changed
    lists: Callable[[Change], Change]  # a column of lists, by how a list is changed

    def of(self, node: type[TypeRef | Expression]) -> list[Change]:
        """The fields of a type or expression."""
        return [self._field(kind) for kind in _fields(node).values()]

    def of_file(self) -> Mapping[str, Change]:
        """The lists of a file by their names."""
        return {name: self._list(kind) for name, kind in _fields(FileIR).items() if get_origin(kind) is tuple}

    def _list(self, kind: Any) -> Change:
        """A list of some type."""
        item = get_args(kind)[0]
        if not _is_row(item):
            return self._column(item)
        return self.rows(item, [self._column(field) for field in _fields(item).values()])

    def _column(self, kind: Any) -> Change:
        if get_origin(kind) is tuple and _is_row(get_args(kind)[0]):
            return self.lists(self._list(kind))
        change = self._field(kind)
        return change if change is _same else lambda column: [*map(change, column)]

    def _field(self, kind: Any) -> Change:
        if kind is TypeRef or get_origin(kind) is UnionType:
            return self.node
        if kind in {int, bool}:
            return _same
        if get_origin(kind) is not tuple:
            return self.text
        first, *others = get_args(kind)
        change = self._field(first)
        if others == [...]:
            return lambda values: tuple(map(change, values))
        changes = [change, *map(self._field, others)]
        return lambda values: tuple([each(value) for each, value in zip(changes, values, strict=True)])


@cache
def _fields(kind: type) -> Mapping[str, Any]:
    """The fields of a class by their names, each with its type."""
    return get_type_hints(kind)


def _same(value: Any) -> Any:
    return value


def _is_row(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple
