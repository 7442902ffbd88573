"""Ranking of messages: by the words of a chunk and its neighbors, independent of insertion order."""

import math
import random
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.memory.ranking import TALK_WEIGHTS, TalkIndex, TalkWeights, Utterance
from docindex_dagster.stores.analysis import stems, terms

DIMENSION = 3
WORDS_ALONE = replace(TALK_WEIGHTS, vector=0.0)
DAY = 24 * 60 * 60 * 1_000_000
SHAPES = st.tuples(*[st.floats(-1, 1, width=16)] * DIMENSION)
WORDS = st.lists(st.sampled_from(["pump", "pumps", "valve", "open", "the", "leak"]), max_size=5).map(" ".join)


def utterance(number: int, text: str, *, session: str = "s", role: str = "user", tool: str = "", at: int | None = None):
    return Utterance(f"c{number}", session, (number if at is None else at, f"m{number}", 0), role, tool, text)


def vectors(*rows: tuple[float, ...]):
    return np.array(rows, np.float32).reshape(-1, DIMENSION)


def index_of(*utterances: Utterance) -> TalkIndex:
    index = TalkIndex(DIMENSION)
    index.add(utterances, vectors(*[(0, 0, 1)] * len(utterances)))
    return index


def talk(*texts: str) -> list[Utterance]:
    return [utterance(number, text) for number, text in enumerate(texts)]


def found(index: TalkIndex, query: str, **options) -> list[str]:
    return [hit.chunk_id for hit in index.search(query, None, **{"top_k": 10, **options})]


# Term counts


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("连接池", "生产环境的数据库连接池已经耗尽"),
        ("再設定", "パスワードの再設定をお願いします"),
        ("สินทรัพย์", "ค่าเสื่อมราคาของสินทรัพย์ถาวร"),
        ("설정", "설정을 바꿨어요"),
        ("resume", "send the résumé"),
    ],
)
def test_words_of_other_scripts_and_with_accents_are_found(query, text):
    index = index_of(utterance(0, text), utterance(1, "good morning", session="t"))

    assert found(index, query) == ["c0"]


def test_the_words_of_a_chunk_are_found_in_another_form():
    index = index_of(utterance(0, "the valves leak"), utterance(1, "good morning", session="t"))

    assert found(index, "Which valve was leaking?") == ["c0"]


def test_function_words_of_a_question_find_nothing():
    assert found(index_of(*talk("what is it that you do with this")), "what is the pump?") == []


def test_a_question_of_function_words_alone_is_taken_as_it_is():
    assert found(index_of(*talk("to be or not to be")), "to be or not to be") == ["c0"]


def test_the_name_of_a_tool_is_found():
    index = index_of(utterance(0, "120 passed", tool="pytest"), utterance(1, "120 files", tool="ls", session="t"))

    assert found(index, "what did pytest print?") == ["c0"]


def test_the_words_of_two_chunks_on_either_side_count_the_further_the_less():
    index = index_of(*talk("yes", "yes", "yes", "a pump", "yes", "yes", "yes"))

    assert found(index, "pump") == ["c3", "c4", "c2", "c5", "c1"]


def test_no_words_of_another_session_count():
    index = index_of(utterance(0, "a pump"), utterance(1, "yes", session="t"), utterance(2, "no"))

    assert found(index, "pump") == ["c0", "c2"]


def test_without_context_a_chunk_has_its_own_words_alone():
    index = index_of(*talk("yes", "a pump", "yes"))

    assert found(index, "pump", weights=replace(WORDS_ALONE, context=0)) == ["c1"]


def test_vectors_find_what_has_none_of_the_words():
    index = TalkIndex(DIMENSION)
    index.add(talk("it drips", "it opens", "it shuts"), vectors((1, 0, 0), (0.5, 1, 0), (-1, 0, 0)))

    hits = index.search("leakage", np.array([2, 0, 0], np.float32), top_k=10)

    assert [hit.chunk_id for hit in hits] == ["c0", "c1"]
    assert [signal.name for signal in hits[0].signals] == ["bm25", "vector"]
    assert hits[0].score == pytest.approx(TALK_WEIGHTS.vector)


def test_a_vector_that_leads_away_takes_nothing_from_the_words():
    index = TalkIndex(DIMENSION)
    index.add(talk("a pump"), vectors((-1, 0, 0)))

    [hit] = index.search("pump", np.array([1, 0, 0], np.float32), top_k=1)

    assert [signal.contribution for signal in hit.signals] == [hit.score, 0]


def test_vectors_of_any_length_and_width_say_the_same():
    index = TalkIndex(DIMENSION)
    index.add(talk("a", "b"), vectors((0.5, 0.25, 0), (0, 0, 0)))
    halves = TalkIndex(DIMENSION)
    halves.add(talk("a", "b"), vectors((2, 1, 0), (0, 0, 0)).astype(np.float16))
    query = np.array([1, 1, 0], np.float32)

    assert index.search("?", query, top_k=2) == halves.search("?", query, top_k=2)


