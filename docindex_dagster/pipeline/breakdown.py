"""Small tables for the reports of stages: counts by kind, and what changed."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def counts(column: pa.ChunkedArray, name: str, unit: str) -> pa.Table:
    """How often each value of a column occurs, the most frequent first, in two columns of these names."""
    found = pc.value_counts(pc.fill_null(column, "none")).to_pylist()
    ranked = sorted(found, key=lambda item: (-item["counts"], item["values"]))
    return pa.table(
        {name: [item["values"] for item in ranked], unit: [item["counts"] for item in ranked]},
        schema=pa.schema([(name, pa.string()), (unit, pa.int64())]),
    )


def texts(names: Sequence[str], rows: Iterable[Sequence[str]]) -> pa.Table:
    """Rows of texts under names of columns."""
    columns = list(zip(*rows, strict=True)) or [() for _ in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=list(names))


def changes(table: pa.Table, previous: pa.Table | None, key: str, content: str) -> dict[str, int]:
    """How many rows are added, changed, reused and removed: `key` names a row, `content` says whether it changed."""
    if previous is None or not {key, content} <= set(previous.column_names):
        return {"added": table.num_rows, "changed": 0, "reused": 0, "removed": 0}
    old, new = ({*zip(rows[key].to_pylist(), rows[content].to_pylist(), strict=True)} for rows in (previous, table))
    known = {name for name, _ in old} & {name for name, _ in new}
    same = len(old & new)
    return {
        "added": len(new) - len(known),
        "changed": len(known) - same,
        "reused": same,
        "removed": len(old) - len(known),
    }
