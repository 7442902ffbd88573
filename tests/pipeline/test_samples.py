"""Dagster's UI shows sample chunks from well-known files."""

import pyarrow as pa

from docindex_dagster.pipeline.stage import pick_sample_chunks
from tests.conftest import chunks_of


def test_the_readme_comes_first_then_the_largest_files_by_their_definitions():
    files = {f".github/part{number}.py": ["x"] for number in range(9)}
    chunks = chunks_of(
        {**files, "README.md": ["Pumps", "Wells"], "core/app.py": ["app", "run", "stop"], "two.py": ["a", "b"]}
    )

    shown = pick_sample_chunks(chunks)

    assert shown["path"].to_pylist()[:3] == ["README.md", "core/app.py", "two.py"]
    assert shown["chunk_index"].to_pylist() == [0] * 5
    assert shown["qualified_name"].to_pylist()[1] == "app"
    assert len(set(shown["path"].to_pylist())) == 5


def test_of_no_chunks_none_is_shown():
    chunks = chunks_of({"a.py": ["x"]})

    assert pick_sample_chunks(chunks.slice(0, 0)).num_rows == 0


def test_files_without_definitions_are_shown_by_their_beginning():
    chunks = chunks_of({"a.md": ["x", "y"]})
    without = chunks.set_column(
        chunks.schema.get_field_index("qualified_name"), "qualified_name", pa.nulls(2, pa.string())
    )

    assert pick_sample_chunks(without)["chunk_index"].to_pylist() == [0]
