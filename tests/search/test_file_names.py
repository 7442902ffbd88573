"""Overlap between queries and file names."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docindex_dagster.search import ranking
from docindex_dagster.search.ranking import contains_file_name, name_overlap
from docindex_dagster.stores.analysis import stems, terms


def named(path: str, query: str) -> float:
    return name_overlap(path, tuple(stems(terms(query))))


@pytest.mark.parametrize(
    ("path", "query", "share"),
    [
        ("lib/retry.py", "how requests are retried", 1),
        ("src/combineReducers.ts", "combining reducers", 1),  # each part of an identifier, and nothing else
        ("src/combine_reducers.ts", "reducers", 1 / 2),
        ("src/SqlMapper.Settings.cs", "SqlMapper", 2 / 3),  # everything before the extension
        ("lib/auth.py", "authentication", 1),
        ("lib/environment.py", "env", 1),
        ("lib/io.py", "iodine", 0),  # two letters are too short for a prefix
        ("lib/port.py", "import", 0),
        ("lib/tokens.py", "the weather", 0),
        (".gitignore", "gitignore", 1),
        ("lib/…", "anything", 0),  # no words
        ("lib/tokens.py", "", 0),
    ],
)
def test_the_share_of_a_files_name_that_a_query_has(path, query, share):
    assert named(path, query) == pytest.approx(share)


@pytest.mark.parametrize("file", ["mod.rs", "index.ts", "index.d.ts", "__init__.py", "init.lua"])
def test_a_file_that_stands_for_its_folder_is_called_as_the_folder(file):
    assert named(f"src/extract/{file}", "how extractors work") == 1
    assert named(f"src/extract/{file}", "an index module for initialisation") == 0


@pytest.mark.parametrize(
    ("query", "is_it"), [("fix README.md", True), ("fix readme md", True), ("fix the readme", False), ("", False)]
)
def test_a_name_is_written_with_its_ending(query, is_it):
    assert contains_file_name("docs/README.md", terms(query)) is is_it


def test_in_no_folder_it_is_called_as_it_is():
    assert named("index.ts", "the index") == 1


@given(
    word=st.text("ab", min_size=1, max_size=6),
    query=st.lists(st.text("ab", min_size=1, max_size=6), max_size=5, unique=True).map(tuple),
)
@example(word="port", query=("import",))
@example(word="imports", query=("import",))
def test_a_word_is_asked_for_by_itself_or_where_one_of_three_letters_begins_the_other(word, query):
    both = [one for one in query if min(len(one), len(word)) >= 3]

    expected = word in query or any(one.startswith(word) or word.startswith(one) for one in both)

    assert ranking._matches_word(word, query) is expected
