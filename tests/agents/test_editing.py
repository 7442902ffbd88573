"""Tests of setting and removing entries in JSON and TOML: other entries stay, in TOML with comments and layout."""

import json
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docindex_dagster.cli.agents.catalogue import Server, agents
from docindex_dagster.cli.agents.changes import with_server, without_server
from docindex_dagster.cli.agents.editing import TextError, parsed, with_entry

GROUP, NAME = "servers", "docindex"
ENTRY = {"type": "stdio", "command": "docindex", "args": ["mcp", "--watch"], "env": {"ROOT": "/x"}}
SERVER = Server("docindex", ("mcp", "--watch"), {"DOCINDEX_ROOT": 'C:\\a "b"'})


def add(text, data=ENTRY):
    return with_entry(text, "jsonc", GROUP, NAME, data)


def remove(text):
    return with_entry(text, "jsonc", GROUP, NAME, None)


def data_of(text):
    return parsed(text, "jsonc")


SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "  \n    "])
KEYS = st.sampled_from(["servers", "other", "docindex", 'a"b', "ü", ""])
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
    ),
    lambda values: st.one_of(st.lists(values, max_size=2), st.dictionaries(KEYS, values, max_size=3)),
    max_leaves=5,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3).flatmap(
    lambda data: st.one_of(
        st.just({key: value for key, value in data.items() if key != "servers"}),
        st.dictionaries(KEYS, VALUES, max_size=3).map(lambda servers: {**data, "servers": servers}),
    )
)
TEXTS = st.tuples(
    SPACES,
    st.tuples(OBJECTS, st.sampled_from([None, 2, 4, "\t"])).map(lambda one: json.dumps(one[0], indent=one[1])),
    SPACES,
).map("".join)


@given(TEXTS)
def test_what_is_added_is_there_once_and_removed_without_harm_to_others(text):
    before = data_of(text)
    others = {key: value for key, value in before.get("servers", {}).items() if key != "docindex"}
    added = add(text)
    removed = remove(added)

    assert data_of(added) == {**before, "servers": {**others, "docindex": ENTRY}}
    assert {"servers": {}, **data_of(removed)} == {**before, "servers": others}
    if "docindex" in before.get("servers", {}):
        assert {"servers": {}, **data_of(remove(text))} == {**before, "servers": others}


@pytest.mark.parametrize(
    "text",
    [
        '{\n    "a": 1,\n    "b": [2, 3]\n}\n',
        '{\n\t"a": "ü",\n\t"servers": {\n\t\t"a": {\n\t\t\t"args": []\n\t\t}\n\t}\n}',
        '\ufeff{\r\n  "a": [\r\n    {\r\n      "b": null\r\n    }\r\n  ]\r\n}\r\n',
    ],
)
def test_beside_other_entries_of_the_usual_layout_one_is_removed_to_the_byte(text):
    assert remove(add(text)) == text


@given(st.text(" \t\r\n", max_size=4))
def test_a_file_that_holds_nothing_yet_gets_the_entry(text):
    assert data_of(add(text)) == {"servers": {"docindex": ENTRY}}


def test_a_file_that_is_made_goes_again():
    assert data_of(add(None)) == {"servers": {"docindex": ENTRY}}
    assert remove(add(None)) is None


def test_a_new_member_looks_like_those_beside_it():
    assert add('{\n    "a": 1,\n    "b": 2\n}\n', {"command": "x", "args": ["y"]}) == (
        '{\n    "a": 1,\n    "b": 2,\n    "servers": {\n        "docindex": {\n'
        '            "command": "x",\n            "args": ["y"]\n        }\n    }\n}\n'
    )


@pytest.mark.parametrize(
    "text", ['{"a": 1} // note', '{"a": 1,}', '{"a": [1,]}', "/* note */ {}", '{"servers": {}} //']
)
def test_what_an_edit_would_lose_is_left_to_the_user(text):
    assert data_of(text).keys() <= {"a", "servers"}
    for edit in (add, remove):
        with pytest.raises(TextError, match="would lose"):
            edit(text)


