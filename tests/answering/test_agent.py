"""Agentic answers: the tools a model may call, the calls that are rejected, and the limits on a run."""

import asyncio
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.answering.agent import Limits, Toolbox, ToolResult, investigate
from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.citations import State
from docindex_dagster.answering.conversation import Conversation, Reading
from docindex_dagster.answering.events import Answer, Event, Found, Spent, Step
from docindex_dagster.answering.prompt import AGENT_SYSTEM, ANSWER_NOW, prompt
from docindex_dagster.answering.question import Question
from docindex_dagster.answering.rendering import as_html, as_text
from docindex_dagster.core.errors import LLMBudgetError, LLMInvalidResponseError, QueryError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import ChatModel, Delta, Message, Tool, ToolCall, Usage
from docindex_dagster.search.cancellation import Patience
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.question_tools import QuestionTools
from tests.answering import projects
from tests.answering.test_prompt import fenced
from tests.llm.chats import ALL, ANTHROPIC, OLLAMA, OPENAI, ChatServer, Reply, serving
from tests.serving.http.conftest import TANK

EITHER = pytest.mark.parametrize(
    "protocol", [pytest.param(OPENAI, id="openai"), pytest.param(ANTHROPIC, id="anthropic")]
)  # providers whose tool calls can arrive incomplete
ABOUT_EVERYTHING = Question("How is a pump started?", tokens=60)
USED = Usage(9, 9)
SEARCH = ToolCall("a1", "search", '{"query": "how is a pump started"}')
SHOW = ToolCall("a2", "show", '{"reference": "tank.py"}')
CALLERS = ToolCall("a3", "graph", '{"question": "callers", "symbol": "check"}')
NOTES = 12
PAGES = {
    f"notes/{number}.md": f"# Notes {number}\n\n"
    + "\n\n".join(f"## Part {part}\n\n" + f"In part {part} of {number} a gauge was read. " * 30 for part in range(30))
    for number in range(NOTES)
}
ABOUT_MANUAL = Question("How is a pump started?", filters=lambda _: Filters(sources=("library/manual",)), tokens=60)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return projects.make(tmp_path_factory.mktemp("project"), PAGES)


@pytest.fixture(scope="module")
def live(root) -> Live:
    return projects.live_of(root)


def events_of(
    live: Live, model: ChatModel, question: Question, conversation: Conversation | None = None
) -> list[Event]:
    """Return all events of an answer that uses the project's tools."""

    async def run() -> list[Event]:
        try:
            stream = answer(live, question, conversation or Conversation(), model, QuestionTools(live, question))
            async with aclosing(stream) as events:
                return [event async for event in events]
        finally:
            await model.aclose()

    return asyncio.run(run())


