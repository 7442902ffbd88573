"""Files chunked as plain text: how they are counted and reported."""

import pyarrow as pa
import pytest

from docindex_dagster.chunking.table_rules import fallbacks, is_above_threshold, left_out_warning, warning

SLOW = "time-out: not parsed within 10 s"


def test_the_files_that_were_cut_as_text_are_reported_once_each_with_the_reason():
    chunks = pa.table({"path": ["a.py", "b.py", "b.py"], "fallback": [None, SLOW, SLOW]})

    assert fallbacks(chunks) == {"b.py": SLOW}


@pytest.mark.parametrize(("cut", "files", "many"), [(0, 0, False), (2, 100, False), (3, 100, True), (1, 20, True)])
def test_over_two_percent_of_the_files_are_many(cut, files, many):
    assert is_above_threshold(cut, files) is many


def test_the_warning_names_the_first_ones_and_says_who_names_the_others():
    cut = {f"{name}.py": SLOW for name in "abcde"}

    assert warning(cut, 1000) == ""
    assert warning(cut, 100) == (
        f"5 of 100 files are cut as text: a.py ({SLOW}), b.py ({SLOW}), c.py ({SLOW}) and 2 more; "
        "list them with `docindex doctor --json`"
    )
    assert warning({"a.py": SLOW}, 3) == f"1 of 3 files is cut as text: a.py ({SLOW})"


def test_files_that_are_left_out_are_named_with_the_reason():
    reasons = "skipped until the next run because of changes during indexing"

    assert left_out_warning([]) == ""
    assert left_out_warning([("a.md", "empty: no text")]) == f"1 file is {reasons}: a.md (empty: no text)"
    assert left_out_warning([(name, "gone") for name in "abcde"]).startswith(
        f"5 files are {reasons}: a (gone), b (gone)"
    )
