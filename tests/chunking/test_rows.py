"""Rows of the `chunks` table, and the fields that their hashes cover."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.chunking.embedding_text import embed_texts
from docindex_dagster.chunking.rows import chunk_id, with_row_hashes
from docindex_dagster.core.schemas import CHUNKS
from tests.conftest import chunks_of

ROW = chunks_of({"a.py": ["alpha reads a file"]})


def changed(value: Any, kind: pa.DataType) -> Any:
    """Return another value of the same type."""
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind):
        return (value or 0) + 1
    if pa.types.is_string(kind):
        return f"{value or ''}~"
    if pa.types.is_struct(kind.value_type):
        return [{"name": "other", "kind": None, "qualified_name": None, "parent": None, "start_line": 1, "end_line": 1}]
    return [*(value or []), "other"]


@pytest.mark.parametrize("column", [name for name in CHUNKS.names if name != "row_hash"])
def test_the_row_hash_covers_every_other_column(column):
    (row,) = ROW.to_pylist()
    row[column] = changed(row[column], CHUNKS.field(column).type)

    other = with_row_hashes(pa.Table.from_pylist([row], CHUNKS))

    assert other["row_hash"][0] != ROW["row_hash"][0]


@given(st.text(), st.text(), st.text(), st.text())
def test_text_that_moves_between_columns_changes_the_row_hash(section, subsection, other_section, other_subsection):
    (row,) = ROW.to_pylist()
    pairs = [(section, subsection), (other_section, other_subsection)]
    rows = [{**row, "section": left, "subsection": right} for left, right in pairs]

    first, second = with_row_hashes(pa.Table.from_pylist(rows, CHUNKS))["row_hash"].to_pylist()

    assert (first == second) == (pairs[0] == pairs[1])


def test_a_missing_value_is_not_an_empty_one():
    (row,) = ROW.to_pylist()
    rows = [{**row, "section": value} for value in (None, "", "-")]

    assert len(set(with_row_hashes(pa.Table.from_pylist(rows, CHUNKS))["row_hash"].to_pylist())) == 3


def test_a_chunk_id_depends_on_source_path_and_position_alone():
    assert chunk_id("a", "b", 1) == ROW_ID
    assert len({chunk_id("a", "b", 1), chunk_id("ab", "", 1), chunk_id("a", "b1", 1), chunk_id("a", "b", 11)}) == 4


ROW_ID = chunk_id("a", "b", 1)


def test_the_embedded_text_stands_under_its_path_and_name():
    assert embed_texts(ROW).to_pylist() == ["a.py alpha function\nalpha reads a file"]
