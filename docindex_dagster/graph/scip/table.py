"""Table of the precise index that was imported for a source. It is kept until a new import or removal.

It has a row for each call site in the files that the index covers. So it also records for which calls the index knows
no target.
"""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout

PRECISE_TABLE = "precise_index"

PRECISE = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),  # of the file
        pa.field("line", pa.int32(), nullable=False),  # where the callee begins
        pa.field("byte", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),  # last part of the callee
        pa.field("caller", pa.string(), nullable=False),  # a node
        pa.field("caller_type", pa.string(), nullable=False),
        # Nodes that define the callee: several if the index has one name for them, none if the callee is unknown.
        pa.field("targets", pa.list_(pa.string()), nullable=False),
        pa.field("target_type", pa.string()),
        pa.field("target_path", pa.string()),  # null for external targets
        pa.field("target_hash", pa.string()),  # content hash of that file
        pa.field("tool", pa.string(), nullable=False),
    ]
)


def read(layout: Layout, key: str) -> pa.Table | None:
    """Return what was imported for a source, or None if there is nothing or the table is damaged."""
    table = tables.read(layout.table(PRECISE_TABLE, key))
    if table is None or not table.schema.equals(PRECISE):
        return None
    return table.replace_schema_metadata(None)


def version(layout: Layout, key: str) -> str:
    """Return the data version of what was imported for a source, or "" if there is nothing."""
    path = layout.table(PRECISE_TABLE, key)
    if not path.exists():
        return ""
    return tables.metadata_value(path, tables.VERSION) or "damaged"


def add(layout: Layout, key: str, imported: pa.Table) -> None:
    """Store an import, replacing the previous import of the same tool and all rows of the same files.

    Raises:
        FullDiskError: The disk is full.
    """
    known = read(layout, key)
    if known is not None:
        is_replaced = pc.is_in(known["path"], pc.unique(imported["path"]))
        is_replaced = pc.or_(is_replaced, pc.is_in(known["tool"], pc.unique(imported["tool"])))
        imported = pa.concat_tables([known.filter(pc.invert(is_replaced)), imported])
    ordered = imported.sort_by([("path", "ascending"), ("byte", "ascending"), ("name", "ascending")]).combine_chunks()
    tables.write(layout.table(PRECISE_TABLE, key), tables.stamp(ordered, tables.data_version(ordered)))


def remove(layout: Layout, key: str) -> bool:
    """Remove what was imported for a source, and return whether there was anything."""
    path = layout.table(PRECISE_TABLE, key)
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed
