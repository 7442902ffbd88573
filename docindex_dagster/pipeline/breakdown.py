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
    of_both = [_keys(rows, key, content) for rows in (table, previous)]
    known, same = (_count_in(table[key], previous[key]), _count_in(*of_both))
    return {
        "added": table.num_rows - known,
        "changed": known - same,
        "reused": same,
        "removed": previous.num_rows - known,
    }


def _keys(table: pa.Table, key: str, content: str) -> pa.ChunkedArray:
    columns = table[key], table[content]
    return pc.binary_join_element_wise(*columns, "\0", null_handling="replace", null_replacement="\0")


def _count_in(values: pa.ChunkedArray, held: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_in(values, held), min_count=0).as_py() or 0
