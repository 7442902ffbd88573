"""Closeness of results to a query gives the same verdict from a few deciding words as from all words."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.search import relevance as asking
from docindex_dagster.search.model import Intent
from docindex_dagster.search.query import Query, Wording
from docindex_dagster.search.weights import Closeness
from docindex_dagster.stores.analysis import stems

POOL: Any = None  # never searched
WORDS = ("alpha", "beta", "gamma", "delta", "running", "run", "zeta")
RARITIES = st.lists(st.floats(0.01, 9), min_size=len(WORDS), max_size=len(WORDS))
CLOSENESS = st.builds(Closeness, share=st.floats(0, 1), slope=st.none() | st.floats(0.1, 3), offset=st.floats(0, 1))


def wording_of(words: tuple[str, ...], rarities: list[float]) -> Wording:
    rare: Mapping[str, float] = dict(zip(stems(words), rarities, strict=False))
    return Wording({stem: rarity / sum(rare.values()) for stem, rarity in rare.items()})


@given(
    words=st.lists(st.sampled_from(WORDS), unique=True).map(tuple),
    there=st.sets(st.sampled_from(WORDS)),
    rarities=RARITIES,
    closeness=CLOSENESS,
    cosine=st.none() | st.floats(-1, 1),
)
def test_the_words_that_decide_say_what_all_words_say(words, there, rarities, closeness, cosine):
    query, wording = Query(Intent.TOPIC, words), wording_of(words, rarities)
    lost = [word for word in words if word not in there]
    share = min(1.0, sum(wording.shares[stem] for stem in {*stems(lost)})) if words else 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "_which_occur", lambda _pool, asked: [word in there for word in asked])
        doubt = asking.explain_weakness(POOL, query, wording, cosine, closeness)

    assert bool(doubt) == closeness.is_weak(share, cosine)


def test_of_a_long_query_few_words_are_looked_for(monkeypatch):
    words = tuple(f"word{number}" for number in range(50))
    asked: list[str] = []

    def are_there(_pool: object, some: Sequence[str]) -> list[bool]:
        asked.extend(some)
        return [True for _ in some]

    monkeypatch.setattr(asking, "_which_occur", are_there)

    doubt = asking.explain_weakness(
        POOL, Query(Intent.TOPIC, words), wording_of(words, [1.0] * 50), None, Closeness(share=0.6)
    )

    assert doubt == ""
    assert len({*asked}) < 25
