"""A member is set and removed in a JSON text; whatever else stands there stays, to the byte."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docindex_dagster.agents.json_edit import remove_member, set_member
from docindex_dagster.agents.json_text import TextError, parse
from docindex_dagster.agents.nested import is_only_without

PATH = ("servers", "docindex")
ENTRY = {"type": "stdio", "command": "docindex", "args": ["mcp", "--watch"], "env": {"ROOT": "/x"}}


def add(text, data=ENTRY):
    return set_member(text, PATH, data, has_comments=True)


def remove(text):
    return remove_member(text, PATH, has_comments=True)


def data_of(text):
    return parse(text, has_comments=True).data


SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "  \n    "])
COMMENTS = st.sampled_from(["", "", "", "/* a, } note */", "// a { note  \n", "/**/"])
KEYS = st.sampled_from(["servers", "other", "docindex.", 'a"b', "ü", ""])
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
        members.append(f"{gap()}{json.dumps(key)}{gap()}:{gap()}{value}{gap()}")
    trailing = f",{gap()}" if members and draw(st.booleans()) else ""
    return "{" + (",".join(members) or gap()) + trailing + "}"


@given(st.tuples(SPACES, COMMENTS, objects(), SPACES, COMMENTS).map("".join))
def test_what_is_added_is_there_once_and_removed_to_the_byte(text):
    added = add(text)

    assert data_of(added) == {**data_of(text), "servers": {**data_of(text).get("servers", {}), "docindex": ENTRY}}
    assert add(added) == added
    assert remove(added) == text


@st.composite
def texts_with_a_member(draw):
    """The text of an object with objects in it, and the path of one of the members."""
    text = draw(objects())
    path: list[str] = []
    data = data_of(text)
    while isinstance(data, dict) and data and (not path or draw(st.booleans())):
        path.append(draw(st.sampled_from(sorted(data))))
        data = data[path[-1]]
    assume(path)
    return text, path


@given(texts_with_a_member())
def test_any_member_is_removed_without_harm_to_others(found):
    text, path = found
    removed = remove_member(text, path, has_comments=True)

    assert is_only_without({} if removed is None else data_of(removed or "{}"), data_of(text), path)


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        ('{"servers": { // mine\n  "docindex": 1, "b": 2}}', '{"servers": { // mine\n   "b": 2}}'),
        ('{"servers": {"a": 1, // mine\n  "docindex": 2}}', '{"servers": {"a": 1 // mine\n  }}'),
        ('{"servers": {"a": 1 // mine\n, "docindex": 2}}', '{"servers": {"a": 1 // mine\n}}'),
    ],
)
def test_what_stands_behind_a_member_does_not_become_part_of_the_comment_above(text, removed):
    assert remove(text) == removed


@given(st.text(" \t\r\n", max_size=4))
def test_a_file_that_holds_nothing_yet_holds_nothing_again(text):
    assert remove(add(text)) == text


def test_a_file_that_is_made_goes_again():
    assert data_of(add(None)) == {"servers": {"docindex": ENTRY}}
    assert remove(add(None)) is None


def test_a_new_member_looks_like_those_beside_it():
    text = '{\n    "a": 1, // the first\n    "b": 2\n}\n'

    assert add(text, {"command": "x", "args": ["y"]}) == (
        '{\n    "a": 1, // the first\n    "b": 2,\n    "servers": {\n        "docindex": {\n'
        '            "command": "x",\n            "args": ["y"]\n        }\n    }\n}\n'
    )


def test_spaces_before_a_member_do_not_become_part_of_a_comment():
    text = '{  \n    "other": null// a note  \n}'

    assert remove(add(text)) == text


def test_a_comment_behind_the_last_member_stays_with_it():
    added = add('{\n  "a": 1 // of a  \n}\n', True)

    assert added == '{\n  "a": 1, // of a  \n  "servers": {\n    "docindex": true\n  }\n}\n'


def test_a_member_between_others_is_removed_with_its_comma():
    text = '{"servers": {"a": 1, "docindex": 2, "b": 3}}'
    first = '{"servers": {\n  "docindex": 2,\n  "b": 3\n}}'

    assert remove(text) == '{"servers": {"a": 1, "b": 3}}'
    assert remove(first) == '{"servers": {\n  "b": 3\n}}'


def test_an_object_of_the_user_stays_where_it_is_empty_again():
    assert remove('{"servers": {"docindex": 1}}') == '{"servers": {}}'
    assert remove('{"servers": {\n  // mine\n  "docindex": 1\n}}') == '{"servers": {\n  // mine\n}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "where an object should"),
        ('{"servers": 3}', "where an object should"),
        ('{"a": 1 "b": 2}', "line 1: a comma or a bracket is missing"),
        ('{"a": [1 2]}', "a comma or a bracket is missing"),
        ('{\n"a": }', "line 2"),
        ('{"a": NaN}', "'NaN' is no JSON"),
        ('{"a": 01}', "is no JSON"),
        ('{"a": "\n"}', "not what should stand there"),
        ('{"a": "open', "not what should stand there"),
        ('{"a": 1', "a comma or a bracket is missing"),
        ('{"a": 1} x', "more behind the end"),
        ('{"servers": {}, "servers": {}}', "twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("// only a note", "it ends too early"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(text, problem):
    with pytest.raises(TextError, match=problem):
        add(text)


@pytest.mark.parametrize("text", ['{"a": 1} // note', '{"a": 1,}', '{"a": [1,]}', "/* note */ {}"])
def test_an_agent_that_knows_no_comments_gets_none(text):
    with pytest.raises(TextError, match="which the agent would not read"):
        set_member(text, PATH, ENTRY, has_comments=False)


def test_a_string_that_never_ends_takes_no_time():
    with pytest.raises(TextError):
        add('{"a": "' + "x\\\\" * 50_000)


def test_a_byte_order_mark_and_line_ends_of_windows_stay():
    text = '\ufeff{\r\n  "a": 1\r\n}\r\n'
    added = add(text)

    assert added.startswith("\ufeff{")
    assert "\n" not in added.replace("\r\n", "")
    assert remove(added) == text
