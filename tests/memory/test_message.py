"""Messages as stored in a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.errors import MessageError
from docindex_dagster.memory.message import Anchor, Offsets, Tombstone, as_payload, as_record, compose

TEXTS = st.text(st.characters(categories=None), max_size=300)


def test_the_same_text_of_the_same_speaker_has_the_same_id_each_time():
    assert compose("memory/a", "s", "yes", role="user") == compose("memory/a", "s", "yes", role="user")


@pytest.mark.parametrize(
    "other",
    [
        compose("memory/b", "s", "yes", role="user"),
        compose("memory/a", "t", "yes", role="user"),
        compose("memory/a", "s", "yes.", role="user"),
        compose("memory/a", "s", "yes", role="assistant"),
        compose("memory/a", "s", "yes", role="user", tool="shell"),
        compose("memory/a", "s", "yes", role="user", message_id="1"),
        compose("memory/a", "s", "yes", role="user", message_id="yes"),
    ],
)
def test_another_domain_session_text_role_tool_or_name_has_another_id(other):
    assert other.id != compose("memory/a", "s", "yes", role="user").id


def test_texts_that_begin_alike_have_different_ids():
    head = "tests/test_wire.py::test_roundtrip PASSED " * 4

    assert compose("memory/a", "s", f"{head} 120 passed").id != compose("memory/a", "s", f"{head} 17 FAILED").id


def test_the_clients_own_id_decides():
    first, second = (compose("memory/a", "s", text, message_id="m1") for text in ("draft", "final"))

    assert first.id == second.id


@pytest.mark.parametrize(
    ("role", "clamped"),
    [
        ("user", "user"),
        (" Assistant ", "assistant"),
        ("SYSTEM", "system"),
        ("tool", "tool"),
        ("root", "unknown"),
        ("", "unknown"),
    ],
)
def test_roles_are_clamped(role, clamped):
    assert compose("memory/a", "s", "x", role=role).role == clamped


def test_names_of_tools_are_cut():
    assert compose("memory/a", "s", "x", tool="t" * 100).tool == "t" * 64


@pytest.mark.parametrize("session", ["", "a" * 201, "a\nb", "a\0b", "\ud800", "\u202e"])
def test_sessions_that_are_no_names_are_refused(session):
    with pytest.raises(MessageError, match="invalid session"):
        compose("memory/a", session, "x")


@pytest.mark.parametrize("session", ["a", "a" * 200, "Sitzung 7 / ü", "../../etc"])
def test_sessions_may_be_any_text_in_a_line(session):
    assert compose("memory/a", session, "x").session == session


def test_half_a_character_is_replaced():
    assert compose("memory/a", "s", "a\ud83d b").text == "a\ufffd b"


@given(TEXTS, TEXTS, TEXTS, st.none() | TEXTS)
def test_any_message_round_trips(text, role, tool, name):
    anchors = [Anchor("git/x", "a.py", name and name.replace("\ud800", "").encode("utf-8", "replace").decode(), "0f")]
    message = compose("memory/a", "s", text, role=role, tool=tool, message_id=name, anchors=anchors)

    assert as_record(as_payload(message)) == message


def test_any_tombstone_round_trips():
    tombstone = Tombstone("session", "s", Offsets({"00000000/a.seg": 7}), 5)

    assert as_record(as_payload(tombstone)) == tombstone


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"{}", b'{"note":{}}', b'{"message":{}}', b'{"message":{"id":1,"x":2}}', b"1"]
)
def test_what_is_no_record_is_noticed(payload):
    with pytest.raises(ValueError, match="not a record"):
        as_record(payload)
