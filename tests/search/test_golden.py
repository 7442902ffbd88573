"""Golden queries: each published source must be found by its own text, at a cost independent of other sources."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.publication import golden_query
from docindex_dagster.stores import matrix
from tests.conftest import chunks_of, publish_rows, vectors_of

ONE, OTHER = "library/one", "library/other"
# More files than a retriever returns, so that chunks far from a query are not among the results.
FILES = {f"tree{number}.py": [f"tree{number} grows beside river {number}"] for number in range(240)}


def publish(layout: Layout, key: str, *, is_turned: bool = False) -> None:
    """Publish the files as a source. With `is_turned`, vectors point away from the meaning of their texts."""
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
    """Record the names of the files that are read."""
    names: list[str] = []
    reading = tables.read_arrow

    def read_file(path: Path) -> pa.Table:
        names.append(path.name)
        return reading(path)

    monkeypatch.setattr(tables, "read_arrow", read_file)
    return names


def test_what_is_published_is_found_by_its_own_text(layout):
    publish(layout, ONE)
    publish(layout, OTHER, is_turned=True)

    assert golden_query(layout, ONE, StaticEmbedder) == ""


def test_it_says_which_retriever_does_not_find_a_chunk(layout):
    publish(layout, ONE, is_turned=True)
    publish(layout, OTHER)

    assert golden_query(layout, ONE, StaticEmbedder).startswith("vector did not find ")


@pytest.mark.parametrize("most_bytes", [matrix._MAX_BYTES, 0])
def test_only_the_rows_of_the_source_are_read(layout, monkeypatch, read, most_bytes):
    publish(layout, ONE)
    publish(layout, OTHER)
    monkeypatch.setattr(matrix, "_MAX_BYTES", most_bytes)
    read.clear()

    golden_query(layout, ONE, StaticEmbedder)

    assert {name.partition(".")[0] for name in read} == {file_name(ONE)}


def test_a_source_that_is_not_published_has_nothing_to_find(layout):
    publish(layout, ONE)

    assert golden_query(layout, "library/unknown", StaticEmbedder) == ""


def test_the_search_engine_is_not_loaded_before_something_is_published():
    code = "import sys, docindex_dagster.pipeline.stages; sys.exit('docindex_dagster.search.engine' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
