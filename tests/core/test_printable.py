"""Text from untrusted sources is shown with every character visible and none interpreted by a terminal."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.safe_text import escape_json, make_visible, on_one_line
from docindex_dagster.graph.export import Format, export
from docindex_dagster.render.console import VisibleConsole
from tests.graph.samples import opened

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}
BLANK = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0",
    *map(chr, [*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)]),
}
HOSTILE = "a\x1b[31m\x9b2J\u202eb\u2066c\u200bd\u2028e\ufefff\U000e0041"


def unseen(text: str, *, kept: str = "") -> list[str]:
    return [char for char in text if unicodedata.category(char) in UNSEEN and char not in kept]


def test_no_character_that_cannot_be_seen_is_left_and_every_other_is():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        shown = on_one_line(char)
        assert len(shown) == 1
        assert not unseen(shown)
        assert shown not in BLANK
        # Includes unassigned characters, which later versions of Unicode may define.
        assert shown == char or unicodedata.category(char) in {*UNSEEN, "Cn"} or char in BLANK


def test_a_console_shows_no_plain_string_as_it_is(capsys):
    VisibleConsole(force_terminal=False).print(f"git/{HOSTILE}: 3 files", "[bold]and brackets[/bold]")

    shown = capsys.readouterr().out
    assert not unseen(shown, kept="\n")
    assert "[bold]and brackets[/bold]" in shown


@given(st.text())
def test_lines_and_tabs_stay_where_lines_are_shown(text):
    assert not unseen(make_visible(text), kept="\n\t")
    assert make_visible(text).count("\n") == text.replace("\r\n", "\n").count("\n")


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_the_same_and_holds_no_such_character(value):
    text = escape_json(json.dumps(value, indent=1, ensure_ascii=False))

    assert json.loads(text) == value
    assert not unseen(text, kept="\n")


@pytest.mark.parametrize("form", Format)
def test_a_graph_is_exported_without_such_characters(form):
    graph = opened({f"{HOSTILE}.py": "def open_valve():\n    pass\n"})

    assert not unseen("".join(export(graph, form)), kept="\n")


def test_graphml_says_which_character_it_was():
    names = ["a\u202ab.py", "a\u202bb.py", "a\x1bb.py", "a\x9bb.py", "a\rb.py", "a\nerror: b.py"]
    graph = opened(dict.fromkeys(names, "def open_valve():\n    pass\n"))

    from networkx import parse_graphml

    text = "".join(export(graph, Format.GRAPHML))
    assert all(line.startswith("<") for line in text.splitlines())
    nodes = set(parse_graphml(text))
    assert {f"library/sample!{name}" for name in names if name != "a\x1bb.py"} < nodes
    assert "library/sample!a\u241bb.py" in nodes  # XML cannot represent the escape character
