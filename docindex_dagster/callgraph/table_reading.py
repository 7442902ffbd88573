"""Reader of the `references` table, and the checks for missing, outdated and retryable rows."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.ir import Expression, FileIR, TypeRef
from docindex_dagster.callgraph.schema import MADE_WITH, REFERENCES
from docindex_dagster.callgraph.table import NODES, Change, Fields
from docindex_dagster.code.languages import HOSTS, LANGUAGES, holds_symbols
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.tables import stamp


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


_SAME_FILE = ("path", "content_hash", "language")
_LANGUAGES = pa.array(sorted(filter(holds_symbols, {*LANGUAGES, *HOSTS})), pa.string())
# A file that a slow or unlucky moment cost its structure is tried again.
_PASSING = r"^(time-out|crash|changed): "


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
    return references.filter(pc.invert(pc.fill_null(passing, False)))  # noqa: FBT003 the value


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
