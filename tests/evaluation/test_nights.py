"""Nightly evaluation: the scores stored for each question, and the conditions for a warning."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.evaluation import nightly_results
from docindex_dagster.evaluation.metrics import Scores
from docindex_dagster.evaluation.questions import Question, Target
from docindex_dagster.evaluation.retrieval_runs import QuestionResult


def answers(scores, source="git/app"):
    return [
        QuestionResult(
            Question(f"{source}@{number}", f"question {number}", (Target(source, "a.py"),), "python"),
            (),
            (None,),
            Scores(0, 0, 0, 0, score),
        )
        for number, score in enumerate(scores)
    ]


def after(*past):
    """Return the scores stored after the given nights."""
    scores: dict[str, list[float]] = {}
    for night in past:
        scores = nightly_results.merged_scores(night, scores)
    return scores


def dropped(tonight, before) -> list[str]:
    return [change.name for change in nightly_results.changes(tonight, before) if change.is_drop]


GOOD = answers([0.8] * 30)


def test_the_same_answers_are_no_drop():
    assert dropped(GOOD, after(GOOD, GOOD)) == []


def test_the_first_night_has_nothing_to_compare_with():
    changes = list(nightly_results.changes(GOOD, {}))

    assert [(change.name, change.questions, change.difference) for change in changes] == [
        ("all", 0, None),
        ("git/app", 0, None),
    ]


def test_many_answers_that_are_worse_are_a_drop():
    assert dropped(answers([0.8] * 15 + [0.5] * 15), after(GOOD)) == ["all", "git/app"]


def test_few_answers_that_are_worse_are_none_and_neither_is_a_trifle():
    assert dropped(answers([0.0] + [0.8] * 29), after(GOOD)) == []
    assert dropped(answers([0.795] * 30), after(GOOD)) == []


def test_as_many_better_as_worse_are_no_drop():
    assert dropped(answers([0.6] * 15 + [1.0] * 15), after(GOOD)) == []


def test_a_source_can_drop_alone():
    others = answers([0.8] * 300, "git/other")

    assert dropped([*answers([0.5] * 30), *others], after([*GOOD, *others])) == ["all", "git/app"]
    assert "git/app" in dropped([*answers([0.5] * 30), *answers([0.9] * 300, "git/other")], after([*GOOD, *others]))


def test_fewer_than_twenty_questions_in_common_say_nothing():
    assert dropped(answers([0.0] * 19), after(answers([1.0] * 19))) == []
    assert dropped(answers([0.0] * 20), after(answers([1.0] * 20))) == ["all", "git/app"]


def test_what_is_worse_for_a_week_is_usual():
    bad = answers([0.5] * 30)

    assert dropped(bad, after(GOOD, *[bad] * (nightly_results.NIGHTS - 1)))
    assert dropped(bad, after(GOOD, *[bad] * nightly_results.NIGHTS)) == []


def test_a_slow_decline_is_seen_within_the_week():
    week = [answers([0.8 - 0.005 * night] * 30) for night in range(7)]

    assert all(dropped(tonight, after(before)) == [] for before, tonight in pairwise(week))
    assert dropped(week[-1], after(*week[:-1]))


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=12))
def test_of_each_question_the_last_nights_are_remembered(scores):
    kept = after(*map(answers, scores))

    assert all(len(values) == min(len(scores), nightly_results.NIGHTS) for values in kept.values())
    assert [values[-1] for values in kept.values()] == pytest.approx(scores[-1], abs=1e-4)


def test_questions_that_are_not_asked_any_more_are_forgotten():
    assert len(after(GOOD, answers([0.8] * 5))) == 5


def test_a_question_is_the_same_in_another_line_of_its_file():
    one, two = (Question(f"q.csv:{line}", "where is it", (Target("git/app", "a.py"),), "python") for line in (2, 3))

    assert nightly_results.identity(one) == nightly_results.identity(two)


def test_what_is_written_is_read_and_what_is_damaged_is_nothing(tmp_path):
    file = tmp_path / "home" / "evaluation.json"
    assert nightly_results.read(file) == {}

    nightly_results.write(file, after(GOOD, GOOD))
    assert nightly_results.read(file) == after(GOOD, GOOD)

    for damage in ("", "[]", '{"format": 0}', '{"format": 1}', '{"format": 1, "ndcg_10": {"a": 3}}', "\ud800"):
        file.write_bytes(damage.encode("utf-8", "surrogatepass"))
        assert nightly_results.read(file) == {}
