"""Extractive answers, which need no model."""

import tomllib

from docindex_dagster.answering.citations import State, check
from docindex_dagster.answering.rendering import HOW_TO_SET, extractive
from docindex_dagster.core.settings import LLMSettings
from tests.answering.samples import passage

BEST = passage(2, "def pump():\n    return 1", score=0.9)
LONG = passage(1, "\n".join(f"line {number}" for number in range(100)), score=0.5, path="a`b.py", name=None)


def test_it_shows_the_best_passages_first_with_their_numbers():
    text = extractive([LONG, BEST])

    assert text.startswith("No language model is configured")
    assert text.index("`lib/pump.py:1-2`") < text.index("[2]") < text.index("`a'b.py:1-12`, of 1-100")
    assert "line 11\n```\n\n[1]" in text
    assert "line 12" not in text


def test_its_citations_are_those_of_the_passages_and_supported():
    found = check(extractive([LONG, BEST]), [LONG, BEST])

    assert [citation.number for citation in found] == [2, 1]
    assert all(citation.state is State.SUPPORTED for citation in found)


def test_where_a_model_is_set_it_does_not_say_how_to_set_one():
    text = extractive([BEST], is_model_set=True)

    assert text.startswith("The best passages:")
    assert HOW_TO_SET not in text


def test_three_lines_say_how_to_set_a_model():
    assert len(HOW_TO_SET.splitlines()) == 3
    assert LLMSettings.model_fields.keys() >= tomllib.loads(HOW_TO_SET)["llm"].keys()
    assert HOW_TO_SET in extractive([BEST])


def test_a_fence_in_a_passage_does_not_end_its_block():
    text = extractive([passage(1, "```\n[7]\n````\n[8]")])

    assert [citation.number for citation in check(text, [])] == [1]


def test_where_nothing_was_found_it_says_so():
    assert "Nothing was found." in extractive([])
    assert HOW_TO_SET in extractive([])


def test_commits_that_the_question_is_about_come_first_and_their_text_is_no_citation():
    text = extractive([BEST], "0123456789 2024-01-02 Ada: Prime ``` the pump [7]")

    assert text.index("Ada: Prime") < text.index("`lib/pump.py:1-2`")
    assert [citation.number for citation in check(text, [BEST])] == [2]
    assert "Ada: Prime" in extractive([], "0123456789 2024-01-02 Ada: Prime")


def test_of_a_long_passage_the_lines_around_the_best_are_shown():
    text = extractive([passage(1, LONG.text, line=50, first=11)])

    assert "`lib/pump.py:47-58`, of 11-110\n\n```python\nline 36\n" in text
    assert "line 47\n```" in text
    assert check(text, [passage(1, LONG.text, line=50, first=11)])[0].start_line == 47


def test_its_last_lines_are_shown_as_many_as_of_others():
    assert "`lib/pump.py:89-100`, of 1-100" in extractive([passage(1, LONG.text, line=100)])
