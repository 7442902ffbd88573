"""A table is set and removed in a TOML text; whatever else stands there stays, to the byte."""

import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docindex_dagster.agents.json_text import TextError
from docindex_dagster.agents.toml_edit import remove_table, set_table

PATH = ("mcp_servers", "docindex")
ENTRY = {"command": "docindex", "args": ["mcp", "--watch"], "env": {"DOCINDEX_ROOT": 'C:\\a "b"'}}

BLOCKS = st.sampled_from(
    [
        "# a note",
        "",
        "   ",
        'model = "gpt"  # mine',
        'text = """\n[mcp_servers.docindex]\ncommand = 1\n"""',
        "list = [\n  [1],\n  [2],\n]",
        "[mcp_servers]",
        '[mcp_servers.other]\ncommand = "x"',
        '[mcp_servers."docindex.two"]\ncommand = "x"',
        '[projects."/a/b"]\ntrust_level = "trusted"',
        "[[profiles]]\nname = 1",
        "[mcp_servers.other.env]\nA = 'b'",
    ]
)


@given(st.lists(BLOCKS, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_added_is_there_once_and_removed_to_the_byte(blocks, newline, is_ended):
    text = newline.join(blocks).replace("\r\n", "\n").replace("\n", newline) + (newline if is_ended else "")
    before = parsed(text)
    added = set_table(text, PATH, ENTRY)

    assert tomllib.loads(added) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "docindex": ENTRY}}
    assert set_table(added, PATH, ENTRY) == added
    assert remove_table(added, PATH) == text


def parsed(text):
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)


def test_a_file_that_is_made_goes_again():
    made = set_table(None, PATH, ENTRY)

    assert made == (
        '[mcp_servers.docindex]\ncommand = "docindex"\nargs = ["mcp", "--watch"]\n'
        'env = { DOCINDEX_ROOT = "C:\\\\a \\"b\\"" }\n'
    )
    assert remove_table(made, PATH) is None


def test_an_old_table_is_replaced_whole_at_the_end():
    text = '[mcp_servers.docindex]\ncommand = "old"  # by hand\nenv_file = "x"\n\n# of b\n[b]\nx = 1\n'

    assert set_table(text, PATH, {"command": "new"}) == (
        '\n# of b\n[b]\nx = 1\n\n[mcp_servers.docindex]\ncommand = "new"\n'
    )


def test_a_text_that_looks_like_the_table_is_none():
    text = '[mcp_servers.docindex]\ncommand = "x"\n\n# of b\n[b]\nt = """\n[mcp_servers.docindex]\n"""\n'
    removed = '\n# of b\n[b]\nt = """\n[mcp_servers.docindex]\n"""\n'

    assert remove_table(text, PATH) == removed
    assert set_table(text, PATH, {"command": "y"}) == removed + '\n[mcp_servers.docindex]\ncommand = "y"\n'


@pytest.mark.parametrize("edit", [remove_table, lambda text, path: set_table(text, path, ENTRY)])
def test_a_table_of_an_odd_name_costs_no_note_of_others(edit):
    with pytest.raises(TextError, match="cannot be edited"):
        edit('[a]\n[mcp_servers."doc\\u0069ndex"]\nx = 1\n\n# of b\n[b]\n', PATH)


OWN = st.sampled_from(
    [
        '[mcp_servers.docindex]\ncommand = "x"',
        '[mcp_servers.docindex]\n# within\ncommand = "x"  # mine\nargs = [\n  "a", # b\n]',
        "[ mcp_servers . 'docindex' ]",
        "[mcp_servers.docindex]\nenabled = true\n[mcp_servers.docindex.env]\nA = 'b'",
    ]
)


@given(st.lists(BLOCKS, max_size=4), OWN, st.lists(BLOCKS, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_a_table_of_any_layout_is_changed_and_removed_without_harm_to_others(before, own, behind, newline):
    text = (
        newline.join([*before, own, "# a note", "[z]", *behind]).replace("\r\n", "\n").replace("\n", newline) + newline
    )
    data = parsed(text)
    others = {name: server for name, server in data["mcp_servers"].items() if name != "docindex"}
    notes = 1 + [*before, *behind].count("# a note")

    changed, removed = set_table(text, PATH, ENTRY), remove_table(text, PATH)

    assert tomllib.loads(changed) == {**data, "mcp_servers": {**others, "docindex": ENTRY}}
    assert tomllib.loads(removed or "").get("mcp_servers", {}) == others
    for found in (changed, removed or ""):
        assert found.count("# a note") == notes
        assert newline == "\n" or "\n" not in found.replace("\r\n", "")


def test_a_table_between_others_goes_with_the_tables_in_it_and_leaves_the_notes_of_others():
    text = '[a]\nx = 1\n\n[mcp_servers.docindex]\ncommand = "x"\n[mcp_servers.docindex.env]\nA = "b"\n\n# of b\n[b]\n'

    assert remove_table(text, PATH) == "[a]\nx = 1\n\n# of b\n[b]\n"


@pytest.mark.parametrize("text", ['mcp_servers = { a = { command = "x" } }\n', 'mcp_servers.a.command = "x"\n'])
def test_tables_of_other_forms_are_edited_as_well(text):
    added = set_table(set_table(text, PATH, {"env": {"PATH": "x"}, "cwd": "y"}), PATH, ENTRY)

    assert tomllib.loads(added)["mcp_servers"] == {"a": {"command": "x"}, "docindex": ENTRY}
    assert tomllib.loads(remove_table(added, PATH) or "") == tomllib.loads(text)


@pytest.mark.parametrize("text", ["a = ", 'mcp_servers = "none"', "[mcp_servers\n", "a = " + "[" * 5000])
def test_what_is_no_toml_is_refused(text):
    with pytest.raises(TextError):
        set_table(text, PATH, ENTRY)
