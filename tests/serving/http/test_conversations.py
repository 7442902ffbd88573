"""Tests of conversations in server memory: who can continue them, how long they last, and how many are kept."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Found
from docindex_dagster.answering.passages import Passages
from docindex_dagster.serving.http import conversations
from docindex_dagster.serving.http.conversations import Conversations, Talk
from docindex_dagster.serving.http.problems import ProblemError
from tests.answering.samples import passage


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def talked(answer: str = "It is so.") -> Conversation:
    return Conversation().answered("Is it so?", answer, ())


def test_the_oldest_one_gives_way_to_the_newest(monkeypatch):
    monkeypatch.setattr(conversations, "_MAX_CONVERSATIONS", 3)
    kept = Conversations()
    for name in "abcd":
        kept.put(name, talked())
    assert [name for name in "abcd" if kept.get(name)] == ["b", "c", "d"]


def test_one_that_is_used_again_is_the_newest(monkeypatch):
    monkeypatch.setattr(conversations, "_MAX_CONVERSATIONS", 3)
    kept = Conversations()
    for name in "abcad":
        kept.put(name, talked())
    assert [name for name in "abcd" if kept.get(name)] == ["a", "c", "d"]


def test_large_ones_take_the_place_of_many(monkeypatch):
    monkeypatch.setattr(conversations, "_MAX_CHARS", 1000)
    kept = Conversations()
    for name in "abc":
        kept.put(name, talked())
    kept.put("a", talked("no"))
    kept.put("large", talked("x" * 970))
    assert [name for name in ("a", "b", "c", "large") if kept.get(name)] == ["a", "large"]


def test_they_are_forgotten_half_a_day_after_their_last_question():
    clock = Clock()
    kept = Conversations(clock)
    kept.put("old", talked())
    clock.now = 11 * 3600
    kept.put("new", talked())
    assert kept.get("old")
    clock.now = 13 * 3600
    assert (kept.get("old"), kept.get("new")) == (None, talked())


def within(kept: Conversations, name: str | None, work: Callable[[Talk], None]) -> str:
    async def go_on() -> str:
        async with kept.resume(name) as talk:
            work(talk)
        return talk.id

    return asyncio.run(go_on())


def test_numbers_that_were_shown_are_not_given_again_though_no_answer_came():
    kept = Conversations()
    kept.put("a", Conversation(talked().turns, Passages((passage(3, "x"),), last=5)))

    def stopped(talk: Talk) -> None:
        talk.note(Found("x", (passage(3, "x"), passage(8, "y")), (), 1, ()))
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        within(kept, "a", stopped)

    assert kept.get("a").passages.last == 8
    assert kept.get("a").turns == talked().turns


def test_an_answer_is_gone_on_from():
    kept = Conversations()
    name = within(kept, None, lambda talk: talk.note(Answer("So.", (), talked("So."))))
    assert kept.get(name) == talked("So.")


def test_one_without_an_answer_is_not_kept_since_nobody_knows_its_name():
    kept = Conversations()
    name = within(kept, None, lambda talk: talk.note(Found("x", (passage(8, "y"),), (), 1, ())))
    assert kept.get(name) is None


def test_two_questions_wait_for_each_other_a_moment_and_no_longer(monkeypatch):
    monkeypatch.setattr(conversations, "_WAIT_S", 0.2)
    kept = Conversations()
    kept.put("a", talked())

    async def go_on(takes_s: float) -> int:
        async with kept.resume("a") as talk:
            await asyncio.sleep(takes_s)
            talk.note(Answer("So.", (), talk.conversation.answered("And?", "So.", ())))
            return len(talk.conversation.turns)

    async def both(takes_s: float) -> Sequence[int | BaseException]:
        return await asyncio.gather(go_on(takes_s), go_on(0), return_exceptions=True)

    assert asyncio.run(both(0.05)) == [2, 3]
    _, refused = asyncio.run(both(0.5))
    assert isinstance(refused, ProblemError)
    assert refused.kind.name == "conversation-busy"
    assert len(kept.get("a").turns) == 4
