"""Maximal marginal relevance: good results that do not repeat each other."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.reranking.protocol import Passage
from docindex_dagster.search.reranking.providers import MarginalRelevance, similarities

PUMP = "the pump fills the tank when the valve is open"
SAME = "the pump fills the tank when a valve is open"
OTHER = "how relays switch motors in the evening"


def passages(*texts: str) -> list[Passage]:
    return [Passage(Scored.of(f"{at}", (Signal("bm25", 1 - at / 10, at + 1),)), text) for at, text in enumerate(texts)]


def order(found: list[Scored]) -> list[int]:
    return [int(item.chunk_id) for item in found]


def test_what_nearly_repeats_the_first_stands_behind_what_does_not():
    assert order(MarginalRelevance().rerank("pump", passages(PUMP, SAME, OTHER))) == [0, 2, 1]


def test_with_relevance_alone_nothing_changes():
    assert order(MarginalRelevance(relevance=1.0).rerank("pump", passages(PUMP, SAME, OTHER))) == [0, 1, 2]


def test_likeness_is_one_for_the_same_words_and_nothing_for_others():
    found = similarities([PUMP, PUMP, OTHER.replace("the", "an")])

    assert found[0, 1] == pytest.approx(1)
    assert found[0, 2] == pytest.approx(0)


@given(st.lists(st.sampled_from([PUMP, SAME, OTHER, "", "x"]), min_size=2, max_size=8), st.floats(0, 1))
def test_every_passage_comes_once_in_the_order_of_its_score_which_the_signals_explain(texts, relevance):
    given_passages = passages(*texts)
    found = MarginalRelevance(relevance=relevance).rerank("pump", given_passages)

    assert sorted(order(found)) == list(range(len(texts)))
    assert order(found)[0] == 0 or relevance == 0
    scores = [item.score for item in found]
    assert all(left >= right - 1e-6 for left, right in pairwise(scores))