def test_a_chunk_is_taken_once():
    index = index_of(*talk("a pump", "a pump"), *talk("a valve"))

    assert len(index) == 2
    assert found(index, "valve") == []


def test_vectors_of_another_model_are_refused():
    with pytest.raises(ValueError, match=r"expected vectors of shape \(1, 3\), got \(1, 2\)"):
        TalkIndex(DIMENSION).add(talk("a pump"), np.zeros((1, 2), np.float32))


# Scores


def bm25(documents: list[dict[str, float]], query: list[str], k1: float, b: float) -> list[float]:
    """Compute BM25 (Robertson and Zaragoza, 2009) as a share of its limit for endless repeats of the query."""
    average = sum(sum(document.values()) for document in documents) / len(documents)
    scores, most = [0.0] * len(documents), 0.0
    for stem in query:
        having = sum(stem in document for document in documents)
        idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        most += idf * (k1 + 1)
        for number, document in enumerate(documents):
            tf, length = document.get(stem, 0.0), sum(document.values())
            scores[number] += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
    return [score / most for score in scores]


def test_scores_are_those_of_the_formula_with_shares_of_the_neighbours_words():
    texts = ["the pump opens the pump", "when the valve is shut", "no leak there", "and the pump", "a valve, a leak"]
    share = TALK_WEIGHTS.share
    own = [Counter(stems(terms(text))) for text in texts]
    documents: list[dict[str, float]] = []
    for at in range(len(texts)):
        document: defaultdict[str, float] = defaultdict(float)
        for other, counts in enumerate(own):
            if abs(at - other) <= TALK_WEIGHTS.context:
                for stem, count in counts.items():
                    document[stem] += count * share ** abs(at - other)
        documents.append(document)
    expected = bm25(documents, ["pump", "leak", "unheard"], TALK_WEIGHTS.k1, TALK_WEIGHTS.b)

    hits = index_of(*talk(*texts)).search("pump, leaking, pumps, unheard", None, top_k=10)

    assert len(hits) == 5
    assert {hit.chunk_id: hit.score for hit in hits} == pytest.approx(
        {f"c{at}": one for at, one in enumerate(expected)}
    )


def test_the_part_of_the_vectors_is_taken_from_the_words():
    index = index_of(*talk("a pump"))
    [alone] = index.search("pump", None, top_k=1)

    [both] = index.search("pump", np.array([0, 0, 1], np.float32), top_k=1, weights=TalkWeights(vector=0.25))

    assert [signal.contribution for signal in both.signals] == pytest.approx([alone.score * 0.75, 0.25])


def test_contributions_add_up_to_the_score():
    index = TalkIndex(DIMENSION)
    index.add(talk("a pump", "a valve", "a pump opens"), vectors((1, 0, 0), (0, 1, 0), (1, 1, 0)))
    weights = TalkWeights(vector=0.3, decay=0.1, half_life_days=1)

    hits = index.search("pump", np.array([1, 0, 0], np.float32), top_k=3, weights=weights, now=DAY)

    assert [hit.score for hit in hits] == [sum(signal.contribution for signal in hit.signals) for hit in hits]
    assert hits == sorted(hits, key=lambda hit: -hit.score)
    assert {signal.name for hit in hits for signal in hit.signals} == {"bm25", "vector", "recency"}


def test_of_equal_chunks_the_latest_is_first():
    index = index_of(*(utterance(number, "a pump", session=f"s{number}") for number in (2, 0, 1)))

    assert found(index, "pump", top_k=2) == ["c2", "c1"]


def test_an_old_chunk_loses_no_more_than_the_decay():
    same = [
        utterance(number, "a pump", session=f"s{number}", at=at) for number, at in enumerate((0, 9 * DAY, 10 * DAY))
    ]
    index = index_of(*same)

    fresh, day_old, old = index.search("pump", None, top_k=3, weights=replace(WORDS_ALONE, decay=0.1, half_life_days=1))

    assert day_old.score == pytest.approx(fresh.score * 0.95)
    assert fresh.score * 0.9 < old.score < fresh.score * 0.901
    assert {hit.score for hit in index.search("pump", None, top_k=3)} == {fresh.score}


# Filters


