"""Differences between the rows that a store holds and the rows that it should hold.

Rows are compared by two columns: chunk_id, and a row_hash that covers everything the store keeps of a row.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows to write and the ids to delete, with counts for the metadata."""

    is_new: pa.ChunkedArray  # one boolean per target row: it is missing or differs
    writes: pa.Array  # ids of the new rows
    deletes: pa.Array  # ids of rows to delete
    replaced: pa.Array  # ids of rows whose stored contents differ
    added: int
    changed: int
    reused: int

    @property
    def removed(self) -> int:
        """Number of rows to delete."""
        return len(self.deletes)

    @property
    def written(self) -> int:
        """Number of rows to write or delete."""
        return self.added + self.changed + self.removed

    @property
    def is_empty(self) -> bool:
        """Whether the store already holds the target rows."""
        return not self.written


def difference(held: pa.Table, target: pa.Table) -> Difference:
    """Compare the rows that a store holds with the rows that it should hold."""
    is_held = pc.is_in(target["chunk_id"], held["chunk_id"])
    is_same = pc.is_in(_keys(target), _keys(held))
    is_changed = pc.and_not(is_held, is_same)
    known, same = (pc.sum(mask, min_count=0).as_py() or 0 for mask in (is_held, is_same))
    is_new = pc.invert(is_same)
    return Difference(
        is_new=is_new,
        writes=target["chunk_id"].filter(is_new).combine_chunks(),
        deletes=held["chunk_id"].filter(pc.invert(pc.is_in(held["chunk_id"], target["chunk_id"]))).combine_chunks(),
        replaced=target["chunk_id"].filter(is_changed).combine_chunks(),
        added=target.num_rows - known,
        changed=known - same,
        reused=same,
    )


def disagreement(held: pa.Table, target: pa.Table) -> str:
    """Return an empty string if both hold the same rows, or else a message with the first row that differs."""
    repeated = held.num_rows - len(pc.unique(held["chunk_id"]))
    if repeated:
        return f"{repeated} duplicate rows"
    for name, left, right in (("missing", target, held), ("left over", held, target)):
        alone = left["chunk_id"].filter(pc.invert(pc.is_in(_keys(left), _keys(right))))
        if len(alone):
            return f"{len(alone)} rows {name}, first chunk {alone[0].as_py()}"
    return ""


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["chunk_id"], rows["row_hash"], ":")
