"""What was imported for a source, as a table that stays until it is imported anew or removed.

It has a row for each call site of the files that an index knows. So it tells not only what is called where, but also of
which calls the index knows nothing.
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
        pa.field("line", pa.int32(), nullable=False),  # at which the callee begins
        pa.field("byte", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),  # the last one of the callee
        pa.field("caller", pa.string(), nullable=False),  # a node
        pa.field("caller_type", pa.string(), nullable=False),
        # Nodes that define what is called, several where the index has one name for them; none where it knows nothing.
        pa.field("targets", pa.list_(pa.string()), nullable=False),
        pa.field("target_type", pa.string()),
        pa.field("target_path", pa.string()),  # null for what lies outside the source
        pa.field("target_hash", pa.string()),  # of that file
        pa.field("tool", pa.string(), nullable=False),
    ]
)


def read(layout: Layout, key: str) -> pa.Table | None:
    """What was imported for a source; None where nothing was, or the table is damaged."""
    table = tables.read(layout.table(PRECISE_TABLE, key))
    if table is None or not table.schema.equals(PRECISE):
        return None
    return table.replace_schema_metadata(None)


def version(layout: Layout, key: str) -> str:
    """The data version of what was imported for a source; "" where nothing was."""
    path = layout.table(PRECISE_TABLE, key)
    if not path.exists():
        return ""
    return tables.metadata_value(path, tables.VERSION) or "damaged"


def add(layout: Layout, key: str, imported: pa.Table) -> None:
    """Keep what was imported, in the place of what the same tool gave before, and of what is known of the same files.

    Raises:
        FullDiskError: there is no space left.
    """
    known = read(layout, key)
    if known is not None:
        again = pc.is_in(known["path"], pc.unique(imported["path"]))
        again = pc.or_(again, pc.is_in(known["tool"], pc.unique(imported["tool"])))
        imported = pa.concat_tables([known.filter(pc.invert(again)), imported])
    ordered = imported.sort_by([("path", "ascending"), ("byte", "ascending"), ("name", "ascending")]).combine_chunks()
    tables.write(layout.table(PRECISE_TABLE, key), tables.stamp(ordered, tables.data_version(ordered)))


def remove(layout: Layout, key: str) -> bool:
    """Take away what was imported for a source, and say whether anything was."""
    path = layout.table(PRECISE_TABLE, key)
    was_there = path.exists()
    path.unlink(missing_ok=True)
    return was_there