def test_what_is_filtered_out_takes_no_place():
    index = index_of(
        utterance(0, "pump pump pump"),
        utterance(1, "a pump", session="t", role="assistant"),
        utterance(2, "a pump of some other kind", session="t", role="tool"),
    )

    assert found(index, "pump", top_k=1, sessions=["t"]) == ["c1"]
    assert found(index, "pump", top_k=1, roles=["tool"]) == ["c2"]
    assert found(index, "pump", top_k=1, sessions={"s", "t"}, roles={"tool", "system"}) == ["c2"]
    assert found(index, "pump", sessions=["other"]) == found(index, "pump", sessions=[]) == []
    assert found(index, "pump", roles=["system"]) == found(index, "pump", roles=[]) == []
    assert found(index, "pump", sessions=["s"], roles=["tool"]) == []
    assert found(index, "pump", top_k=0) == []


def test_filters_change_no_score():
    index = index_of(utterance(0, "a pump"), utterance(1, "yes", role="tool"), utterance(2, "a pump", session="t"))
    scores = {hit.chunk_id: hit for hit in index.search("pump", None, top_k=3)}

    assert index.search("pump", None, top_k=3, roles=["tool"]) == [scores["c1"]]
    assert index.search("pump", None, top_k=3, sessions=["t"]) == [scores["c2"]]


# Insertion order


@st.composite
def talks(draw: st.DrawFn) -> list[tuple[Utterance, tuple[float, ...]]]:
    """Generate chunks with vectors, some with equal times or texts."""
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from("st"), st.integers(0, 5), st.sampled_from(["user", "tool"]), WORDS, SHAPES),
            max_size=12,
        )
    )
    return [
        (utterance(number, text, session=session, role=role, at=at), vector)
        for number, (session, at, role, text, vector) in enumerate(drawn)
    ]


WEIGHTS = st.builds(
    TalkWeights,
    vector=st.sampled_from([0.0, 0.1, 0.3]),
    context=st.integers(0, 3),
    share=st.sampled_from([0.3, 0.5, 0.7, 1.0]),
    b=st.sampled_from([0.3, 0.75, 1.0]),
    decay=st.sampled_from([0.0, 0.1]),
    half_life_days=st.just(1e-11),
)


def built(chunks: list[tuple[Utterance, tuple[float, ...]]]) -> TalkIndex:
    index = TalkIndex(DIMENSION)
    index.add([one for one, _ in chunks], vectors(*(vector for _, vector in chunks)))
    return index


def answers(index: TalkIndex, weights: TalkWeights, until: int | None = None):
    query = np.array([1, -0.5, 0.25], np.float32)
    return [
        index.search(text, vector, top_k=top_k, weights=weights, until=until)
        for text in ("pump", "the leaking valve", "unheard of")
        for vector in (None, query)
        for top_k in (1, 2, 20)
    ]


@settings(deadline=None)
@given(talks(), WEIGHTS, st.data())
def test_any_order_of_adding_and_removing_gives_what_an_index_of_the_rest_gives(chunks, weights, data):
    index = TalkIndex(DIMENSION)
    there = {one.chunk_id: (one, vector) for one, vector in chunks}
    for one, vector in data.draw(st.permutations(chunks)):
        index.add([one], vectors(vector))
        gone = data.draw(st.lists(st.sampled_from(sorted(there)), max_size=2))
        index.remove(chunk_id for chunk_id in gone if chunk_id in index)
        if data.draw(st.booleans()):
            index.add([there[each][0] for each in gone], vectors(*(there[each][1] for each in gone)))

    left = [(one, vector) for one, vector in chunks if one.chunk_id in index]

    assert len(index) == len(left)
    assert answers(index, weights) == answers(built(left), weights)


@settings(deadline=None)
@given(talks(), WEIGHTS, st.integers(-1, 6))
def test_until_gives_what_an_index_of_what_was_there_then_gives(chunks, weights, until):
    then = [(one, vector) for one, vector in chunks if one.order[0] <= until]

    assert answers(built(chunks), weights, until) == answers(built(then), weights)


def test_sums_are_rounded_alike_in_any_order():
    chance = random.Random(0)
    chunks: list[tuple[Utterance, tuple[float, ...]]]
    chunks = [(utterance(at, "pump " * chance.randint(1, 9)), (0.0, 0.0, 1.0)) for at in range(200)]
    weights = replace(WORDS_ALONE, share=0.7)

    for _ in range(5):
        assert answers(built(chance.sample(chunks, len(chunks))), weights) == answers(built(chunks), weights)


def test_what_is_removed_leaves_nothing_behind():
    index = index_of(*talk("a pump"), utterance(1, "a secret", session="secret"), *talk("", "", "yes", "no")[2:])

    index.remove(["c1", "c3", "never there"])

    assert ("c0" in index, "c1" in index, len(index)) == (True, False, 2)
    assert found(index, "secret") == []
    assert found(index, "pump") == ["c0", "c2"]

    index.remove(["c2"])

    assert not any("secret" in str(state) for state in (index._postings, index._utterances, index._sessions))
    assert len(index._rows) == len(index._vectors) == len(index._utterances) == 2
