"""Words and token counts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.tokenizer import count_tokens, words

# Ambiguous boundaries: humps, digits, marks, other scripts, and separators.
PARTS = [
    "a",
    "Ab",
    "HTTPServer",
    "x1",
    "_",
    ".",
    "==",
    " ",
    "\n",
    "\t",
    "\0",
    "é",
    "É",
    "漢",
    "字",
    "😀",
    "ß",
    "\u0301",
]
TEXTS = st.text() | st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def words_of(text: str) -> list[str]:
    return [word.decode() for word in words([text]).values.to_pylist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parseHTTPHeader_2", ["parse", "http", "header", "2"]),
        ("get_name(self) -> str:", ["get", "name", "self", "str"]),
        ("XMLHttpRequest v10", ["xml", "http", "request", "v", "10"]),
        ("Éa naïve “quoted”", ["éa", "naïve", "quoted"]),
        ("漢字 かな", ["漢", "字", "か", "な"]),
        ("", []),
        (" \n\t", []),
        ("😀", []),
    ],
)
def test_words_are_what_identifiers_and_prose_are_made_of(text, expected):
    assert words_of(text) == expected


@given(st.lists(TEXTS, max_size=5))
def test_words_of_several_texts_are_those_of_each(texts):
    found = words(texts)

    assert [word.decode() for word in found.values.to_pylist()] == [word for text in texts for word in words_of(text)]
    assert found.texts.tolist() == [index for index, text in enumerate(texts) for _ in words_of(text)]


@given(st.lists(TEXTS, max_size=5))
def test_tokens_of_several_texts_are_those_of_each(texts):
    assert count_tokens(texts) == [count for text in texts for count in count_tokens([text])]


@given(TEXTS, TEXTS)
def test_a_text_has_at_most_the_tokens_of_its_parts_and_one_more_if_a_word_is_cut(left, right):
    left_tokens, right_tokens, whole = count_tokens([left, right, left + right])
    spaced_tokens, spaced = count_tokens([f"{left} ", f"{left} {right}"])

    assert whole <= left_tokens + right_tokens + 1
    assert spaced <= spaced_tokens + right_tokens


def test_a_word_that_is_cut_at_a_hump_has_one_token_more_than_its_parts():
    assert count_tokens(["AA", "bbbb", "AAbbbb"]) == [1, 1, 3]


@given(TEXTS)
def test_what_can_be_read_has_tokens_and_no_more_than_characters(text):
    (count,) = count_tokens([text])

    assert count <= len(text.encode())
    assert count > 0 or not re.sub(r"[\s\0\x1c-\x1f\x85]", "", text)


def test_tokens_are_words_runs_of_marks_and_line_ends():
    assert count_tokens(["one two()\n\n    four\n"]) == [6]  # one, two, (), newline, four, newline


def test_a_long_run_counts_once_more_every_four_bytes():
    assert count_tokens(["a" * 4, "a" * 5, "=" * 80]) == [1, 2, 20]
