"""Counts of changes between two tables."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.pipeline.stage import changes

ROWS = st.dictionaries(st.sampled_from("abcde"), st.none() | st.sampled_from(["1", "2", ""]))


def table(rows: dict[str, str | None]) -> pa.Table:
    return pa.table({"key": pa.array(rows.keys(), pa.string()), "content": pa.array(rows.values(), pa.string())})


@given(before=ROWS, now=ROWS)
def test_rows_are_counted_by_their_keys_and_what_they_hold(before, now):
    both = now.keys() & before.keys()

    assert changes(table(now), table(before), "key", "content") == {
        "added": len(now.keys() - before.keys()),
        "changed": sum(now[key] != before[key] for key in both),
        "reused": sum(now[key] == before[key] for key in both),
        "removed": len(before.keys() - now.keys()),
    }


def test_without_a_table_before_all_rows_are_new():
    assert changes(table({"a": "1"}), None, "key", "content") == {"added": 1, "changed": 0, "reused": 0, "removed": 0}
