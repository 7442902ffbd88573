"""The vectors of each source as a file of its own, so that a search need not open LanceDB.

That library takes a second to load. A file is a copy of what its table holds of one version of a source, under a name
that says so; where it is missing or cannot be read, the table is asked instead.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from docindex_dagster.core import arrow_files
from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.stores.generation import Generation
from docindex_dagster.stores.lance_table import VECTOR, dimension, rows_of
from docindex_dagster.stores.matrix import COLUMNS, SIGNS, Part, fits
from docindex_dagster.stores.signs import BYTES

if TYPE_CHECKING:
    from lancedb.table import LanceTable

_VERSION_DIGITS = 16


def write(
    layout: Layout,
    source: str,
    version: str,
    chunks: pa.Table,
    embeddings: pa.Table,
    *,
    is_signed: bool = False,
    anew: bool = False,
) -> None:
    """Write the rows and vectors of a version of a source, one embedding a chunk.

    A file that can be read stays as it is, but with `anew`, or where the signs are to be in it, and are not.
    """
    path = _path(layout, source, version)
    if not anew and is_there(layout, source, version, is_signed=is_signed):
        return
    rows = chunks.select(["chunk_id", *COLUMNS]).replace_schema_metadata(None)
    rows = rows.append_column(embeddings.schema.field(VECTOR), embeddings[VECTOR])
    if is_signed:
        rows = with_signs(rows)
    with replacing(path) as temporary:
        arrow_files.write(temporary, rows.combine_chunks().to_batches(), rows.schema)


def complete(layout: Layout, generation: Generation, table: "LanceTable") -> None:
    """Write the files that searches of a large index need, and a generation lacks: an earlier version wrote none.

    What is in a pack has none.
    """
    if fits(sum(source.chunks for source in generation.sources.values()), dimension(table)):
        return
    for key, source in generation.sources.items():
        if source.pack is None and not is_there(layout, key, source.version, is_signed=True):
            chunks, embeddings = rows_of(table, [key])
            write(layout, key, source.version, chunks, embeddings, is_signed=True)


def is_there(layout: Layout, source: str, version: str, *, is_signed: bool) -> bool:
    """Whether a version of a source has its file, and, if they are wanted, the signs are in it."""
    part = read(layout, source, version)
    return part is not None and not (is_signed and part.signed is None)


def with_signs(rows: pa.Table) -> pa.Table:
    """Rows with the signs of their vectors, unless they have them."""
    if SIGNS in rows.column_names and not rows[SIGNS].null_count:
        return rows
    found = pa.py_buffer(Part.of(rows, VECTOR).signs)
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(BYTES), rows.num_rows, [None, found])
    bare = rows.drop_columns([SIGNS]) if SIGNS in rows.column_names else rows
    return bare.append_column(SIGNS, column)


def read(layout: Layout, source: str, version: str) -> Part | None:
    """The vectors of a version of a source; None where its file is missing or damaged."""
    rows = read_rows(layout, source, version)
    try:
        return None if rows is None else Part.of(rows, VECTOR)
    except (pa.ArrowException, KeyError):
        return None


def read_rows(layout: Layout, source: str, version: str) -> pa.Table | None:
    """The same as they lie in the file."""
    try:
        return arrow_files.read(_path(layout, source, version))
    except (OSError, pa.ArrowException):
        return None


def names(generation: Generation) -> set[str]:
    """The names of the files of a generation; what is in a pack needs none."""
    return {_name(key, source.version) for key, source in generation.sources.items() if source.pack is None}


def remove_unused(layout: Layout, used: set[str]) -> None:
    """Delete the files of generations that are gone, and what writers that were killed left half written."""
    for file in layout.entries(layout.vectors):
        if file.name not in used:
            file.unlink(missing_ok=True)


def _path(layout: Layout, source: str, version: str) -> Path:
    return layout.vectors / _name(source, version)


def _name(source: str, version: str) -> str:
    return f"{file_name(source)}.{version[:_VERSION_DIGITS]}.arrow"