def test_half_of_a_surrogate_pair_is_left_to_the_user():
    with pytest.raises(TextError, match="cannot be edited"):
        add('{"a": "\\ud83d"}')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "not an object"),
        ('{"a": 1e999}', "1e999 is not JSON"),
        ('{"mcpServers": 3}', "an object of servers"),
        ('{"a": 1 "b": 2}', "line 1"),
        ('{"a": [1 2]}', "line 1"),
        ('{\n"a": }', "line 2"),
        ('{\n/*\n*/"a": }', "line 3"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 01}', "line 1"),
        ('{"a": "\n"}', "line 1"),
        ('{"a": "open', "line 1"),
        ('{"a": 1', "line 1"),
        ('{"a": 1} x', "line 1"),
        ('{"a": 1} /* x', "line 1"),
        ('{"mcpServers": {}, "mcpServers": {}}', "duplicate key"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("// only a note", "line 1"),
        ("/*" * 100_000, "line 1"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(text, problem):
    with pytest.raises(TextError, match=problem):
        with_server(text, agents()["gemini"], NAME, SERVER)


@pytest.mark.parametrize("text", ['{"a": 1} // note', '{"a": 1,}', '{"a": [1,]}', "/* note */ {}"])
def test_an_agent_that_knows_no_comments_gets_none(text):
    with pytest.raises(TextError, match="are not supported by this agent"):
        with_server(text, agents()["claude"], NAME, SERVER)


@pytest.mark.parametrize("unit", ["x\\\\", '\\"', "x"])
def test_a_string_that_never_ends_takes_no_time(unit):
    with pytest.raises(TextError):
        data_of('{"a": "' + unit * 200_000)


def test_line_ends_of_windows_stay():
    added = add('\ufeff{\r\n  "a": 1\r\n}\r\n')

    assert added.startswith("\ufeff{")
    assert "\n" not in added.replace("\r\n", "")


CODEX = agents()["codex"]
BLOCKS = st.sampled_from(
    [
        "# a note",
        "",
        "   ",
        'model = "gpt"  # mine',
        "list = [\n  [1],\n  [2],\n]",
        "[mcp_servers]",
        '[mcp_servers.other]\ncommand = "x"',
        '[mcp_servers."docindex.two"]\ncommand = "x"',
        '[projects."/a/b"]\ntrust_level = "trusted"',
        "[[profiles]]\nname = 1",
        "[mcp_servers.other.env]\nA = 'b'",
    ]
)
OWN = st.sampled_from(
    [
        "",
        '[mcp_servers.docindex]\ncommand = "x"',
        '[mcp_servers.docindex]\n# within\ncommand = "x"  # mine\nargs = [\n  "a", # b\n]',
        "[ mcp_servers . 'docindex' ]\ncommand = 1",
        "[mcp_servers.docindex]\ncommand = 1\n[mcp_servers.docindex.env]\nA = 'b'",
    ]
)


@given(st.lists(BLOCKS, max_size=4), OWN, st.lists(BLOCKS, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_table_of_any_layout_is_set_and_removed_without_harm_to_others(before, own, behind, newline, is_ended):
    lines = [*before, *([own, "# a note", "[z]"] if own else []), *behind]
    text = newline.join(lines).replace("\r\n", "\n").replace("\n", newline) + is_ended * newline
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    others = {name: server for name, server in data.get("mcp_servers", {}).items() if name != "docindex"}

    added = with_server(text, CODEX, NAME, SERVER)
    removed = without_server(added, CODEX, NAME)

    assert tomllib.loads(added)["mcp_servers"] == {**others, "docindex": CODEX.entry(SERVER)}
    assert with_server(added, CODEX, NAME, SERVER) == added
    assert {"mcp_servers": {}, **tomllib.loads(removed or "")} == {**data, "mcp_servers": others}
    for found in (added, removed or ""):
        assert found.count("# a note") == lines.count("# a note")
        assert "\r\n" not in text or "\n" not in found.replace("\r\n", "")


def test_a_table_that_is_made_goes_again():
    made = with_server(None, CODEX, NAME, SERVER)

    assert made == (
        '[mcp_servers.docindex]\ncommand = "docindex"\nargs = ["mcp", "--watch"]\n\n'
        '[mcp_servers.docindex.env]\nDOCINDEX_ROOT = "C:\\\\a \\"b\\""\n'
    )
    assert without_server(made, CODEX, NAME) is None
    assert without_server(with_server("# mine\n", CODEX, NAME, SERVER), CODEX, NAME) == "# mine\n"


def test_an_old_table_is_replaced_whole_at_the_end():
    text = '[mcp_servers.docindex]\ncommand = "old"  # by hand\nenv_file = "x"\n\n# of b\n[b]\nx = 1\n'

    assert with_server(text, CODEX, NAME, Server("new", (), {})) == (
        '\n# of b\n[b]\nx = 1\n\n[mcp_servers.docindex]\ncommand = "new"\nargs = []\n'
    )


def test_a_table_between_others_goes_with_the_tables_in_it_and_leaves_the_notes_of_others():
    text = '[a]\nx = 1\n\n[mcp_servers.docindex]\ncommand = "x"\n[mcp_servers.docindex.env]\nA = "b"\n\n# of b\n[b]\n'

    assert without_server(text, CODEX, NAME) == "[a]\nx = 1\n\n# of b\n[b]\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { docindex = { command = "x" } }\n',
        'mcp_servers.docindex.command = "x"\n',
        '[a]\n[mcp_servers."doc\\u0069ndex"]\ncommand = 1\n\n# of b\n[b]\n',
        '[mcp_servers.docindex]\ncommand = "x"\nt = """\n[other]\n"""\n',
    ],
)
def test_a_table_of_an_odd_form_is_left_to_the_user(text):
    for edit in (lambda: with_server(text, CODEX, NAME, SERVER), lambda: without_server(text, CODEX, NAME)):
        with pytest.raises(TextError, match="cannot be edited"):
            edit()


@pytest.mark.parametrize("text", ["a = ", 'mcp_servers = "none"', "[mcp_servers\n", "a = " + "[" * 5000])
def test_what_is_no_toml_is_refused(text):
    with pytest.raises(TextError):
        with_server(text, CODEX, NAME, SERVER)
