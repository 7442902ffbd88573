"""The LanceDB table: every column of the chunks, and their vectors, for semantic search."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from docindex_dagster.layout import Layout
from docindex_dagster.schemas import CHUNKS, embeddings_schema
from docindex_dagster.stores.difference import Difference, difference

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import LanceTable, Table

VECTOR = "vector"
# Up to here an exact scan is as fast as an index and misses nothing (11 ms at 10,000 rows of 384 values).
_EXACT_ROWS = 10_000
_ROWS_A_PARTITION = 4096
# Compact after so many versions, or once so many rows are outside the vector index.
_VERSIONS_BEFORE_COMPACTION = 20
_UNINDEXED_SHARE = 0.1
# Old versions stay at least this long for readers that have just opened them.
_GRACE = timedelta(minutes=15)


def table_name(model: str) -> str:
    """Two models never share a table."""
    return "chunks-" + "".join(char if char.isalnum() else "-" for char in model.lower())


def open_for_writing(layout: Layout, model: str, dimension: int, pinned: int | None) -> "LanceTable":
    """The table of a model at its published version.

    What a writer that died left behind is undone: versions after `pinned` are reverted, and with None, the table is
    made anew.
    """
    from lancedb.index import Bitmap

    layout.lance.mkdir(parents=True, exist_ok=True)
    database = _connect(layout)
    name = table_name(model)
    if pinned is not None:
        table = _opened(database.open_table(name))
        if table.version != pinned:
            table.checkout(pinned)
            table.restore()
        return table
    schema = pa.schema([*CHUNKS, embeddings_schema(dimension).field(VECTOR)])
    table = _opened(database.create_table(name, schema=schema, mode="overwrite"))
    table.set_unenforced_primary_key("chunk_id")
    table.create_index("source", config=Bitmap())
    return table


def open_for_reading(layout: Layout, name: str, version: int) -> "LanceTable":
    """The table as a generation pinned it."""
    table = _opened(_connect(layout).open_table(name))
    table.checkout(version)
    return table


def _connect(layout: Layout) -> "DBConnection":
    # Its warnings on standard error are about what is normal here, such as chunks with equal vectors.
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb

    return lancedb.connect(layout.lance)


def _opened(table: "Table") -> "LanceTable":
    """A local table; only those of the hosted service are of another class."""
    return cast("LanceTable", table)


def held(table: "LanceTable", source: str) -> pa.Table:
    """The (chunk_id, row_hash) that the table holds for a source."""
    rows = table.search().where(_equals("source", source)).select(["chunk_id", "row_hash"])
    return rows.limit(None).to_arrow().select(["chunk_id", "row_hash"])


def reconcile(table: "LanceTable", source: str, chunks: pa.Table, embeddings: pa.Table) -> Difference:
    """Make the table hold exactly these chunks of a source, in one commit; write nothing when it does."""
    rows = chunks.replace_schema_metadata(None).append_column(embeddings.schema.field(VECTOR), embeddings[VECTOR])
    change = difference(held(table, source), rows)
    if change.is_empty:
        return change
    merge = table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all()
    if change.removed:
        # Ids, not the source: everything that is not in the input and meets this filter is deleted.
        ids = ", ".join(quoted(chunk_id) for chunk_id in change.deletes.to_pylist())
        merge = merge.when_not_matched_by_source_delete(f"chunk_id IN ({ids})")
    merge.execute(change.upserts)
    return change


def remove(table: "LanceTable", source: str) -> None:
    """Delete every row of a source."""
    table.delete(_equals("source", source))


def maintain(table: "LanceTable", optimized_version: int, previous_version: int | None) -> int:
    """Index and compact when it is due; returns the version of the last compaction.

    The version of the generation before this one is spared, so that a rollback finds it.
    """
    rows = table.count_rows()
    has_index = any(VECTOR in index.columns for index in table.list_indices())
    if rows > _EXACT_ROWS and not has_index:
        _create_vector_index(table, rows)
    elif table.version - optimized_version < _VERSIONS_BEFORE_COMPACTION and not _needs_indexing(
        table, rows, has_index
    ):
        return optimized_version
    table.optimize(cleanup_older_than=_age_to_keep(table, previous_version))
    return int(table.version)


def _create_vector_index(table: "LanceTable", rows: int) -> None:
    from lancedb.index import IvfRq

    partitions = max(1, rows // _ROWS_A_PARTITION)
    table.create_index(VECTOR, config=IvfRq(distance_type="cosine", num_partitions=partitions))


def _needs_indexing(table: "LanceTable", rows: int, has_index: bool) -> bool:  # noqa: FBT001 two callers' worth of state
    if not has_index:
        return False
    statistics = table.index_stats(f"{VECTOR}_idx")
    return statistics is not None and statistics.num_unindexed_rows > rows * _UNINDEXED_SHARE


def _age_to_keep(table: "LanceTable", previous_version: int | None) -> timedelta:
    published = [item["timestamp"] for item in table.list_versions() if item["version"] == previous_version]
    if not published:
        return _GRACE
    made: datetime = published[0]
    now = datetime.now(UTC) if made.tzinfo else datetime.now()  # noqa: DTZ005 the library gives local times
    return max(_GRACE, now - made + _GRACE)


def files(layout: Layout) -> set[Path]:
    """Every file of the database, to find and sync those that a publication wrote."""
    return {path for path in layout.lance.rglob("*") if path.is_file()}


def quoted(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def _equals(column: str, value: str) -> str:
    return f"{column} = {quoted(value)}"
