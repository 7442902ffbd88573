"""Complete parse results for a fixture of each language match its outline."""

import pytest

from docindex_dagster.code.extraction import extract
from docindex_dagster.code.languages import LANGUAGES as KNOWN
from docindex_dagster.code.languages import has_symbols
from docindex_dagster.code.parsers import parse
from tests.code.outlines import FIXTURES, LANGUAGES, outline_of, outline_path, read_fixture, rendered


@pytest.mark.parametrize("file", LANGUAGES)
def test_all_that_is_read_is_what_the_outline_says(file):
    # To accept a change: python -m tests.code
    assert rendered(outline_of(file)) == outline_path(file).read_text("utf-8")


def test_every_language_with_a_query_has_a_fixture():
    assert sorted(LANGUAGES.values()) == sorted(language for language in KNOWN if has_symbols(language))


def test_every_file_is_a_fixture_or_its_outline():
    assert {path.name for path in FIXTURES.iterdir()} == {*LANGUAGES, *(outline_path(file).name for file in LANGUAGES)}


@pytest.mark.parametrize("file", LANGUAGES)
def test_a_fixture_has_50_to_150_lines(file):
    assert 50 <= read_fixture(file).count(b"\n") <= 150


@pytest.mark.parametrize("file", LANGUAGES)
def test_qualified_name_is_the_parent_and_the_name(file):
    for symbol in outline_of(file).symbols:
        assert symbol.qualified_name == (f"{symbol.parent}.{symbol.name}" if symbol.parent else symbol.name)


@pytest.mark.parametrize("file", LANGUAGES)
def test_lines_are_those_of_the_bytes(file):
    source = read_fixture(file)
    for symbol in outline_of(file).symbols:
        assert symbol.start_line == source.count(b"\n", 0, symbol.start_byte) + 1
        assert symbol.end_line == source.count(b"\n", 0, symbol.end_byte - 1) + 1


@pytest.mark.parametrize("file", LANGUAGES)
def test_calls_are_in_file_order(file):
    starts = [call.start_byte for call in outline_of(file).calls]
    assert starts == sorted(starts)


@pytest.mark.parametrize("file", LANGUAGES)
def test_windows_line_ends_change_nothing(file):
    source = read_fixture(file).replace(b"\n", b"\r\n")
    outline = extract(parse(source, LANGUAGES[file]), source, LANGUAGES[file])
    assert rendered(outline) == outline_path(file).read_text("utf-8")
