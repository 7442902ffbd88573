"""Nightly samples change little from one night to the next."""

from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.evaluation.questions import Question, Target, sample


def questions(numbers):
    return [Question(f"git/a@{number}", "a b c", (Target("git/a", "a.py"),), "python") for number in numbers]


NUMBERS = st.lists(st.integers(0, 10_000), unique=True, min_size=1, max_size=40)


@given(NUMBERS, st.integers(1, 50))
def test_it_has_as_many_as_are_asked_for_in_their_order(numbers, most):
    chosen = [question.name for question in sample(questions(numbers), most)]

    assert len(chosen) == min(most, len(numbers))
    assert chosen == [question.name for question in questions(numbers) if question.name in chosen]


@given(NUMBERS, st.integers(1, 20))
def test_a_new_question_displaces_at_most_one(numbers, most):
    before = {question.name for question in sample(questions(numbers), most)}
    after = {question.name for question in sample(questions([10_001, *numbers]), most)}

    assert len(before - after) <= 1


def test_another_seed_chooses_others():
    many = questions(range(1000))

    assert sample(many, 20, seed=1) != sample(many, 20, seed=2)
    assert sample(many, 20, seed=1) == sample(many, 20, seed=1)


def test_none_takes_all():
    assert sample(questions(range(30)), None) == questions(range(30))
