"""Follow-up questions."""

from dataclasses import replace

from docindex_dagster.answering.citations import check
from docindex_dagster.answering.conversation import Conversation
from tests.answering.test_passages import DRAIN, GATE, PUMP, context, numbers


def after(question: str, answer: str = "It pumps.", *passages) -> Conversation:
    """Return a conversation with one turn."""
    asked, _ = Conversation().found(context(*passages))
    return asked.answered(question, answer, tuple(check(answer, asked.passages.kept)))


def test_a_first_question_is_searched_for_as_it_is():
    assert Conversation().query("how does `pump` work") == "how does `pump` work"


def test_a_further_one_is_searched_for_with_the_names_of_the_one_before():
    asked = after("how do `Station.pump` and open_valve work together")

    assert asked.query("and when does it end?") == "and when does it end? Station pump open_valve"
    assert asked.query("what is a Station") == "what is a Station pump open_valve"


def test_where_the_one_before_has_no_names_its_words_are_meant():
    asked = after("how is the session cookie signed")

    assert asked.query("and when does it expire?") == "and when does it expire? session cookie signed"


def test_only_the_question_before_counts_and_so_many_words_of_it():
    asked = after("`one`").answered(" ".join(f"name_{number}" for number in range(100)), "", ())

    assert asked.query("why?").split() == ["why?", *(f"name_{number}" for number in range(12))]


def test_what_the_last_answer_cites_is_read_again_before_what_is_new():
    asked = after("`pump`?", "`drain` [2], and [9].", PUMP, DRAIN)
    assert asked.turns[0].cited == (2,)

    going_on, read = asked.found(context(GATE))
    assert numbers(read) == [(2, "lib/drain.py"), (3, "lib/gate.py")]
    assert numbers(going_on.passages.kept) == [(1, "lib/pump.py"), (2, "lib/drain.py"), (3, "lib/gate.py")]

    assert numbers(asked.found(context(GATE, DRAIN))[1]) == [(3, "lib/gate.py"), (2, "lib/drain.py")]


def test_it_is_bounded():
    asked = Conversation()
    for turn in range(100):
        texts = [replace(PUMP, path=f"{turn}/{number}.py") for number in range(10)]
        asked, read = asked.found(context(*texts))
        answer = "".join(f"[{one.number}]" for one in read)
        asked = asked.answered("why?", answer * 20, tuple(check(answer, read)))

    assert len(read) == 10 + 8
    assert len(asked.turns) == 20
    assert len(asked.passages.kept) == 200
    assert asked.passages.last == 1000
    assert 0 < sum(len(turn.question) + len(turn.answer) for turn in asked.recent) <= 16_000
    assert asked.recent == asked.turns[-len(asked.recent) :]


def test_a_turn_that_is_too_long_is_not_read_again():
    assert after("why?", "x" * 20_000).recent == ()
