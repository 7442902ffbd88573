"""Arrow storage of the intermediate representation: the table `references`, one row per file.

The IR of a file is a JSON array in the column `content`, so that a file can be read without any other. Its items are:

1. the distinct strings;
2. the distinct types and expressions, each after its own parts: the number of its class in `NODES`, then its fields;
3. the namespace, and the language of the code if it differs from that of the file;
4. the lists of `FileIR`, in order and stored by column: an array for each field of their statements.

A field is a position in the list of strings or in that of types and expressions, where 0 is None. Numbers and booleans
are stored directly. The arguments of calls are also stored by column, after the number of arguments per call. The
layout is derived from the fields in `ir.py` and their types.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, islice, repeat
from operator import attrgetter
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.ir import UNKNOWN, Expression, FileIR, TypeRef, children
from docindex_dagster.code.languages import HOSTS, LANGUAGES, can_contain_symbols
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.tables import stamp

NODES: Sequence[type[TypeRef | Expression]] = (TypeRef, *get_args(Expression))
"""The classes of types and expressions; the number of a class is its position in this list."""

Change = Callable[[Any], Any]
# Increment it whenever extraction from the same file, or the row format, changes.
REFERENCES_VERSION = "7"
# Metadata key for the extraction version and settings that the rows of a table were built with.
MADE_WITH = b"docindex.references"
# Sorted by path. If extraction fails for a file, `content` is empty and `problem` gives the reason.
REFERENCES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("content", pa.large_binary(), nullable=False),
    ]
)
MAX_DEPTH = 100
"""Levels of nesting; a deeper expression is stored as unknown, a deeper type without its arguments."""
_FILE_KEY = ("path", "content_hash", "language")
_LANGUAGES = pa.array(sorted(filter(can_contain_symbols, {*LANGUAGES, *HOSTS})), pa.string())
# Files with one of these problems are extracted again, since the problem is transient.
_TRANSIENT = r"^(time-out|crash|changed): "


class Fields(NamedTuple):
    """Conversions of fields for writing or reading."""

    text: Change
    node: Change  # a type or expression
    rows: Callable[[Any, Sequence[Change]], Change]  # statements of a class, from the conversions of their columns
    lists: Callable[[Change], Change]  # a column of lists, from the conversion of a list

    def of(self, node: type[TypeRef | Expression]) -> list[Change]:
        """Return the conversions for the fields of a type or expression."""
        return [self._field(kind) for kind in _fields(node).values()]

    def of_file(self) -> Mapping[str, Change]:
        """Return the conversions for the lists of a file, by name."""
        return {name: self._list(kind) for name, kind in _fields(FileIR).items() if get_origin(kind) is tuple}

    def _list(self, kind: Any) -> Change:
        """Return the conversion for a list with items of a type."""
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
    """Return the types of the fields of a class, by name."""
    return get_type_hints(kind)


def _same(value: Any) -> Any:
    return value


def _is_row(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple


class Extracted(NamedTuple):
    """The extracted IR of a file; None, with the problem, if extraction failed."""

    path: str
    content_hash: str
    language: str
    file_ir: FileIR | None
    problem: str | None = None


def reference_rows(files: Sequence[Extracted]) -> pa.Table:
    """Return the rows of files, in order."""
    writer = _Writer()
    content = [writer.content(file.file_ir) if file.file_ir is not None else b"" for file in files]
    columns = [[getattr(file, name) for file in files] for name in REFERENCES.names[:-1]]
    return pa.Table.from_pydict(dict(zip(REFERENCES.names, (*columns, content), strict=True)), schema=REFERENCES)


class _Writer:
    """Serializer for the IR of files, one at a time; numbers the strings, types and expressions of a file."""

    def __init__(self) -> None:
        self._texts: defaultdict[str, int] = defaultdict()
        self._texts.default_factory = self._texts.__len__
        self._nodes = _Positions(self._add)
        self._written: list[Sequence[Any]] = []
        self._levels: dict[TypeRef | Expression, int] = {}
        fields = Fields(self._texts.__getitem__, self._nodes.__getitem__, _columns, _flattened)
        self._lists = fields.of_file()
        self._writers = {node: _node_writer(number, node, fields.of(node)) for number, node in enumerate(NODES)}

    def content(self, file_ir: FileIR) -> bytes:
        """Return the `content` of a file's row."""
        for known in (self._texts, self._nodes, self._written, self._levels):
            known.clear()
        self._nodes[None] = 0
        lists = [write(getattr(file_ir, name)) for name, write in self._lists.items()]
        return orjson.dumps([[*self._texts], self._written, [file_ir.namespace, file_ir.language], *lists])

    def _add(self, node: TypeRef | Expression) -> None:
        known, stack = self._nodes, [node]
        while stack:
            current = stack[-1]
            parts = current.arguments if isinstance(current, TypeRef) else children(current)
            if parts and (missing := [part for part in parts if part not in known]):
                stack += missing
                continue
            stack.pop()
            if current not in known:
                known[current] = self._position(current, parts)

    def _position(self, node: TypeRef | Expression, parts: Sequence[TypeRef | Expression]) -> int:
        level = self._levels[node] = 1 + max([self._levels[part] for part in parts]) if parts else 1
        if level > MAX_DEPTH:
            return self._nodes[TypeRef(node.name) if isinstance(node, TypeRef) else UNKNOWN]
        written = self._writers[type(node)](node)
        self._written.append(written)
        return len(self._written)


