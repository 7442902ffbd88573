"""Bootstrap intervals of means: their position and the differences that they detect."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.evaluation.metrics import intervals

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES)
def test_the_mean_lies_in_its_interval_and_that_in_the_range_of_the_values(values):
    (found,) = intervals([[value] for value in values])

    assert min(values) - 1e-4 <= found.low <= found.high <= max(values) + 1e-4
    assert found.mean == pytest.approx(sum(values) / len(values), abs=1e-4)


def test_the_same_values_have_the_same_interval():
    values = [[random.Random(1).random(), 0.5] for _ in range(50)]

    assert intervals(values) == intervals(values)


def test_values_that_are_all_the_same_leave_nothing_open():
    assert intervals([[0.25]] * 10) == [(0.25, 0.25, 0.25)]


def test_four_times_the_questions_halve_the_interval():
    draw = random.Random(7)
    few = [[draw.random()] for _ in range(100)]
    many = few * 4

    ratio = width(few) / width(many)

    assert ratio == pytest.approx(2, rel=0.15)


def test_it_is_as_wide_as_theory_says():
    draw = random.Random(3)
    coins = [[float(draw.random() < 0.5)] for _ in range(400)]

    assert width(coins) == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.1)


def width(values):
    (found,) = intervals(values)
    return found.high - found.low


def test_a_small_difference_of_each_question_excludes_zero_and_one_that_wavers_does_not():
    draw = random.Random(5)
    steady = [[0.02 + draw.uniform(-0.03, 0.03)] for _ in range(200)]
    wavering = [[draw.uniform(-0.5, 0.5)] for _ in range(200)]

    assert intervals(steady)[0].excludes_zero
    assert not intervals(wavering)[0].excludes_zero


def test_no_questions_have_no_means():
    assert intervals([]) == []
