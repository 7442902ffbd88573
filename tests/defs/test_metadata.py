"""Metadata of assets and checks: bounded in size, and readable in the UI without a click."""

import dagster as dg
import pyarrow as pa

from docindex_dagster.defs import metadata


def test_a_warning_about_many_sources_shows_the_first_ones_and_counts_all():
    shown = metadata.source_problems(
        {f"library/l{number:02}": "no such folder" for number in range(23)}, "Bring it back."
    )

    assert (shown["count"], shown["what to do"]) == (23, "Bring it back.")
    assert [record.data["source"] for record in shown["sources"].records] == [f"library/l{at:02}" for at in range(20)]
    assert shown["left out"] == "3 more: `docindex status` lists all"


def test_a_check_that_warns_of_nothing_shows_a_number_that_plots():
    assert metadata.source_problems({}, "Nothing.") == {"count": 0}


def test_a_cell_is_one_line_and_says_where_it_was_cut():
    table = metadata.sample_rows(pa.table({"text": ["def f():\n\n    return 1\n", "x" * 300, None]}))

    assert isinstance(table, dg.TableMetadataValue)
    assert [record.data["text"] for record in table.records] == ["def f(): ⏎ return 1", "x" * 199 + "…", ""]


def test_the_names_of_types_are_short():
    wide = pa.struct([("name", pa.string()), ("kind", pa.string())])
    columns = {"symbols": pa.list_(wide), "parameters": pa.list_(pa.string()), "vector": pa.list_(pa.float16(), 256)}

    shown = metadata.column_schema(pa.schema(list(columns.items())))

    assert [column.type for column in shown.columns] == ["list<struct>", "list<string>", "list<halffloat>[256]"]
