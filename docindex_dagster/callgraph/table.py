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
from docindex_dagster.code.languages import HOSTS, LANGUAGES, holds_symbols
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.tables import stamp

NODES: Sequence[type[TypeRef | Expression]] = (TypeRef, *get_args(Expression))
"""What stands among the types and expressions of a file; of a class, its number is its position here."""

Change = Callable[[Any], Any]
# Raise it with every change of what is extracted from the same file, or of how a row holds it.
REFERENCES_VERSION = "7"
# The key under which the metadata of a table hold what its rows were made with besides the bytes of the files.
MADE_WITH = b"docindex.references"
# Sorted by path. Of a file whose structure cannot be had, `content` is empty, and `problem` says why.
REFERENCES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("content", pa.large_binary(), nullable=False),
    ]
)
MOST_DEEP = 100
"""What is made of more levels is not followed: its expression is unknown, and of its type the name is left."""
_SAME_FILE = ("path", "content_hash", "language")
_LANGUAGES = pa.array(sorted(filter(holds_symbols, {*LANGUAGES, *HOSTS})), pa.string())
# A file that a slow or unlucky moment cost its structure is tried again.
_PASSING = r"^(time-out|crash|changed): "


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
    """Reads one file after the other: the texts, types and expressions of one, by their positions."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._nodes: list[TypeRef | Expression | None] = []
        fields = Fields(self._texts.__getitem__, self._nodes.__getitem__, _rows, _lists)
        self._of_file = fields.of_file()
        self._made = [_made(node, fields.of(node)) for node in NODES]

    def file(self, content: bytes) -> FileIR:
        """What the file of a row says.

        Raises:
            ValueError: the row is damaged.
            IndexError: likewise.
            TypeError: likewise.
        """
        self._texts[:], written, (namespace, language), *lists = orjson.loads(content)
        self._nodes[:] = [None]
        for one in written:
            self._nodes.append(self._made[one[0]](one))
        named = zip(self._of_file.items(), lists, strict=True)
        read = {name: tuple(change(columns)) for (name, change), columns in named if columns}
        return FileIR(**read, namespace=namespace, language=language)


def _made(node: Any, fields: Sequence[Change]) -> Change:
    """How a type or expression of a class is read, its fields behind its number."""
    match fields:
        case [read]:
            return lambda one: node(read(one[1]))
        case [first, second]:  # as most; the same as below, twice as fast
            return lambda one: node(first(one[1]), second(one[2]))
        case _:
            return lambda one: node(*[read(value) for read, value in zip(fields, one[1:], strict=True)])


def _rows(row: Any, fields: Sequence[Change]) -> Change:
    """Rows from columns, three times as fast as by calls of their class."""

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
    """Rows as a table that says what they were made with, stamped with its data version."""
    marked = rows.replace_schema_metadata({MADE_WITH: made_with.encode()})
    about = rows.select([*_SAME_FILE, "problem"]).to_pylist()
    return stamp(marked, digest_parts(made_with, *(repr(tuple(row.values())) for row in about)))


def usable(table: pa.Table | None, made_with: str) -> pa.Table:
    """The rows of a table, if they are what would be extracted now; else none."""
    if table is None or not table.schema.remove_metadata().equals(REFERENCES):
        return REFERENCES.empty_table()
    if (table.schema.metadata or {}).get(MADE_WITH) != made_with.encode():
        return REFERENCES.empty_table()
    return table.replace_schema_metadata(None)


def settled(references: pa.Table) -> pa.Table:
    """The rows of which another try would give the same."""
    passing = pc.match_substring_regex(references["problem"], _PASSING)
    return references.filter(pc.invert(pc.fill_null(passing, fill_value=False)))


def is_settled(references: pa.Table) -> bool:
    """Whether another try would give the same."""
    return int(settled(references).num_rows) == int(references.num_rows)


def lacking(chunks: pa.Table, references: pa.Table | None) -> int:
    """How many files of code with these chunks have no row in a table."""
    is_known = references is not None and references.schema.remove_metadata().equals(REFERENCES)
    rows = references if is_known else REFERENCES.empty_table()
    return int(without(referring(chunks), rows).num_rows)


def referring(chunks: pa.Table) -> pa.Table:
    """The files from which references are extracted: their paths, hashes and languages."""
    is_first = pc.equal(chunks["chunk_index"], 0)
    return chunks.select(list(_SAME_FILE)).filter(pc.and_(is_first, pc.is_in(chunks["language"], _LANGUAGES)))


def of_files(rows: pa.Table, files: pa.Table) -> pa.Table:
    """The rows of some files as they are."""
    return rows.filter(pc.is_in(_keys(rows), _keys(files)))


def without(files: pa.Table, rows: pa.Table) -> pa.Table:
    """The files that have no row."""
    return files.filter(pc.invert(pc.is_in(_keys(files), _keys(rows))))


def _keys(table: pa.Table) -> pa.Array:
    columns = [table[name] for name in _SAME_FILE]
    return pa.chunked_array(pc.binary_join_element_wise(*columns, "\0"), pa.string()).combine_chunks()
