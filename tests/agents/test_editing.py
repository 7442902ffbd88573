"""Entries are set and removed in texts of JSON and TOML; other entries, comments and layout stay."""

import json
import re
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docindex_dagster.agents.catalogue import Server, agents
from docindex_dagster.agents.editing import TextError, parsed, with_entry, without_entry
from docindex_dagster.agents.entries import with_server, without_server

GROUP, NAME = "servers", "docindex"
ENTRY = {"type": "stdio", "command": "docindex", "args": ["mcp", "--watch"], "env": {"ROOT": "/x"}}
SERVER = Server("docindex", ("mcp", "--watch"), {"DOCINDEX_ROOT": 'C:\\a "b"'})


def add(text, data=ENTRY):
    return with_entry(text, "jsonc", GROUP, NAME, data)


def remove(text):
    return without_entry(text, "jsonc", GROUP, NAME)


def data_of(text):
    return parsed(text, "jsonc")


def comments(text):
    return sorted(re.findall(r"/\* a, \} note \*/|// a \{ note|/\*\*/", text))


SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "  \n    "])
COMMENTS = st.sampled_from(["", "", "", "/* a, } note */", "// a { note  \n", "/**/"])
KEYS = st.sampled_from(["servers", "other", "docindex", 'a"b', "ü", ""])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2))


@st.composite
def objects(draw, depth=0):
    """The text of an object, of any layout."""

    def gap():
        return draw(SPACES) + draw(COMMENTS) + draw(SPACES)

    members = []
    for key in draw(st.lists(KEYS, max_size=3, unique=True)):
        is_object = key == "servers" or (depth < 2 and draw(st.booleans()))
        value = draw(objects(depth + 1)) if is_object and depth < 3 else json.dumps(draw(VALUES))
        if key == "servers" and depth >= 3:
            continue
        members.append(f"{gap()}{json.dumps(key)}{draw(SPACES)}:{draw(SPACES)}{value}{gap()}")
    trailing = f",{gap()}" if members and draw(st.booleans()) else ""
    return "{" + (",".join(members) or gap()) + trailing + "}"


TEXTS = st.tuples(SPACES, COMMENTS, objects(), SPACES, COMMENTS).map("".join)


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
    else:
        assert comments(added) == comments(text)
        assert comments(removed or "") == comments(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"servers": {"a": 1}}',
        '{\n    "a": 1, // the first\n    "b": 2\n}\n',
        '{\n  "a": 1 // of a  \n}\n',
        '{\n  "a": 1, // of a\n}\n',
        '// of all\n{\n  "servers": {\n    "a": {}, // of a\n    // the last\n  }\n}',
        '\ufeff{\r\n  "a": 1\r\n}\r\n',
    ],
)
def test_beside_other_entries_one_is_removed_to_the_byte(text):
    assert remove(add(text)) == text


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        ('{"servers": { // mine\n  "docindex": 1, "b": 2}}', '{"servers": { // mine\n "b": 2}}'),
        ('{"servers": {"a": 1, // mine\n  "docindex": 2}}', '{"servers": {"a": 1 // mine\n}}'),
        ('{"servers": {"a": 1 // mine\n, "docindex": 2}}', '{"servers": {"a": 1 // mine\n}}'),
        ('{"servers": { // mine\n  "docindex": 1,\n}}', '{"servers": { // mine\n}}'),
    ],
)
def test_what_stands_behind_a_member_does_not_become_part_of_the_comment_above(text, removed):
    assert remove(text) == removed


@given(st.text(" \t\r\n", max_size=4))
def test_a_file_that_holds_nothing_yet_gets_the_entry(text):
    assert data_of(add(text)) == {"servers": {"docindex": ENTRY}}


def test_a_file_that_is_made_goes_again():
    assert data_of(add(None)) == {"servers": {"docindex": ENTRY}}
    assert remove(add(None)) is None
    assert remove("// mine\n" + add(None)) == "// mine\n{}\n"


def test_a_new_member_looks_like_those_beside_it():
    text = '{\n    "a": 1, // the first\n    "b": 2\n}\n'

    assert add(text, {"command": "x", "args": ["y"]}) == (
        '{\n    "a": 1, // the first\n    "b": 2,\n    "servers": {\n        "docindex": {\n'
        '            "command": "x",\n            "args": ["y"]\n        }\n    }\n}\n'
    )


def test_a_comment_behind_the_last_member_stays_with_it():
    added = add('{\n  "a": 1 // of a  \n}\n', {})

    assert added == '{\n  "a": 1, // of a  \n  "servers": {\n    "docindex": {}\n  }\n}\n'


def test_a_member_between_others_is_removed_with_its_comma():
    text = '{"servers": {"a": 1, "docindex": 2, "b": 3}}'
    first = '{"servers": {\n  "docindex": 2,\n  "b": 3\n}}'

    assert remove(text) == '{"servers": {"a": 1, "b": 3}}'
    assert remove(first) == '{"servers": {\n  "b": 3\n}}'


def test_an_object_stays_where_it_holds_a_comment():
    assert remove('{"servers": {\n  // mine\n  "docindex": 1\n}}') == '{"servers": {\n  // mine\n}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "not an object"),
        ('{"mcpServers": 3}', "a group of servers"),
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
        ('{"mcpServers": {}, "mcpServers": {}}', "twice"),
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
    with pytest.raises(TextError, match="which the agent would not read"):
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
