import pyarrow as pa
import pytest

from docindex_dagster.core.tables import concat_sorted_by_path, replace_rows


def _table(*rows: str) -> pa.Table:
    """Return a table of rows given as `path:text`."""
    paths, texts = zip(*(row.split(":") for row in rows), strict=True) if rows else ((), ())
    return pa.table({"path": pa.array(paths, pa.string()), "text": pa.array(texts, pa.string())})


def _rows(table: pa.Table) -> list[str]:
    return [f"{row['path']}:{row['text']}" for row in table.to_pylist()]


def test_rows_are_sorted_by_path_and_in_a_file_as_they_were_found():
    assert _rows(concat_sorted_by_path([_table("b:2", "a:9"), _table("b:1", "é:0", "a:3")])) == [
        "a:9",
        "a:3",
        "b:2",
        "b:1",
        "é:0",
    ]


@pytest.mark.parametrize(
    ("paths", "new", "expected"),
    [
        ((), (), ["b:1", "b:2", "d:3", "é:4"]),
        (("b",), ("b:5",), ["b:5", "d:3", "é:4"]),
        (("d",), (), ["b:1", "b:2", "é:4"]),
        (("a", "c", "z"), ("a:5", "c:6", "c:7", "z:8"), ["a:5", "b:1", "b:2", "c:6", "c:7", "d:3", "z:8", "é:4"]),
        (("b", "d", "é"), ("é:9",), ["é:9"]),
    ],
)
def test_old_rows_of_files_make_way_for_new_ones(paths, new, expected):
    assert _rows(replace_rows(_table("b:1", "b:2", "d:3", "é:4"), paths, _table(*new))) == expected


def test_a_table_in_pieces_is_taken_as_one():
    table = pa.concat_tables([_table("a:1", "b:2"), _table("b:3"), _table("c:4")])
    assert _rows(replace_rows(table, ["b"], _table("b:5"))) == ["a:1", "b:5", "c:4"]
