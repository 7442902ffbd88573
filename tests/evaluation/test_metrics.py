"""Metrics of a question, computed from the ranks of its answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.files import ndcg
from docindex_dagster.evaluation.metrics import DEPTH, scores

RANKS = st.lists(st.none() | st.integers(1, 15), min_size=1, max_size=12)
DISTINCT = st.lists(st.none() | st.integers(1, 15), min_size=1, max_size=12).filter(
    lambda ranks: len(found := [rank for rank in ranks if rank]) == len({*found})
)


@given(RANKS)
def test_each_metric_is_from_0_to_1(ranks):
    assert all(0 <= value <= 1 for value in scores(ranks))


@given(st.integers(1, 15))
def test_the_best_ranking_has_1_everywhere(targets):
    ranks = [rank if rank <= DEPTH else None for rank in range(1, targets + 1)]

    assert scores(ranks) == pytest.approx((1, 1, 1, 1, 1))


@given(RANKS)
def test_what_is_not_among_the_first_ten_counts_as_not_found(ranks):
    assert scores(ranks) == scores([rank if rank and rank <= DEPTH else None for rank in ranks])


@given(RANKS, st.data())
def test_a_better_rank_never_makes_a_metric_worse(ranks, data):
    place = data.draw(st.sampled_from(range(len(ranks))))
    better = data.draw(st.integers(1, ranks[place] or 15))

    raised = scores([*ranks[:place], better, *ranks[place + 1 :]])

    assert all(after >= before for before, after in zip(scores(ranks), raised, strict=True))


@given(DISTINCT)
def test_ndcg_is_the_one_of_the_benchmark(ranks):
    paths = [next((f"t{n}" for n, rank in enumerate(ranks) if rank == place), f"x{place}") for place in range(1, 16)]

    assert scores(ranks).ndcg_10 == pytest.approx(ndcg(paths, [f"t{n}" for n in range(len(ranks))]))


def test_hits_and_the_reciprocal_rank_are_of_the_first_target():
    assert scores([None, 4, 7])[:4] == (0, 1, 1, 0.25)
    assert scores([6])[:4] == (0, 0, 1, 1 / 6)
    assert scores([None]) == (0, 0, 0, 0, 0)


def test_a_question_without_targets_is_a_mistake():
    with pytest.raises(ValueError, match="without targets"):
        scores([])