def of(kind: type, events: Sequence[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def offers_tools(asked: Mapping[str, Any]) -> bool:
    return bool(asked.get("tools"))


def tool_messages(asked: Mapping[str, Any]) -> list[str]:
    """Return the tool results in a request, in the format of its protocol."""
    found = []
    for message in asked["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            found += [block["content"] for block in message["content"] if block["type"] == "tool_result"]
    return found


# Tool results.


@ALL
def test_what_a_tool_finds_is_read_and_cited_by_its_number(server, live, protocol):
    cited = "`check` raises `ValueError` for negative `litres` [2]."
    server.replies = [
        protocol.reply(Delta("Let me look."), SHOW, USED),
        protocol.reply(Delta(cited), Usage(20, 5)),
    ]

    events = events_of(live, protocol.model(server), ABOUT_EVERYTHING)

    found, preface, step, text, answered, spent = events
    assert isinstance(found, Found)
    assert [passage.number for passage in found.passages] == [1]
    assert (preface, text) == (Delta("Let me look."), Delta(cited))
    assert (step.tool, json.loads(step.arguments), step.is_error) == ("show", {"reference": "tank.py"}, False)
    assert step.outcome == "passages: 1, files: 1"
    assert [(passage.number, passage.path) for passage in step.passages] == [(2, "tank.py")]
    assert answered.text == cited
    assert [(one.number, one.state, one.passage.path) for one in answered.citations] == [
        (2, State.SUPPORTED, "tank.py")
    ]
    assert isinstance(spent, Spent)
    (given,) = tool_messages(server.asked[1])
    assert list(fenced(given)) == ["passage 2"]
    assert fenced(given)["passage 2"].startswith("git/shop tank.py:1-18\n")
    assert TANK.strip() in given
    assert [offers_tools(asked) for asked in server.asked] == [True, True]
    assert json.dumps(AGENT_SYSTEM)[1:-1] in json.dumps(server.asked[0])


@ALL
def test_a_model_that_calls_no_tool_answers(server, live, protocol):
    server.replies = [protocol.reply(Delta("Open the valve [1]."), USED)]

    events = events_of(live, protocol.model(server), ABOUT_MANUAL)

    assert [type(event) for event in events] == [Found, Delta, Answer, Spent]
    assert len(server.asked) == 1


@ALL
def test_each_call_of_a_turn_gets_its_answer_in_their_order(server, live, protocol):
    server.replies = [
        protocol.reply(SEARCH, SHOW, CALLERS, USED),
        protocol.reply(Delta("Open the valve [1]."), USED),
    ]

    events = events_of(live, protocol.model(server), Question("What is a tank?", tokens=60))

    assert [step.tool for step in of(Step, events)] == ["search", "show", "graph"]
    sent = json.dumps(server.asked[1]["messages"])
    assert all(sent.count(f'"{call.id}"') == 2 for call in (SEARCH, SHOW, CALLERS))
    searched, shown, called = tool_messages(server.asked[1])
    assert "How a pump is started" in searched
    assert "class Tank" in shown
    assert "<-calls- git/shop!tank.py::pump" in fenced(called)["result"]


@pytest.mark.parametrize("size", [1, 3, 17, 400])
def test_fragments_of_calls_mean_the_same_however_they_are_cut(server, live, size):
    bytes_ = b"".join(OPENAI.events([Delta("So: "), SHOW, SEARCH, USED]))
    pieces = tuple(bytes_[at : at + size] for at in range(0, len(bytes_), size))
    server.replies = [Reply(pieces), OPENAI.reply(Delta("Yes [1]."), USED)]

    steps = of(Step, events_of(live, OPENAI.model(server), ABOUT_MANUAL))

    assert [(step.tool, step.arguments) for step in steps] == [(call.name, call.arguments) for call in (SHOW, SEARCH)]


def test_a_passage_that_was_shown_is_named_and_not_shown_again(server, live):
    again = ToolCall("a4", "context", '{"query": "tank", "path": "tank.py"}')
    server.replies = [
        OPENAI.reply(SHOW, USED),
        OPENAI.reply(again, USED),
        OPENAI.reply(Delta("It holds water [2]."), USED),
    ]

    events = events_of(live, OPENAI.model(server), ABOUT_EVERYTHING)

    first, second = tool_messages(server.asked[2])
    assert "class Tank" in first
    assert second.split("\n\n")[1:] == ["Also found, and already shown: [2]."]
    assert [step.passages for step in of(Step, events)][1] == ()


def test_numbers_go_on_through_a_conversation(server, live):
    server.replies = [OPENAI.reply(SHOW, USED), OPENAI.reply(Delta("It holds water [2]."), USED)]
    (first,) = of(Answer, events_of(live, OPENAI.model(server), ABOUT_EVERYTHING))
    server.replies = [
        OPENAI.reply(ToolCall("b", "show", '{"reference": "tests/test_tank.py"}'), USED),
        OPENAI.reply(Delta("The test calls `pump` [3], as `Tank.fill` does [2]."), USED),
    ]

    second = events_of(live, OPENAI.model(server), Question("What tests `pump`?", tokens=60), first.conversation)

    (answered,) = of(Answer, second)
    assert [(one.number, one.passage.path) for one in answered.citations] == [(3, "tests/test_tank.py"), (2, "tank.py")]


def test_a_model_that_cites_what_is_not_there_is_found_out(server, live):
    server.replies = [OPENAI.reply(SHOW, USED), OPENAI.reply(Delta("`pump` moves water [2], and oil [99]."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_EVERYTHING)

    answered = of(Answer, events)[0]
    assert [(one.number, one.state) for one in answered.citations][1] == (99, State.MISSING)
    assert "[99 missing]" in as_text(answered.text, answered.citations)
    html = as_html(answered.text, answered.citations, lambda citation: f"/{citation.number}")
    assert re.findall(r'href="([^"]*)"', html) == ["/2"]


# Invalid tool calls.


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            ("fetch", '{"url": "https://evil.example"}'),
            "tool 'fetch' not found; available tools: search, context, show, ",
        ),
        (("", "{}"), "tool '' not found"),
        (("rm -rf /", "{}"), "tool 'rm -rf /' not found"),
        (("search", '{"query": "pum'), "invalid arguments: not JSON"),
        (("search", "[" * 100_000), "invalid arguments: not JSON"),
        (("search", '{"query": ' + "1" * 5000 + "}"), "invalid arguments: not JSON"),
        (("search", '["pump"]'), "invalid arguments: not a JSON object"),
        (("search", "null"), "invalid arguments: not a JSON object"),
        (("search", "{}"), "query is missing"),
        (("search", '{"query": "x", "top_k": 900}'), "top_k should be less than or equal to 50, not 900"),
        (("search", '{"query": "x", "limit": 3}'), "search has no argument 'limit'; it accepts query, "),
        (("search", '{"query": "x", "max_tokens": 90000}'), "search has no argument 'max_tokens'"),
        (("search", '{"query": "  "}'), "the query is empty"),
        (("search", '{"query": "(", "mode": "regex"}'), "invalid RE2 pattern"),
        (("show", '{"reference": "nowhere.py"}'), "no indexed chunk is named 'nowhere.py'"),
        (("show", '{"reference": "\\ud800"}'), "no indexed chunk is named"),
        (("show", '{"reference": "tank.py", "cursor": "x"}'), "cursor: it is not from an answer"),
        (("graph", '{"question": "callers", "symbol": "nothing"}'), "'nothing' not found in the graph"),
        (("log", '{"since": "yesterday"}'), "should be a date or time"),
    ],
)
@EITHER
def test_a_broken_call_goes_back_as_an_error_and_the_model_goes_on(server, live, protocol, call, problem):
    server.replies = [
        protocol.reply(ToolCall("a1", *call), USED),
        protocol.reply(Delta("Open the valve [1]."), USED),
    ]

    events = events_of(live, protocol.model(server), ABOUT_EVERYTHING)

    (step,) = of(Step, events)
    assert (step.tool, step.is_error) == (call[0], True)
    assert problem in step.outcome
    (given,) = tool_messages(server.asked[1])
    assert problem in fenced(given)["error"]
    assert of(Answer, events)[0].text == "Open the valve [1]."


@EITHER
def test_a_call_is_sent_back_as_every_provider_takes_it(server, live, protocol):
    broken = (ToolCall("a1", "rm -rf /", '{"path": "/"}'), ToolCall("a2", "search", '{"query'), ToolCall("a3", "", "7"))
    server.replies = [protocol.reply(*broken, USED), protocol.reply(Delta("No."), USED)]

    events_of(live, protocol.model(server), ABOUT_MANUAL)

    sent = server.asked[1]["messages"]
    calls = [call["function"] for message in sent for call in message.get("tool_calls", ())]
    blocks = [block for message in sent if isinstance(message["content"], list) for block in message["content"]]
    names = [call["name"] for call in calls] + [block["name"] for block in blocks if block["type"] == "tool_use"]
    assert names == ["rm_-rf__", "search", "_"]
    assert [json.loads(call["arguments"]) for call in calls] in ([], [{"path": "/"}, {}, {}])


def test_a_tool_that_fails_is_an_error_whose_reason_is_for_the_user_alone(server, root, tmp_path):
    copied = Path(shutil.copytree(root, tmp_path / "project", symlinks=True))
    live = projects.live_of(copied)
    shutil.rmtree(live.settings.home / "stores" / "graph")
    server.replies = [OPENAI.reply(CALLERS, USED), OPENAI.reply(Delta("Open the valve [1]."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    (step,) = of(Step, events)
    assert step.is_error
    assert len(step.outcome) > len("the tool failed")
    (given,) = tool_messages(server.asked[1])
    assert fenced(given) == {"error": "the tool failed"}
    assert str(tmp_path) not in json.dumps(server.asked)
    assert of(Answer, events)[0].text == "Open the valve [1]."


# Limits.


def test_after_eight_steps_it_answers_without_tools(server, live):
    replies = [OPENAI.reply(ToolCall(f"a{n}", "search", f'{{"query": "part {n}"}}'), USED) for n in range(20)]
    server.replies = [*replies[:8], OPENAI.reply(Delta("That is all [1]."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    assert [offers_tools(asked) for asked in server.asked] == [True] * 8 + [False]
    assert server.asked[-1]["messages"][-1] == {"role": "user", "content": ANSWER_NOW}
    assert len(of(Step, events)) == 8
    assert of(Answer, events)[0].text == "That is all [1]."


def test_after_twelve_calls_it_answers_without_tools(server, live):
    def turn(step: int, calls: int) -> Reply:
        return OPENAI.reply(*(ToolCall(f"a{step}-{n}", "log", "{}") for n in range(calls)), USED)

    server.replies = [turn(1, 5), turn(2, 5), turn(3, 5), OPENAI.reply(Delta("Enough."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    steps = of(Step, events)
    assert [step.is_error for step in steps] == [False] * 12 + [True] * 3
    assert steps[-1].outcome == "not done: no call is left"
    assert [offers_tools(asked) for asked in server.asked] == [True] * 3 + [False]
    given = tool_messages(server.asked[-1])
    assert given[12:] == ["Not done: no call is left."] * 3
    assert [re.search(r"Calls left: (\d+)\.$", text)[1] for text in given[8:12]] == ["3", "2", "1", "0"]
    assert not any("Calls left" in text for text in given[:8])
    sent = json.dumps(server.asked[-1]["messages"])
    assert all(sent.count(f'"a3-{n}"') == 2 for n in range(5))


def test_broken_calls_count(server, live):
    server.replies = [OPENAI.reply(*(ToolCall(f"a{n}", "fetch", "{}") for n in range(13)), USED)]
    server.replies.append(OPENAI.reply(Delta("Enough."), USED))

    events = events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    assert [step.outcome == "not done: no call is left" for step in of(Step, events)] == [False] * 12 + [True]


def test_what_tools_give_has_an_end_by_call_and_in_all(server, live):
    shows = [ToolCall(f"a{n}", "show", f'{{"reference": "notes/{n}.md"}}') for n in range(NOTES)]
    turns = [OPENAI.reply(*shows[at : at + 2], USED) for at in range(0, NOTES, 2)]
    server.replies = [*turns[:5], OPENAI.reply(Delta("Enough."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_EVERYTHING)

    given = count_tokens(tool_messages(server.asked[-1]))
    assert max(given) <= 4000
    assert 23_500 < sum(given) <= 24_000
    assert [offers_tools(asked) for asked in server.asked] == [True] * 5 + [False]
    assert of(Step, events)[-1].outcome == "not done: no tokens are left for what tools give"


@dataclass
class Stub:
    """Tools that run a function of the test."""

    do: Callable[[], ToolResult]
    called: list[str] = field(default_factory=list)

    @property
    def tools(self) -> Sequence[Tool]:
        return (Tool("look", "Look.", {"type": "object", "properties": {}}),)

    def call(self, name: str, arguments: Mapping[str, Any], max_tokens: int) -> ToolResult:
        self.called.append(name)
        return self.do()


LOOK = ToolCall("a", "look", "{}")
_AS_SHIPPED = Limits()


async def investigated(
    model: ChatModel, toolbox: Toolbox, limits: Limits = _AS_SHIPPED, **settings: Any
) -> list[Delta | Step | Usage]:
    asked = prompt("What is a pump?", (), is_for_agent=True)
    messages = [Message("system", asked.system), Message("user", asked.user)]
    budgeted = BudgetedChat(model, LLMSettings(**settings))
    try:
        stream = investigate(budgeted, messages, toolbox, Reading(Conversation()), max_tokens=50, limits=limits)
        async with aclosing(stream) as items:
            return [item async for item in items]
    finally:
        await model.aclose()


@dataclass
class Slow:
    """A search of several seconds that checks for cancellation."""

    begun: threading.Event = field(default_factory=threading.Event)
    given_up: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> ToolResult:
        self.begun.set()
        for _ in range(500):
            try:
                Patience.of(60).check()
            except QueryError:
                self.given_up.set()
                raise
            time.sleep(0.01)
        return nothing()


def nothing() -> ToolResult:
    return ToolResult("nothing", "Nothing.")


def test_text_of_a_tool_that_is_larger_than_what_is_left_is_not_sent(server):
    server.replies = [OPENAI.reply(LOOK, USED), OPENAI.reply(LOOK, USED), OPENAI.reply(Delta("Enough."), USED)]
    huge = Stub(lambda: ToolResult("much", "gauge " * 5000))

    _, second, *_ = asyncio.run(investigated(OPENAI.model(server), huge, Limits(tokens=1000)))

    assert "exceeds the" in second.outcome
    assert sum(count_tokens(tool_messages(server.asked[-1]))) <= 1000


def test_when_the_time_is_over_a_request_that_brings_nothing_is_closed_and_it_answers(server):
    server.replies = [OPENAI.reply(LOOK, USED, delay_s=30.0), OPENAI.reply(Delta("Enough."), USED)]

    began = time.monotonic()
    items = asyncio.run(investigated(OPENAI.model(server), Stub(nothing), Limits(seconds=0.5)))

    assert items == [Delta("Enough."), USED]
    assert time.monotonic() - began < 10
    assert server.leaving.wait(5)
    assert [offers_tools(asked) for asked in server.asked] == [True, False]


def test_an_answer_that_has_begun_goes_on_when_the_time_is_over(server):
    words = [Delta(f"word{n} ") for n in range(10)]
    server.replies = [OPENAI.reply(*words, LOOK, USED, drip_s=0.1), OPENAI.reply(Delta("Enough."), USED)]

    items = asyncio.run(investigated(OPENAI.model(server), Stub(nothing), Limits(seconds=0.5)))

    step = items[10]
    assert items[:10] == words
    assert (step.is_error, step.outcome) == (True, "not done: no time is left")
    assert items[11:] == [Delta("Enough."), USED]


def test_a_tool_that_takes_too_long_is_given_up_and_meanwhile_others_go_on(server):
    slow, ticks = Slow(), 0

    async def run() -> list[Any]:
        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        try:
            return await investigated(OPENAI.model(server), Stub(slow), Limits(seconds=1.0))
        finally:
            ticking.cancel()

    server.replies = [OPENAI.reply(LOOK, USED), OPENAI.reply(Delta("Enough."), USED)]
    step, *rest = asyncio.run(run())

    assert (step.is_error, step.outcome) == (True, "no time is left")
    assert rest == [Delta("Enough."), USED]
    assert slow.given_up.is_set()
    assert ticks > 10


def test_a_budget_pays_for_the_answer_too(server):
    replies = [OPENAI.reply(LOOK, Usage(2000, 100))] * 8
    server.replies = [*replies[:1], OPENAI.reply(Delta("Enough."), USED)]

    items = asyncio.run(investigated(OPENAI.model(server), Stub(nothing), question_tokens=3500))

    assert items[1:] == [Delta("Enough."), USED]
    assert [offers_tools(asked) for asked in server.asked] == [True, False]


def test_a_budget_of_money_pays_for_the_answer_too(server):
    server.replies = [OPENAI.reply(LOOK, Usage(2000, 100)), OPENAI.reply(Delta("Enough."), USED)]

    stream = investigated(OPENAI.model(server), Stub(nothing), price_in=1.0, price_out=1.0, question_dollars=0.0035)
    items = asyncio.run(stream)

    assert items[1:] == [Delta("Enough."), USED]


def test_without_a_budget_for_an_answer_nothing_is_asked(server):
    with pytest.raises(LLMBudgetError):
        asyncio.run(investigated(OPENAI.model(server), Stub(nothing), question_tokens=100))
    assert server.asked == []


def test_all_that_is_read_fits_into_the_window(server, live):
    shows = (ToolCall(f"a{n}", "show", f'{{"reference": "notes/{n}.md"}}') for n in range(NOTES))
    server.replies = [OLLAMA.reply(Delta("Well."), show, USED) for show in shows]

    events = events_of(live, OLLAMA.model(server, context_tokens=16_384), Question("Which gauge was read in part 3?"))

    sizes = [sum(count_tokens([*map(str, (*asked["messages"], *asked.get("tools", ())))])) for asked in server.asked]
    assert 9000 < max(sizes) < 16_384 - 1500
    assert [step.is_error for step in of(Step, events)][-1:] == [False]
    assert len(server.asked) < 8
    assert not offers_tools(server.asked[-1])


def test_a_model_that_calls_tools_when_it_is_to_answer_has_answered_nothing(server, live):
    server.replies = [OPENAI.reply(SEARCH, USED)]

    with pytest.raises(LLMInvalidResponseError, match="empty answer"):
        events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    assert len(server.asked) == 9


def test_the_usage_is_that_of_the_last_answer(server):
    server.replies = [OPENAI.reply(LOOK, Usage(7, 7)), OPENAI.reply(Delta("Cut"), Usage(3, 4, is_answer_cut=True))]

    items = asyncio.run(investigated(OPENAI.model(server), Stub(nothing)))

    assert of(Usage, items) == [Usage(3, 4, is_answer_cut=True)]


@pytest.mark.parametrize("requests", [1, 8])
def test_that_the_model_may_not_have_read_all_is_said_of_any_request(server, requests):
    huge = Usage(16_384, 3)
    server.replies = [OLLAMA.reply(LOOK, huge), OLLAMA.reply(Delta("So."), USED)]

    model = OLLAMA.model(server, context_tokens=16_384)
    items = asyncio.run(investigated(model, Stub(nothing), Limits(requests=requests)))

    assert of(Usage, items) == [Usage(9, 9, is_prompt_cut=True)]


# Cancellation.


@ALL
def test_who_leaves_while_the_model_writes_closes_its_request(server, live, protocol):
    pieces = tuple(protocol.events([Delta("one "), Delta("two ")]))
    server.replies = [protocol.reply(SHOW, USED), Reply(pieces, stays=True)]

    async def run() -> float:
        model = protocol.model(server)
        async with aclosing(
            answer(live, ABOUT_MANUAL, Conversation(), model, QuestionTools(live, ABOUT_MANUAL))
        ) as events:
            async for event in events:
                if event == Delta("one "):
                    break
        left = time.monotonic()
        await asyncio.to_thread(server.leaving.wait, 5)
        await model.aclose()
        return left

    left = asyncio.run(run())
    assert server.left[0] - left < 1


def test_who_leaves_while_a_tool_is_at_work_waits_for_nothing(server):
    slow = Slow()
    server.replies = [OPENAI.reply(LOOK, USED)]

    async def run() -> float:
        asking = asyncio.create_task(investigated(OPENAI.model(server), Stub(slow)))
        await asyncio.to_thread(slow.begun.wait, 10)
        left = time.monotonic()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return time.monotonic() - left

    assert asyncio.run(run()) < 1
    assert slow.given_up.wait(5)
    assert len(server.asked) == 1


# Filters.


def test_no_call_reads_what_the_question_is_not_about(server, live):
    calls = [
        ("search", {"query": "MARMOT", "sources": ["vault"]}),
        ("search", {"query": "the word of the vault", "top_k": 50}),
        ("search", {"query": "MARMO.", "mode": "regex"}),
        ("context", {"query": "which word opens the pump of the vault", "sources": "library/vault"}),
        ("show", {"reference": "vault.md"}),
        ("show", {"reference": "library/vault::vault.md::0"}),
        ("show", {"reference": "../vault/vault.md", "sources": ["manual"]}),
        ("graph", {"question": "neighbors", "symbol": "vault.md"}),
        ("log", {"path": "../vault"}),
        ("search", {"query": "vault", "path": "/vault/**"}),
    ]
    asked = [ToolCall(f"a{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    server.replies = [OPENAI.reply(*asked, USED), OPENAI.reply(Delta("I cannot say."), USED)]

    events = events_of(live, OPENAI.model(server), ABOUT_MANUAL)

    assert len(of(Step, events)) == len(calls)
    assert all(
        step.passages == () or {one.source for one in step.passages} == {"library/manual"} for step in of(Step, events)
    )
    for given in tool_messages(server.asked[1]):
        assert "The pump of the vault" not in given
        assert "opened by the word" not in given


def test_a_model_without_tools_answers_from_what_was_found(server, live):
    @dataclass
    class Plain:
        """The same model without support for tools."""

        model: ChatModel
        has_tools: bool = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

    server.replies = [OPENAI.reply(Delta("Open the valve [1]."), USED)]

    events = events_of(live, Plain(OPENAI.model(server)), ABOUT_MANUAL)

    assert of(Answer, events)[0].text == "Open the valve [1]."
    assert not offers_tools(server.asked[0])
    assert AGENT_SYSTEM not in json.dumps(server.asked[0])
