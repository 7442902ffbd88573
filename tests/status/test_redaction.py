"""Redaction of public messages keeps only words that occur in the docindex documentation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.status.redaction import HIDDEN, is_public, redact_message, without_secrets


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the index is damaged", "the index is damaged"),
        ("SourceError: there is no folder /srv/acme/vault", "SourceError: there is no folder …"),
        ("cannot read acme-vault.toml (line 12)", "cannot read … (line 12)"),
        ("the words hunter2 swordfishmonger are wrong", "the words … are wrong"),
        ("number 48213377 of 12", "number … of 12"),
        ("Permission denied", "Permission denied"),
        ("index-vault search.vault", "…"),
    ],
)
def test_what_may_be_a_name_a_path_or_a_key_is_hidden(message, shown):
    assert redact_message(message) == shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("password is secret", "password …"),
        ("the passphrase: correct words of a page", "the …"),
        ("the name is user/index, which is wrong", "the name is … which is wrong"),
        ("pin 4417 is wrong", "…"),
        ("customer index", "customer …"),
        ("user index was not found", "user …"),
        ("secret index, or the page is wrong", "secret … page is wrong"),
        ("token index for the page, which is wrong", "token … which is wrong"),
        ("the file api_key: index", "the file …"),
        ("password=index of pages, which is wrong", "… which is wrong"),
        ("/home/user/acme.toml: there is no file", "… there is no file"),
        ("login, index", "login, …"),
        ("the userName index", "the …"),
        ("a monk reads the page", "a … reads the page"),
    ],
)
def test_what_stands_behind_a_word_that_tells_of_a_secret_is_hidden_whatever_it_is(message, shown):
    assert redact_message(message) == shown


@given(st.text(min_size=1, max_size=40).filter(lambda key: len(key.split()) == 1 and key == key.strip()))
def test_a_key_of_any_characters_is_hidden(key):
    assert redact_message(f"the key {key} is wrong") == f"the key {HIDDEN}"


def test_names_of_the_documentation_are_public_and_others_are_not():
    assert is_public("text-embedding-3-small")
    assert not is_public("ft:acme-model")


def test_what_is_shown_by_wish_has_no_password_no_token_and_no_value_of_a_secret_variable():
    text = "https://ada:hunter2@example.org/r?token=abc from tulip-in-the-snow"
    shown = without_secrets(text, {"FLOWER_TOKEN": "tulip-in-the-snow", "LANG": "from"})
    assert shown == f"https://example.org/r?token=… from {HIDDEN}"


@pytest.mark.parametrize("name", ["DAGSTER_PG_PASSWORD", "MYSQL_PWD", "SSH_PASSPHRASE", "SENTRY_DSN", "CARD_PIN"])
@pytest.mark.parametrize("value", ["s3cr3t", "ab", "7", "$a b?"])
def test_a_short_value_of_a_secret_variable_is_hidden_where_it_is_a_whole_word(name, value):
    shown = without_secrets(f"with {value}, x{value}x and my_{value}", {name: value})
    assert shown.startswith(f"with {HIDDEN}, ")
    assert shown.endswith(f" and my_{HIDDEN}")
    assert without_secrets("s3cr3ts cabs 47", {name: value}) == "s3cr3ts cabs 47"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://ada:tulip%21@host/db"),
        ("HTTPS_PROXY", "http://ada:tulip%21@proxy:3128"),
        ("LIBPQ", "host=db password=tulip! dbname=shop"),
    ],
)
def test_a_password_in_the_value_of_a_variable_is_hidden(name, value):
    assert without_secrets("it refused tulip! for ada", {name: value}) == f"it refused {HIDDEN} for ada"


def test_the_folder_of_a_shell_is_no_secret():
    assert (
        without_secrets("/srv/shop/manual", {"PWD": "/srv/shop", "OLDPWD": "/srv", "EMPTY_TOKEN": ""})
        == "/srv/shop/manual"
    )


def test_the_secret_name_of_a_home_is_not_shown():
    home = f"/srv/shop/.docindex/{'0a' * 16}"

    assert without_secrets(home, {}) == f"/srv/shop/.docindex/{HIDDEN}"
    assert without_secrets(f"no {home}/stores", {}) == f"no /srv/shop/.docindex/{HIDDEN}/stores"
    assert without_secrets("git/0a" + "0a" * 16, {}) == "git/0a" + "0a" * 16
