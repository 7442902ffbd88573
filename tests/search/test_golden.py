"""The golden query: what was just published must be found by its own text, at a cost that others do not raise."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.golden import golden_query
from docindex_dagster.stores import lance_table, matrix, vector_files
from tests.conftest import chunks_of, publish_rows, vectors_of

if TYPE_CHECKING:
    from lancedb.table import LanceTable  # who imports it first decides what it logs

ONE, OTHER = "library/one", "library/other"
# More than a retriever gives, so that what is far from a query is not among them.
FILES = {f"tree{number}.py": [f"tree{number} grows beside river {number}"] for number in range(240)}


def publish(layout: Layout, key: str, *, is_turned: bool = False) -> None:
    """Publish the files as a source; turned vectors lead away from what their texts mean."""
    chunks = chunks_of(FILES, key)
    vectors = vectors_of(chunks)
    if is_turned:
        column = vectors["vector"].combine_chunks()
        turned = pa.FixedSizeListArray.from_arrays(
            pa.array(-column.flatten().to_numpy(zero_copy_only=False)), column.type.list_size
        )
        position = vectors.schema.get_field_index("vector")
        vectors = vectors.set_column(position, vectors.schema.field(position), turned.cast(column.type))
    publish_rows(layout, key, chunks, vectors)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources whose vectors are read."""
    keys: list[str] = []
    reading, reading_table = vector_files.read, lance_table.read_part

    def read_file(layout: Layout, key: str, version: str) -> matrix.Part | None:
        keys.append(key)
        return reading(layout, key, version)

    def read_table(table: "LanceTable", key: str) -> matrix.Part:
        keys.append(key)
        return reading_table(table, key)

    monkeypatch.setattr(vector_files, "read", read_file)
    monkeypatch.setattr(lance_table, "read_part", read_table)
    return keys


def test_what_is_published_is_found_by_its_own_text(layout):
    publish(layout, ONE)
    publish(layout, OTHER, is_turned=True)

    assert golden_query(layout, ONE, StaticEmbedder) == ""


def test_it_says_which_retriever_does_not_find_a_chunk(layout):
    publish(layout, ONE, is_turned=True)
    publish(layout, OTHER)

    assert golden_query(layout, ONE, StaticEmbedder).startswith("vector did not find ")


def test_only_the_vectors_of_the_source_are_read(layout, read):
    publish(layout, ONE)
    publish(layout, OTHER)
    read.clear()

    golden_query(layout, ONE, StaticEmbedder)

    assert set(read) == {ONE}


def test_where_vectors_are_too_many_to_be_compared_the_table_is_asked(layout, monkeypatch, read):
    publish(layout, ONE, is_turned=True)
    publish(layout, OTHER)
    one_source = len(FILES) * StaticEmbedder.dimension * 4
    monkeypatch.setattr(matrix, "_MOST_BYTES", one_source)  # so that both together are too many
    asked: list[Path] = []
    opening = lance_table.open_for_reading

    def open_table(layout: Layout, name: str, version: int) -> "LanceTable":
        asked.append(layout.home)
        return opening(layout, name, version)

    monkeypatch.setattr(lance_table, "open_for_reading", open_table)

    assert golden_query(layout, ONE, StaticEmbedder).startswith("vector did not find ")
    assert asked == [layout.home]


def test_a_source_that_is_not_published_has_nothing_to_find(layout):
    publish(layout, ONE)

    assert golden_query(layout, "library/unknown", StaticEmbedder) == ""
