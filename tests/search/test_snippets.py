"""Snippets: the lines of a chunk that are shown, and the highlights in them."""

from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.search.model import Snippet
from docindex_dagster.search.snippets import of_words, snippet
from docindex_dagster.stores.analysis import stems, terms


def shown(text: str, query: str) -> Snippet:
    return snippet(text, of_words(frozenset(stems(terms(query)))))


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.highlights]


LINES = "def wait(seconds):\n    '''Wait.'''\n\n    x = 1\n    y = 2\n    retry_after = 3\n    z = 4"


def test_it_begins_where_most_of_the_query_is():
    found = shown(LINES, "retry after z")

    assert (found.offset, found.text.split("\n")[0]) == (5, "    retry_after = 3")
    assert marked(found) == ["retry_after", "z"]


def test_without_a_word_of_the_query_it_is_the_beginning():
    assert shown(LINES, "elephants").offset == 0
    assert shown(LINES, "elephants").highlights == ()


def test_other_forms_of_a_word_and_parts_of_names_are_marked():
    assert marked(shown("the server retries, as retryPolicy says", "retrying")) == ["retries", "retryPolicy"]


def test_of_a_very_long_line_what_is_around_the_match_is_shown():
    found = shown("a " * 5_000 + "needle" + " b" * 5_000, "needle")

    assert len(found.text) < 300
    assert marked(found) == ["needle"]
    assert found.text.startswith("…")
    assert found.text.endswith("…")


@given(st.text(alphabet="ab \n_Aß漢"), st.text(alphabet="ab A", min_size=1))
def test_it_is_made_of_lines_of_the_text_and_highlights_lie_inside(text, query):
    found = shown(text, query)

    lines = text.split("\n")
    assert found.text.split("\n") == lines[found.offset : found.offset + 4]
    assert all(0 <= start < end <= len(found.text) for start, end in found.highlights)
    assert all("\n" not in part for part in marked(found))
