"""Matches by file, line and column equal those found by reading the files directly."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.matches import Matches, find_matches, lines_of
from docindex_dagster.search.text_scan import Pattern
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import publish_rows, vectors_of
from tests.graph.samples import KEY, chunks_of

LONG = "value = [" + ", ".join(f"'item {number}'" for number in range(4000)) + "]\n"
FILES = {
    "lib/arrows.py": "def first(a):\n    return a ->> a  # ->> twice\n\n\ndef second():\n    return 'Größe ->>'\n",
    "lib/long.py": f"# one line that is longer than any chunk\n{LONG}",
    "docs/guide.md": "# Guide\n\n" + "".join(f"Sentence {n} of the guide says ->> a little.\n" for n in range(300)),
    "docs/windows.txt": "one\r\ntwo ->> three\r\n",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of(FILES)
    assert len([path for path in chunks["path"].to_pylist() if path == "lib/long.py"]) > 1
    publish_rows(layout, KEY, chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, text: str, *, is_regex: bool = False, limit: int = 0, path: str | None = None) -> Matches:
    return find_matches(Pool(reader, Filters(path_glob=path), limit), Pattern(text, is_regex))


def expected(pattern: str) -> list[tuple[str, int, int, str]]:
    return [
        (path, number, match.start() + 1, line.removesuffix("\r"))
        for path, text in sorted(FILES.items())
        for number, line in enumerate(text.split("\n"), start=1)
        for match in re.finditer(pattern, line if "\r" in pattern else line.removesuffix("\r"))
    ]


def places(found: Matches) -> list[tuple[str, int, int, str]]:
    return [(match.path, match.line, match.column, match.text) for match in found.matches]


@pytest.mark.parametrize("text", ["->>", "item 399", "'", "Größe", "nowhere", "\r"])
def test_an_exact_text_is_found_at_each_place_once(reader, text):
    found = find(reader, text)
    assert places(found) == expected(re.escape(text))
    assert (found.total, found.files) == (len(found.matches), len({match.path for match in found.matches}))


@pytest.mark.parametrize(
    "pattern", [r"item \d9+'", "^def", r"\w+\(", "(?i)GUIDE|size", r"->> \w+$", r"'item 3\d*', 'item 3"]
)
def test_a_pattern_is_found_at_each_place_once(reader, pattern):
    assert places(find(reader, pattern, is_regex=True)) == expected(pattern)


@given(st.text(alphabet="item 0123,'", min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_texts_that_chunks_cut_are_found(reader, text):
    assert places(find(reader, text)) == expected(re.escape(text))


def test_the_first_are_shown_and_all_are_counted(reader):
    found = find(reader, "->>", limit=3)
    assert places(found) == expected("->>")[:3]
    assert found.total == len(expected("->>"))


def test_filters_hold(reader):
    found = find(reader, "->>", path="lib")
    assert {match.path for match in found.matches} == {"lib/arrows.py"}


def test_a_match_over_two_lines_is_at_its_first(reader):
    (match,) = find(reader, "first\\(a\\):\n +return", is_regex=True).matches
    assert (match.line, match.column, match.end, match.text) == (1, 5, len(match.text) + 1, "def first(a):")


def test_characters_that_mark_matches_may_be_in_the_text():
    text = "a \ue000 b \ue001 a"
    assert Pattern("a", is_regex=True).places(text) == [(0, 1), (8, 9)]


def test_the_lines_around_a_match_are_those_of_the_file(reader):
    match = next(match for match in find(reader, "->>").matches if match.path == "docs/guide.md")
    assert lines_of(Pool(reader, Filters(), 0), match) == dict(enumerate(FILES["docs/guide.md"].splitlines(), start=1))


def test_a_search_that_takes_too_long_is_refused(reader):
    with pytest.raises(QueryError, match="takes too long"):
        find_matches(Pool(reader, Filters(), 0), Pattern("->>", is_regex=False), longest_s=-1)
