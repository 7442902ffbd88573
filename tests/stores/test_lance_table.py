"""The indexes of the LanceDB table: they make filters fast, and change no answer."""

import pyarrow as pa
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.search.filters import Filters
from docindex_dagster.stores import lance_table
from docindex_dagster.stores.clean_up import compact
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY, OTHER = "library/pumps", "git/valves"
FILES = {"a.py": ["fill fills the tank", "drain empties the tank"], "b.py": ["shut closes the valve"]}
CONDITIONS = [
    Filters(),
    Filters(source_types=("commit",)),
    Filters(source_types=("code",), sources=(KEY,)),
    Filters(sources=(OTHER,), source_types=("code", "commit")),
]


def publish_files(layout: Layout, files: dict[str, list[str]], key: str = KEY, source_type: str = "code") -> None:
    chunks = chunks_of(files, key)
    of_type = pa.array([source_type] * chunks.num_rows)
    chunks = chunks.set_column(
        chunks.schema.get_field_index("source_type"), chunks.schema.field("source_type"), of_type
    )
    publish_rows(layout, key, chunks, vectors_of(chunks))


def plan_of(layout: Layout, condition: str) -> str:
    return str(open_reader(layout).table.search().where(condition).select(["chunk_id"]).explain_plan(verbose=True))


def ids_in(layout: Layout, condition: Filters) -> list[str]:
    found = open_reader(layout).table.search().where(condition.to_sql()).select(["chunk_id"]).limit(None).to_arrow()
    return sorted(found["chunk_id"].to_pylist())


def ids_of(layout: Layout, condition: Filters) -> list[str]:
    rows = open_reader(layout).table.to_arrow()
    return sorted(rows.filter(pa.array(condition.to_mask(rows)))["chunk_id"].to_pylist())


@pytest.fixture
def without_types(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """An index as an earlier version of docindex made it."""
    with monkeypatch.context() as patch:
        patch.setattr(lance_table, "_BITMAPS", ("source",))
        publish_files(layout, FILES)
    return layout


@pytest.mark.parametrize("column", ["source", "source_type"])
def test_a_filter_is_answered_by_an_index_once_the_table_was_compacted(layout, column):
    publish_files(layout, FILES)
    compact(layout)

    assert "ScalarIndexQuery" in plan_of(layout, f"{column} <> 'commit'")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_are_exact_also_on_rows_that_no_index_has_yet(layout, condition):
    publish_files(layout, FILES)
    publish_files(layout, FILES, OTHER, "commit")  # the index was made before these
    publish_files(layout, {"a.py": ["fill fills the basin"], "c.py": ["turn turns"]})

    assert open_reader(layout).table.index_stats("source_type_idx").num_unindexed_rows
    assert ids_in(layout, condition) == ids_of(layout, condition) != []


def test_a_table_of_an_earlier_version_gets_the_index_when_it_is_compacted(without_types):
    assert "ScalarIndexQuery" not in plan_of(without_types, "source_type <> 'commit'")

    compact(without_types)

    assert "ScalarIndexQuery" in plan_of(without_types, "source_type <> 'commit'")
    assert open_reader(without_types).table.index_stats("source_type_idx").num_unindexed_rows == 0


def test_a_table_that_is_written_anew_has_the_indexes(without_types):
    table = open_reader(without_types).table

    new = lance_table.rewrite(without_types, table, [KEY])

    assert {column for index in new.list_indices() for column in index.columns} == {"source", "source_type"}
