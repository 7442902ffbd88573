"""Which files have a row in the table `references`, which should have one, and of what extraction a table is."""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.schema import MADE_WITH, REFERENCES
from docindex_dagster.code.languages import HOSTS, LANGUAGES, holds_symbols
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.tables import stamp

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