class _Positions(dict[Any, int]):
    """The positions of types and expressions; a missing one is added on lookup."""

    def __init__(self, add: Callable[[Any], None]) -> None:
        self._add = add

    def __missing__(self, node: TypeRef | Expression) -> int:
        self._add(node)
        return self[node]


def _node_writer(number: int, node: type[TypeRef | Expression], fields: Sequence[Change]) -> Change:
    """Return the function that serializes types or expressions of a class."""
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


class References(Mapping[str, FileIR]):
    """The IR of the files in a table, by path; files that failed extraction are not included."""

    def __init__(self, table: pa.Table) -> None:
        """Wrap a table; rows are parsed on demand.

        Raises:
            ValueError: the table does not have the schema `REFERENCES`.
        """
        if not table.schema.remove_metadata().equals(REFERENCES):
            raise ValueError(f"expected a references table, got columns {', '.join(table.schema.names)}")
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
        return {path: digest_parts(self._made_with, *map(repr, row)) for path, *row in zip(*columns, strict=True)}

    def version_of(self, path: str) -> str:
        """Return a hash of everything that determines the IR of a file; "" if it has no row."""
        return self._versions.get(path, "")

    @cached_property
    def _reader(self) -> "_Reader":
        return _Reader()

    def __getitem__(self, path: str) -> FileIR:
        return self._reader.file(self._table["content"][self._rows[path]].as_py())

    def __contains__(self, path: object) -> bool:
        return path in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class _Reader:
    """Parser for the IR of files, one at a time; resolves positions of strings, types and expressions."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._nodes: list[TypeRef | Expression | None] = []
        fields = Fields(self._texts.__getitem__, self._nodes.__getitem__, _rows, _lists)
        self._of_file = fields.of_file()
        self._readers = [_node_reader(node, fields.of(node)) for node in NODES]

    def file(self, content: bytes) -> FileIR:
        """Parse the `content` of a row.

        Raises:
            ValueError: the row is damaged.
            IndexError: the row is damaged.
            TypeError: the row is damaged.
        """
        self._texts[:], written, (namespace, language), *lists = orjson.loads(content)
        self._nodes[:] = [None]
        for node in written:
            self._nodes.append(self._readers[node[0]](node))
        named = zip(self._of_file.items(), lists, strict=True)
        read = {name: tuple(change(columns)) for (name, change), columns in named if columns}
        return FileIR(**read, namespace=namespace, language=language)


def _node_reader(node: Any, fields: Sequence[Change]) -> Change:
    """Return the function that parses types or expressions of a class, stored as the class number and the fields."""
    match fields:
        case [read]:
            return lambda one: node(read(one[1]))
        case [first, second]:  # the most common case; twice as fast as the general one below
            return lambda one: node(first(one[1]), second(one[2]))
        case _:
            return lambda one: node(*[read(value) for read, value in zip(fields, one[1:], strict=True)])


def _rows(row: Any, fields: Sequence[Change]) -> Change:
    """Return the function that builds rows from columns; `tuple.__new__` is three times faster than calling `row`."""

    def read(columns: Sequence[Any]) -> Iterator[Any]:
        changed = [change(column) for change, column in zip(fields, columns, strict=True)] if columns else ()
        return map(tuple.__new__, repeat(row), zip(*changed, strict=True))

    return read


def _lists(read: Change) -> Change:
    def lists(written: Sequence[Any]) -> list[tuple[Any, ...]]:
        counts, columns = written
        items = iter(read(columns))
        return [tuple(islice(items, count)) for count in counts]

    return lists


def as_table(rows: pa.Table, made_with: str) -> pa.Table:
    """Return the rows with `made_with` in the metadata, stamped with the data version."""
    marked = rows.replace_schema_metadata({MADE_WITH: made_with.encode()})
    files = rows.select([*_FILE_KEY, "problem"]).to_pylist()
    return stamp(marked, digest_parts(made_with, *(repr(tuple(row.values())) for row in files)))


def usable(table: pa.Table | None, made_with: str) -> pa.Table:
    """Return the rows of a table if extraction would still produce them; otherwise an empty table."""
    if table is None or not table.schema.remove_metadata().equals(REFERENCES):
        return REFERENCES.empty_table()
    if (table.schema.metadata or {}).get(MADE_WITH) != made_with.encode():
        return REFERENCES.empty_table()
    return table.replace_schema_metadata(None)


def settled(references: pa.Table) -> pa.Table:
    """Return the rows that a retry would not change: those without a transient problem."""
    transient = pc.match_substring_regex(references["problem"], _TRANSIENT)
    return references.filter(pc.invert(pc.fill_null(transient, fill_value=False)))


def is_settled(references: pa.Table) -> bool:
    """Return whether no row has a transient problem, so that a retry would change nothing."""
    return int(settled(references).num_rows) == int(references.num_rows)


def lacking(chunks: pa.Table, references: pa.Table | None) -> int:
    """Count the code files among these chunks that have no row in a table."""
    is_known = references is not None and references.schema.remove_metadata().equals(REFERENCES)
    rows = references if is_known else REFERENCES.empty_table()
    return int(without(referring(chunks), rows).num_rows)


def referring(chunks: pa.Table) -> pa.Table:
    """Return the files whose references are extracted: path, content hash and language."""
    is_first = pc.equal(chunks["chunk_index"], 0)
    return chunks.select(list(_FILE_KEY)).filter(pc.and_(is_first, pc.is_in(chunks["language"], _LANGUAGES)))


def of_files(rows: pa.Table, files: pa.Table) -> pa.Table:
    """Return the rows of the files, matching path, content hash and language."""
    return rows.filter(pc.is_in(_keys(rows), _keys(files)))


def without(files: pa.Table, rows: pa.Table) -> pa.Table:
    """Return the files that have no row."""
    return files.filter(pc.invert(pc.is_in(_keys(files), _keys(rows))))


def _keys(table: pa.Table) -> pa.Array:
    columns = [table[name] for name in _FILE_KEY]
    return pa.chunked_array(pc.binary_join_element_wise(*columns, "\0"), pa.string()).combine_chunks()
