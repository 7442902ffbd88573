"""Budgets of a question, in tokens and in money, over all requests for its answer."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from docindex_dagster.core.errors import LLMBudgetError, LLMFailedError, LLMTruncatedError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import Delta, Item, Message, Tool, ToolCall, Usage
from tests.llm.chats import MODEL, OPENAI, ChatServer, Reply, serving

PRICES = {"price_in": 2.0, "price_out": 8.0}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as started:
        yield started


def budgeted(server: ChatServer, **options: Any) -> BudgetedChat:
    settings = LLMSettings(provider="openai", model=MODEL, **options)
    return BudgetedChat(OPENAI.model(server), settings)


def ask(
    model: BudgetedChat, words: int = 10, max_tokens: int = 500, tools: Sequence[Tool] = (), times: int = 1
) -> list[Item]:
    """Return the items of the last of `times` requests."""

    async def items() -> list[Item]:
        found: list[Item] = []
        try:
            for _ in range(times):
                messages = [Message("user", "word " * words)]
                async with aclosing(model.stream(messages, tools, max_tokens=max_tokens)) as stream:
                    found = [item async for item in stream]
        finally:
            await model.model.aclose()
        return found

    return asyncio.run(items())


def test_what_the_model_counts_is_summed_over_the_requests_of_a_question(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(1000, 50))]
    model = budgeted(server, **PRICES)

    assert ask(model, times=3) == [Delta("Hello."), Usage(1000, 50)]
    assert (model.prompt_tokens, model.completion_tokens) == (3000, 150)
    assert model.dollars == pytest.approx(3000 * 2e-6 + 150 * 8e-6)


def test_without_prices_it_costs_nobody_knows_what(server):
    assert budgeted(server, price_in=1.0).dollars is None


def test_an_answer_is_asked_to_be_no_longer_than_the_tokens_that_are_left(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(600, 100))]
    ask(budgeted(server, question_tokens=1000), times=2)

    assert server.asked[0]["max_tokens"] == 500
    assert 250 < server.asked[1]["max_tokens"] < 300


def test_when_they_are_used_up_nothing_more_is_asked(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(900, 95))]

    with pytest.raises(
        LLMBudgetError, match=r"has used 995 tokens, and .* its budget of 1,000 \(llm\.question_tokens\)"
    ):
        ask(budgeted(server, question_tokens=1000), times=5)
    assert len(server.asked) == 1


def test_a_prompt_that_is_larger_than_the_budget_is_not_sent(server):
    model = budgeted(server, question_tokens=1000)

    with pytest.raises(LLMBudgetError):
        ask(model, words=2000)
    assert (server.asked, model.tokens) == ([], 0)


def test_tools_are_a_part_of_the_prompt(server):
    tool = Tool("search", "word " * 2000, {})

    with pytest.raises(LLMBudgetError):
        ask(budgeted(server, question_tokens=1000), tools=[tool])


def test_money_is_kept_as_well(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(100, 100))]  # costs 0.1 cents
    model = budgeted(server, question_dollars=0.0022, **PRICES)

    with pytest.raises(
        LLMBudgetError, match=r"has cost \$0\.0020, .* its budget of \$0\.0022 \(llm\.question_dollars\)"
    ):
        ask(model, words=50, max_tokens=100, times=9)
    assert model.dollars == pytest.approx(0.002)
    assert [asked["max_tokens"] for asked in server.asked] == [100, 100]


def test_what_is_left_of_it_bounds_the_answer(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(10, 1))]
    ask(budgeted(server, question_dollars=0.001, **PRICES))

    assert 100 < server.asked[0]["max_tokens"] < 125  # at 8 dollars per million tokens


def test_a_model_that_costs_nothing_is_bound_by_tokens_alone(server):
    server.replies = [OPENAI.reply(Delta("Hello."), Usage(10, 1))]
    ask(budgeted(server, question_dollars=0, price_in=0, price_out=0))

    assert server.asked[0]["max_tokens"] == 500


def test_what_it_does_not_count_is_estimated_calls_included(server):
    server.replies = [OPENAI.reply(Delta("word " * 50), ToolCall("a", "search", '{"query": "pump"}'), Usage(0, 0))]
    model = budgeted(server)
    ask(model, words=200)

    assert 150 < model.prompt_tokens < 260
    assert 50 < model.completion_tokens < 80


def test_an_answer_that_breaks_off_has_cost_what_came_and_one_that_never_began_nothing(server):
    server.replies = [Reply(tuple(OPENAI.events([Delta("word " * 50)])), ends=False)]
    model = budgeted(server)
    with pytest.raises(LLMTruncatedError):
        ask(model, words=100)
    assert model.tokens > 140

    server.replies = [Reply(status=500)]
    other = budgeted(server)
    with pytest.raises(LLMFailedError):
        ask(other, words=100)
    assert other.tokens == 0


def test_whether_a_budget_pays_for_further_requests_is_known_before(server):
    hello = [Message("user", "word " * 100)]
    tokens = budgeted(server, question_tokens=1300)
    money = budgeted(server, question_dollars=0.01, **PRICES)

    assert [tokens.pays(hello, max_tokens=500, requests=n) for n in (1, 2, 3)] == [True, True, False]
    assert [money.pays(hello, max_tokens=500, requests=n) for n in (1, 2, 3)] == [True, True, False]
    assert not tokens.pays(hello, [Tool("look", "Look. " * 400, {})], max_tokens=500)
    assert budgeted(server).pays(hello, max_tokens=500, requests=100)
