"""The LanceDB table index: it speeds up queries for the rows of a source and never changes an answer."""

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import lance_table
from docindex_dagster.stores.cleanup import compact
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY, OTHER = "library/pumps", "git/valves"
FILES = {"a.py": ["fill fills the tank", "drain empties the tank"], "b.py": ["shut closes the valve"]}


def publish_files(layout: Layout, files: dict[str, list[str]], key: str = KEY) -> None:
    chunks = chunks_of(files, key)
    publish_rows(layout, key, chunks, vectors_of(chunks))


def test_a_source_is_found_by_an_index_once_the_table_was_compacted(layout):
    publish_files(layout, FILES)
    compact(layout)

    asked = open_reader(layout).table.search().where(lance_table.sql_in("source", [KEY])).select(["chunk_id"])
    assert "ScalarIndexQuery" in str(asked.explain_plan(verbose=True))


def test_rows_that_no_index_has_yet_are_found(layout):
    publish_files(layout, FILES)
    publish_files(layout, FILES, OTHER)  # added after the index was built

    table = open_reader(layout).table
    assert table.index_stats("source_idx").num_unindexed_rows
    assert [lance_table.number(table, key) for key in (KEY, OTHER)] == [3, 3]


def test_a_table_that_is_written_anew_has_the_index(layout):
    publish_files(layout, FILES)

    new = lance_table.rewrite(layout, open_reader(layout).table, [KEY])

    assert [index.columns for index in new.list_indices()] == [["source"]]
