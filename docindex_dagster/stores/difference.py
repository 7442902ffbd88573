"""What separates the rows that a store holds from the rows that it should hold."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows to write and ids to delete, with counts for the metadata."""

    upserts: pa.Table
    deletes: pa.Array
    added: int
    changed: int
    reused: int

    @property
    def removed(self) -> int:
        """Rows that go away."""
        return len(self.deletes)

    @property
    def is_empty(self) -> bool:
        """The store already holds what it should."""
        return not self.upserts.num_rows and not self.removed


def difference(held: pa.Table, target: pa.Table) -> Difference:
    """Compare by (chunk_id, row_hash).

    Args:
        held: the columns chunk_id and row_hash of what the store holds for a source.
        target: the rows of that source, with these two columns among others.
    """
    is_held = pc.is_in(target["chunk_id"], held["chunk_id"])
    is_same = pc.is_in(keys(target), keys(held))
    known, same = (pc.sum(mask, min_count=0).as_py() or 0 for mask in (is_held, is_same))
    return Difference(
        upserts=target.filter(pc.invert(is_same)),
        deletes=held["chunk_id"].filter(pc.invert(pc.is_in(held["chunk_id"], target["chunk_id"]))).combine_chunks(),
        added=target.num_rows - known,
        changed=known - same,
        reused=same,
    )


def disagreement(held: pa.Table, target: pa.Table) -> str:
    """An empty string when both hold the same rows, else a sentence with the first row that they do not share."""
    if held.num_rows != len(pc.unique(held["chunk_id"])):
        return f"{held.num_rows - len(pc.unique(held['chunk_id']))} chunks are held twice"
    for name, left, right in (("missing", target, held), ("left over", held, target)):
        alone = left["chunk_id"].filter(pc.invert(pc.is_in(keys(left), keys(right))))
        if len(alone):
            return f"{len(alone)} rows {name}, first chunk {alone[0].as_py()}"
    return ""


def keys(rows: pa.Table) -> pa.ChunkedArray:
    """chunk_id and row_hash in one string."""
    return pc.binary_join_element_wise(rows["chunk_id"], rows["row_hash"], ":")
