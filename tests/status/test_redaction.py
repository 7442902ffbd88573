"""Of a message, only words that docindex's own pages have can be repeated where strangers read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.status.redaction import HIDDEN, harmless, is_public, masked


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the index is damaged", "the index is damaged"),
        ("SourceError: there is no folder /srv/acme/vault", "SourceError: there is no folder …"),
        ("cannot read acme-vault.toml (line 12)", "cannot read … (line 12)"),
        ("password hunter2 swordfishmonger is wrong", "password … is wrong"),
        ("number 48213377 of 12", "number … of 12"),
        ("Permission denied", "Permission denied"),
        ("index-vault search.vault", "…"),
    ],
)
def test_what_may_be_a_name_a_path_or_a_key_is_hidden(message, shown):
    assert harmless(message) == shown


@given(st.text(min_size=8, max_size=40).filter(lambda key: len(key.split()) == 1 and key == key.strip()))
def test_a_key_of_any_characters_is_hidden_or_a_word(key):
    shown = harmless(f"the key {key} is wrong")
    assert shown == f"the key {HIDDEN} is wrong" or key.strip("([\"'`,.:;!?])").isalpha()


def test_names_of_the_documentation_are_public_and_others_are_not():
    assert is_public("text-embedding-3-small")
    assert not is_public("ft:acme-model")


def test_what_is_shown_by_wish_has_no_password_no_token_and_no_value_of_a_secret_variable():
    text = "https://ada:hunter2@example.org/r?token=abc from tulip-in-the-snow"
    shown = masked(text, {"FLOWER_TOKEN": "tulip-in-the-snow", "LANG": "from"})
    assert shown == f"https://example.org/r?token=… from {HIDDEN}"
