"""`docindex help` explains commands and topics; the topics are the documentation pages."""

import re
from pathlib import Path

import pytest

from docindex_dagster.cli.help import _for_terminals
from docindex_dagster.core import installation

ROOT = Path(__file__).parents[2]


def test_it_lists_all_commands_and_all_pages(run):
    shown = run("help").out
    names = re.findall(r"^  ([\w-]+)  ", shown, re.MULTILINE)
    assert {"index", "search", "support", "help"} <= {*names}
    assert {page.stem for page in (ROOT / "docs").rglob("*.md")} <= {*names}


@pytest.mark.parametrize("words", [("search",), ("source", "add"), ("graph", "callers")])
def test_of_a_command_it_shows_what_its_option_help_does(run, words):
    assert run("help", *words).out == run(*words, "--help").out


def test_a_topic_is_its_page(run):
    shown = run("help", "run-for-a-team")
    assert shown.code == 0
    assert shown.out.startswith("# Keep an index fresh for a team")


def test_the_page_of_a_name_that_is_a_command_too_is_an_option_away(run):
    assert run("help", "--page", "search").out.startswith("# Search")
    assert "see also the page: `docindex help --page search`" in run("help", "search").err
    assert "# " in run("help", "search", "filter").out


def test_words_choose_sections_by_their_headings(run):
    shown = run("help", "run-for-a-team", "alerts").out
    headings = [line for line in shown.split("\n") if line.startswith("#")]
    assert headings == ["## Get alerts"]


@pytest.mark.parametrize("topic", ["settings", "configuration"])
def test_a_topic_may_be_called_as_users_call_it(run, topic):
    assert run("help", topic).out.startswith("# Settings")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "command or topic 'nothing' not found"),
        (("settings", "zebras"), "no section of settings has 'zebras'"),
        (("source", "nothing"), "`docindex source` has no command 'nothing'"),
        (("search", "zebras"), "no section of search has 'zebras'"),
        (("index", "nothing"), "`docindex index` has no command 'nothing'"),
    ],
)
def test_what_is_not_there_is_an_error(run, words, message):
    output = run("help", *words)
    assert (output.code, output.out) == (1, "")
    assert message in output.err


def test_links_to_other_pages_say_how_to_read_them_and_examples_stay(monkeypatch):
    monkeypatch.setattr(installation, "pages", lambda: {"search": Path("search.md")})
    page = "See [modes](../how-to/search.md#modes), [above](#top), [it](https://example.org).\n![A](a.png)"
    page += "\n    [x](search.md)"
    assert _for_terminals(page) == (
        "See modes (`docindex help --page search`), above, [it](https://example.org).\n\n    [x](search.md)"
    )


def test_without_pages_the_commands_are_listed(run, monkeypatch):
    monkeypatch.setattr(installation, "docs_folder", lambda: None)
    output = run("help")
    assert (output.code, "search" in output.out) == (0, True)
