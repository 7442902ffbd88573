"""`Index.tables()` returns all published data as Arrow, pandas and NumPy."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from docindex_dagster import Index, QueryError, SourceError, open_index
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, COMMITS, NODES, TRIPLES, embeddings_schema
from docindex_dagster.stores import published_tables

NAMES = ("chunks", "embeddings", "nodes", "edges", "commits")
SOURCES = ("git/station", "library/manual")


@pytest.fixture
def index(root) -> Index:
    return open_index(root)


def of_run(root, asset: str) -> pa.Table:
    """Return the table of an asset from the last runs of both sources."""
    found = [tables.read(Layout(root / ".docindex").table(asset, key)) for key in SOURCES]
    return pa.concat_tables([table.replace_schema_metadata(None) for table in found])


@pytest.mark.parametrize(
    ("name", "asset", "schema"),
    [
        ("chunks", "chunks", CHUNKS),
        ("embeddings", "embeddings", embeddings_schema(256)),
        ("nodes", "graph_nodes", NODES),
        ("edges", "graph_triples", TRIPLES),
        ("commits", "commits", COMMITS),
    ],
)
def test_a_table_has_the_published_schema_and_all_rows(root, index, name, asset, schema):
    table = getattr(index.tables(), name)

    assert table.schema.equals(schema)
    assert table.to_arrow().schema.equals(schema)
    assert table.to_arrow().num_rows > 0
    assert table.to_arrow().equals(of_run(root, asset))


def test_only_the_sources_that_are_named_are_read(index):
    found = index.tables(sources="manual")

    assert found.sources == ("library/manual",)
    assert set(found.chunks.to_arrow()["source"].to_pylist()) == {"library/manual"}
    assert set(found.nodes.to_arrow()["source"].to_pylist()) == {"library/manual"}
    assert found.commits.to_arrow().num_rows == 0
    assert len(found.vectors()) == found.chunks.to_arrow().num_rows
    assert index.tables().sources == SOURCES
    with pytest.raises(SourceError, match="source 'nowhere' not found"):
        index.tables("nowhere")


def test_vectors_are_an_array_in_the_order_of_the_chunks(index):
    found = index.tables()
    vectors = found.vectors()
    rows = found.embeddings.to_arrow()

    assert (vectors.shape, vectors.dtype) == ((found.chunks.to_arrow().num_rows, 256), np.float16)
    assert rows["chunk_id"].equals(found.chunks.to_arrow()["chunk_id"])
    assert vectors.tolist() == rows["vector"].to_pylist()
    assert set(rows["model"].to_pylist()) == {found.model}
    single = found.vectors("float32")
    assert (single.shape, single.dtype) == (vectors.shape, np.float32)
    assert np.allclose(np.linalg.norm(single, axis=1), 1, atol=1e-3)
    with pytest.raises(QueryError, match="invalid dtype 'int8': expected float16 or float32"):
        found.vectors("int8")


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_small_and_together_all_rows(index, name, monkeypatch):
    table = getattr(index.tables(), name)
    whole = table.to_arrow()
    monkeypatch.setattr(published_tables, "_ROWS", 2)

    batches = list(table.to_batches())

    assert all(0 < batch.num_rows <= 2 for batch in batches)
    assert pa.Table.from_batches(batches, table.schema).equals(whole.combine_chunks())


def test_columns_come_as_they_are_asked_for(index):
    chunks = index.tables().chunks

    assert chunks.to_arrow(["text", "path"]).column_names == ["text", "path"]
    assert chunks.to_arrow("path").schema == pa.schema([CHUNKS.field("path")])
    assert index.tables().embeddings.to_arrow("model").column_names == ["model"]
    assert index.tables().edges.to_arrow(("object", "subject")).column_names == ["object", "subject"]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("texts", "column 'texts' not found. Columns: chunk_id, row_hash"),
        (["path", "\ud800"], "column '\\ud800' not found"),
        ([], "at least one column"),
        (["path", "path"], "without duplicates"),
    ],
)
def test_columns_that_there_are_not_are_reported(index, columns, problem):
    with pytest.raises(QueryError) as reported:
        index.tables().chunks.to_arrow(columns)

    assert problem in str(reported.value)


def test_commits_that_a_run_is_about_to_publish_are_not_among_them(root, index):
    file = Layout(root / ".docindex").table("commits", "git/station")
    rows = tables.read(file)
    later = rows.set_column(rows.schema.get_field_index("commit"), rows.schema.field("commit"), [["f" * 40]])
    tables.write(file, tables.stamp(pa.concat_tables([later, rows]), "later"))

    found = index.tables().commits.to_arrow(["commit", "subject"]).to_pylist()

    assert found == rows.select(["commit", "subject"]).to_pylist()


def test_without_pandas_it_says_how_to_install_it(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[pandas\]'"):
        index.tables().chunks.to_pandas()


@pytest.mark.extras
@pytest.mark.parametrize("name", NAMES)
def test_every_table_is_a_data_frame_of_pandas(index, name):
    pytest.importorskip("pandas")
    table = getattr(index.tables(), name)

    frame = table.to_pandas()

    assert list(frame.columns) == table.schema.names
    assert len(frame) == table.to_arrow().num_rows


@pytest.mark.extras
def test_hits_and_steps_make_data_frames(index):
    pandas = pytest.importorskip("pandas")

    assert "pump.py" in " ".join(pandas.DataFrame(index.search("pump"))["path"])
    assert list(pandas.DataFrame(index.graph.callers("prime_pump"))["predicate"]) == ["calls"]
