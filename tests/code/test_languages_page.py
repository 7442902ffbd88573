"""The tables of docs/reference/languages.md match the fixtures."""

import re

import pytest

from tests.code.cells import CELLS, DASH, NO_NOTION, PAGE, count, with_table
from tests.code.outlines import LANGUAGES, outline_of, read_fixture

FILES = {language: file for file, language in LANGUAGES.items()}


def forms() -> list[tuple[str, str, str]]:
    """Return the language, form and name of each definition in the table of forms."""
    table = PAGE.read_text("utf-8").split("<!-- forms -->\n")[1].split("<!-- /forms -->")[0]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [
        (row[0], form, name.strip("`"))
        for row in rows
        for form, name in zip(head[1:], row[1:], strict=True)
        if name != DASH
    ]


def named(language: str, name: str):
    return [symbol for symbol in outline_of(FILES[language]).symbols if symbol.qualified_name == name]


def test_the_table_of_cells_is_that_of_the_fixtures():
    # To accept a change: python -m tests.code
    page = PAGE.read_text("utf-8")
    assert page == with_table(page)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("file", LANGUAGES)
def test_a_cell_is_filled_where_the_language_has_a_notion_of_it(file, cell):
    has_notion = cell not in NO_NOTION.get(LANGUAGES[file], ())
    assert bool(count(file, cell)) == has_notion


def test_the_table_of_forms_has_every_language():
    assert {language for language, _, _ in forms()} == set(LANGUAGES.values())


@pytest.mark.parametrize(("language", "form", "name"), forms())
def test_a_form_is_in_the_fixture(language, form, name):
    symbols = named(language, name)
    lines = [" ".join(line.split()) for line in read_fixture(FILES[language]).decode().splitlines()]
    assert symbols
    if form == "nested":
        assert named(language, symbols[0].parent)
    if form == "overloaded":
        assert len(symbols) > 1
    if form == "asynchronous":
        assert any(re.search(r"\b(async|suspend)\b", symbol.signature) for symbol in symbols)
    if form == "over several lines":
        assert any(all(symbol.signature not in line for line in lines) for symbol in symbols)
