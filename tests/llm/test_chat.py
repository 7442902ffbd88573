"""Streamed answers: requests, items, and the outcome of each failure."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import (
    LLMError,
    LLMFailedError,
    LLMInvalidResponseError,
    LLMKeyError,
    LLMLimitError,
    LLMTimeoutError,
    LLMTruncatedError,
    LLMUnreachableError,
)
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import ChatModel, Delta, Item, Message, Tool, ToolCall, Usage, prepare
from docindex_dagster.llm.protocol import LLM, Completion
from docindex_dagster.llm.providers import chat_model, load_llm
from tests import loopback
from tests.llm.chats import ALL, ANTHROPIC, MODEL, OLLAMA, OPENAI, ChatServer, Protocol, Reply, serving
from tests.llm.server import KEY

SEARCH = Tool("search", "Search the index.", {"type": "object", "properties": {"query": {"type": "string"}}})
ASKED = [Message("system", "Answer from the passages."), Message("user", "What is a pump?")]
ANSWER = (Delta("A pump "), Delta("moves water [1]."), Usage(100, 20))
HELLO = (Delta("Hello."), Usage(1, 1))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as started:
        yield started


async def items_of(model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> list[Item]:
    try:
        async with aclosing(model.stream(messages, tools, max_tokens=max_tokens)) as stream:
            return [item async for item in stream]
    finally:
        await model.aclose()


def ask(
    model: ChatModel, messages: Sequence[Message] = ASKED, tools: Sequence[Tool] = (), max_tokens: int = 50
) -> list[Item]:
    return asyncio.run(items_of(model, messages, tools, max_tokens))


# Requests and items.


@ALL
def test_a_conversation_is_sent_with_the_limit_and_the_key_and_the_answer_comes_in_pieces(server, protocol):
    server.replies = [protocol.reply(*ANSWER)]

    assert ask(protocol.model(server)) == list(ANSWER)

    (asked,) = server.asked
    assert asked["model"] == MODEL
    assert asked["stream"] is True
    assert "Answer from the passages." in json.dumps(asked)
    assert asked["messages"][-1]["role"] == "user"
    assert "What is a pump?" in json.dumps(asked["messages"][-1])
    assert 50 in (asked.get("max_tokens"), asked.get("options", {}).get("num_predict"))
    assert "tools" not in asked
    assert (server.paths, [key.removeprefix("Bearer ") for key in server.keys]) == ([protocol.path], [KEY])


@ALL
def test_a_piece_is_there_before_the_next_one_is_written(server, protocol):
    server.replies = [Reply(tuple(protocol.events([Delta("first"), Delta("second")])), drip_s=0.1)]

    async def first() -> float:
        model = protocol.model(server)
        async with aclosing(model.stream(ASKED, max_tokens=5)) as stream:
            assert await anext(stream) == Delta("first")
            came = time.monotonic()
        await model.aclose()
        return came

    came = asyncio.run(first())
    assert server.leaving.wait(5)
    assert came < server.left[0]


@ALL
def test_calls_of_tools_come_whole_and_whatever_they_are_called(server, protocol):
    calls = (
        ToolCall("a1", "search", '{"query": "pump"}'),
        ToolCall("a2", "rm -rf", '{"path": ["/", "häß"], "n": 2}'),
        ToolCall("a3", "search", "{}"),
    )
    server.replies = [protocol.reply(Delta("Let me look."), *calls, Usage(9, 9))]

    assert ask(protocol.model(server), tools=[SEARCH]) == [Delta("Let me look."), *calls, Usage(9, 9)]
    (offered,) = server.asked[0]["tools"]
    assert SEARCH.parameters in (offered.get("input_schema"), offered.get("function", {}).get("parameters"))


@pytest.mark.parametrize("protocol", [pytest.param(OPENAI, id="openai"), pytest.param(ANTHROPIC, id="anthropic")])
def test_arguments_that_are_no_json_come_as_they_are(server, protocol):
    call = ToolCall("a1", "search", '{"query": "pum')
    server.replies = [protocol.reply(call, Usage(9, 9))]

    assert ask(protocol.model(server), tools=[SEARCH]) == [call, Usage(9, 9)]
    assert call.values() == {}


@ALL
def test_what_tools_gave_is_sent_with_the_calls_that_it_answers(server, protocol):
    server.replies = [protocol.reply(*HELLO)]
    calls = (ToolCall("a1", "search", '{"query": "pump"}'), ToolCall("a2", "show", "broken"))
    messages = [
        *ASKED,
        Message("assistant", "", calls),
        Message("tool", "[1] pump.py", tool_call_id="a1"),
        Message("tool", "there is no tool 'show'", tool_call_id="a2"),
    ]

    ask(protocol.model(server), messages, [SEARCH])

    sent = server.asked[0]["messages"]
    match protocol.provider:
        case "openai":
            assert [call["function"]["arguments"] for call in sent[2]["tool_calls"]] == ['{"query": "pump"}', "broken"]
            assert [message["tool_call_id"] for message in sent[3:]] == ["a1", "a2"]
        case "ollama":
            assert [call["function"]["arguments"] for call in sent[2]["tool_calls"]] == [{"query": "pump"}, {}]
            assert [message["tool_name"] for message in sent[3:]] == ["search", "show"]
        case "anthropic":
            assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
            assert [block["input"] for block in sent[1]["content"]] == [{"query": "pump"}, {}]
            assert [block["tool_use_id"] for block in sent[2]["content"]] == ["a1", "a2"]


@ALL
def test_an_answer_that_meets_its_limit_says_so(server, protocol):
    server.replies = [protocol.reply(Delta("A pump is"), Usage(5, 50, is_answer_cut=True))]

    assert ask(protocol.model(server))[-1] == Usage(5, 50, is_answer_cut=True)


@ALL
def test_answers_of_one_model_are_read_together(server, protocol):
    server.replies = [protocol.reply(*ANSWER, drip_s=0.05)]

    async def several() -> list[list[Item]]:
        model = protocol.model(server)

        async def one() -> list[Item]:
            async with aclosing(model.stream(ASKED, max_tokens=5)) as stream:
                return [item async for item in stream]

        answers = await asyncio.gather(*(one() for _ in range(5)))
        await model.aclose()
        return answers

    assert asyncio.run(several()) == [list(ANSWER)] * 5
    assert max(server.times) - min(server.times) < 1


# Streams split at arbitrary bytes.

TEXTS = st.text(min_size=1, max_size=12)
CALLS = st.builds(
    lambda id_, name, arguments: ToolCall(f"id-{id_}", name, json.dumps(arguments, ensure_ascii=False)),
    st.uuids(),
    st.text(min_size=1, max_size=8),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9) | st.none(), max_size=3),
)
ANSWERS = st.tuples(st.lists(TEXTS.map(Delta), min_size=1, max_size=4), st.lists(CALLS, max_size=2))


def pieces_of(data: bytes, cuts: Sequence[int]) -> tuple[bytes, ...]:
    at = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    return tuple(data[first:last] for first, last in pairwise(at))


@ALL
def test_however_the_bytes_are_split_the_items_are_the_same(protocol):
    with serving() as server:

        @given(answer=ANSWERS, cuts=st.lists(st.integers(0, 1 << 16), max_size=30), usage=st.integers(1, 1 << 20))
        @settings(max_examples=25)
        def same(answer, cuts, usage):
            deltas, calls = answer
            items = [*deltas, *calls, Usage(usage, usage)]
            data = b"".join(protocol.events(items))
            server.replies = [Reply(pieces_of(data, cuts))]
            assert ask(protocol.model(server, context_tokens=1 << 21)) == items

        same()


@ALL
def test_byte_by_byte_they_are_too(server, protocol):
    items = [
        Delta("Häuser — 🏠\r\n\n"),
        Delta("data: [DONE]\n\n"),
        ToolCall("a", "suche", '{"q": "ü\\n"}'),
        Usage(3, 4),
    ]
    data = b"".join(protocol.events(items))
    server.replies = [Reply(tuple(data[at : at + 1] for at in range(len(data))))]

    assert ask(protocol.model(server)) == items


# Failures.


@ALL
def test_where_nobody_listens_it_is_unreachable(protocol):
    with pytest.raises(LLMUnreachableError, match=r"127\.0\.0\.1 cannot be reached; see llm\.base_url"):
        ask(protocol.model(loopback.unused_address(), retries=1))


@ALL
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_is_reported_at_once_and_not_shown(server, protocol, status, caplog):
    caplog.set_level("DEBUG")
    server.replies = [Reply(status=status)]
    model = protocol.model(server, retries=3)

    with pytest.raises(LLMKeyError, match="rejected the key in DOCINDEX_LLM__API_KEY") as caught:
        ask(model)
    assert len(server.asked) == 1
    assert KEY not in f"{caught.value!r} {caught.value.__cause__} {model!r} {caplog.text}"


def seconds() -> str:
    return "1"


def date() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)  # HTTP dates have whole seconds


@ALL
@pytest.mark.parametrize("form", [seconds, date])
def test_who_is_asked_too_often_is_asked_again_when_it_says(server, protocol, form):
    server.replies = [Reply(status=429, headers={"Retry-After": form()}), protocol.reply(*ANSWER)]

    assert ask(protocol.model(server, retries=1)) == list(ANSWER)
    assert 0.9 <= server.times[1] - server.times[0] < 6


@ALL
def test_who_asks_for_more_patience_than_there_is_is_not_waited_for(server, protocol):
    server.replies = [Reply(status=429, headers={"Retry-After": "3600"})]

    with pytest.raises(LLMLimitError, match="rate limit reached, or quota used up") as caught:
        ask(protocol.model(server, retries=5))
    assert caught.value.retry_after_s == 3600
    assert len(server.asked) == 1


@ALL
@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_server_that_fails_is_asked_again_as_often_as_the_settings_say(server, protocol, status):
    server.replies = [Reply(status=status), Reply(status=status), protocol.reply(*ANSWER)]
    assert ask(protocol.model(server, retries=2)) == list(ANSWER)

    server.replies = [Reply(status=status)]
    with pytest.raises(LLMFailedError, match=rf"127\.0\.0\.1 answered {status}: the server failed"):
        ask(protocol.model(server, retries=1))
    assert len(server.asked) == 3 + 2  # the HTTP client adds no retries of its own


@ALL
@pytest.mark.parametrize("status", [400, 404, 302, 418])
def test_a_refusal_for_good_is_not_asked_again(server, protocol, status):
    server.replies = [Reply(status=status)]

    with pytest.raises(LLMError) as caught:
        ask(protocol.model(server, retries=3))
    assert not isinstance(caught.value, (LLMFailedError, LLMKeyError, LLMUnreachableError))
    assert len(server.asked) == 1


@ALL
def test_a_stream_that_breaks_off_keeps_what_came_and_is_not_begun_again(server, protocol):
    server.replies = [Reply(tuple(protocol.events([Delta("A pump ")])), ends=False)]
    came: list[Item] = []

    async def read() -> None:
        model = protocol.model(server, retries=3)
        try:
            async with aclosing(model.stream(ASKED, max_tokens=5)) as stream:
                async for item in stream:
                    came.append(item)  # noqa: PERF401 what came before the error counts
        finally:
            await model.aclose()

    with pytest.raises(LLMTruncatedError, match=r"the answer from 127\.0\.0\.1 broke off"):
        asyncio.run(read())
    assert came == [Delta("A pump ")]
    assert len(server.asked) == 1


@ALL
def test_one_that_ends_before_the_answer_does_is_broken_as_well(server, protocol):
    server.replies = [Reply(tuple(protocol.events([Delta("A pump "), Delta("moves")])))]

    with pytest.raises(LLMTruncatedError, match="the stream ended early"):
        ask(protocol.model(server))


@ALL
def test_one_that_breaks_before_its_first_item_is_begun_again(server, protocol):
    half = next(iter(protocol.events([Delta("A pump")])))[:9]
    server.replies = [Reply((half,), ends=False), Reply(broken=b""), protocol.reply(*ANSWER)]

    assert ask(protocol.model(server, retries=2)) == list(ANSWER)


@ALL
def test_an_error_in_the_middle_of_a_stream_breaks_it_and_is_not_repeated(server, protocol):
    event = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": f"no {KEY}"}})
    error = {
        "openai": f"data: {event}\n\n",
        "anthropic": f"event: error\ndata: {event}\n\n",
        "ollama": json.dumps({"error": f"no {KEY}"}) + "\n",
    }[protocol.provider]
    server.replies = [Reply((*protocol.events([Delta("A pump")]), error.encode()))]

    with pytest.raises(LLMTruncatedError) as caught:
        ask(protocol.model(server))
    assert KEY not in str(caught.value)


@ALL
def test_silence_is_not_waited_for_and_not_asked_again(server, protocol):
    server.replies = [Reply(delay_s=30)]
    model = protocol.model(server, timeout_s=0.5, retries=5)
    started = time.monotonic()

    with pytest.raises(LLMTimeoutError, match=r"did not answer within 0\.5 s \(llm\.timeout_s\)"):
        ask(model)
    assert time.monotonic() - started < 3
    assert len(server.asked) == 1


@ALL
@pytest.mark.parametrize("size", [1, 1 << 16], ids=["a byte", "a word"])
def test_a_drop_now_and_then_does_not_get_round_the_time_limit(server, protocol, size):
    words = protocol.events([Delta("water ")] * 100)
    pieces = [event[at : at + size] for event in words for at in range(0, len(event), size)]
    server.replies = [Reply(tuple(pieces), drip_s=0.05)]
    model = protocol.model(server, timeout_s=0.6)
    started = time.monotonic()

    with pytest.raises(LLMTimeoutError):
        ask(model)
    assert time.monotonic() - started < 3
    assert server.leaving.wait(5)


@ALL
def test_the_time_of_who_reads_it_does_not_count(server, protocol):
    server.replies = [protocol.reply(*ANSWER)]

    async def slowly() -> list[Item]:
        model, items = protocol.model(server, timeout_s=0.7), list[Item]()
        async with aclosing(model.stream(ASKED, max_tokens=5)) as stream:
            async for item in stream:
                items.append(item)
                await asyncio.sleep(0.5)
        await model.aclose()
        return items

    assert asyncio.run(slowly()) == list(ANSWER)


NONSENSE = [
    b"",
    b"not json",
    b"<html><body>Welcome</body></html>",
    b"[]\n",
    b"5\n",
    b'{"message": 5}\n',
    b'data: {"choices": 5, "type": 5}\n\n',
    b"data: not json\n\n",
    b"event: message_start\ndata: nonsense\n\n",
    b"\xff\xfe" * 50,
    b"[" * 100_000 + b"\n",
    b'data: {"choices": [{"delta": {"content": 5}}], "type": [], "usage": {"prompt_tokens": -1}}\n\n',
]


@ALL
@pytest.mark.parametrize("body", NONSENSE)
def test_nonsense_is_an_error_in_a_line(server, protocol, body):
    server.replies = [Reply(body=body, headers={"Content-Type": "text/event-stream"})]

    with pytest.raises((LLMInvalidResponseError, LLMTruncatedError), match=r"127\.0\.0\.1") as caught:
        ask(protocol.model(server))
    assert "\n" not in str(caught.value)


BROKEN = [
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
    b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\ndata: {",
]


@ALL
@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_http_is_an_error_in_a_line(server, protocol, broken):
    server.replies = [Reply(broken=broken)]

    with pytest.raises((LLMInvalidResponseError, LLMTruncatedError, LLMUnreachableError)) as caught:
        ask(protocol.model(server))
    assert "\n" not in str(caught.value)


@ALL
def test_an_answer_without_end_is_cut_off(server, protocol, monkeypatch):
    monkeypatch.setattr("docindex_dagster.llm.endpoint._MOST_CHARS", 10_000)
    server.replies = [protocol.reply(*[Delta("word " * 100)] * 100, Usage(1, 1))]

    with pytest.raises(LLMInvalidResponseError, match="answered more than 10,000 characters"):
        ask(protocol.model(server))


# Disconnects.


@ALL
def test_who_leaves_closes_the_request_within_a_second(server, protocol):
    server.replies = [Reply(tuple(protocol.events([Delta("A pump")])), stays=True)]

    async def leave() -> float:
        model = protocol.model(server)
        async with aclosing(model.stream(ASKED, max_tokens=5)) as stream:
            assert await anext(stream) == Delta("A pump")
        left = time.monotonic()
        assert await asyncio.to_thread(server.leaving.wait, 5)
        await model.aclose()
        return left

    left = asyncio.run(leave())
    assert server.left[0] - left < 1


@ALL
@pytest.mark.parametrize("how", ["silence", "in the middle"])
def test_a_reader_that_is_cancelled_closes_it_as_fast(server, protocol, how):
    events = tuple(protocol.events([Delta("A pump")]))
    server.replies = [Reply(delay_s=30) if how == "silence" else Reply(events, stays=True)]

    async def cancel() -> float:
        model = protocol.model(server, timeout_s=60)
        reading = asyncio.create_task(items_of(model, ASKED, (), 5))
        assert await asyncio.to_thread(server.asking.wait, 5)
        await asyncio.sleep(0.2)
        reading.cancel()
        left = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(server.leaving.wait, 5)
        return left

    left = asyncio.run(cancel())
    assert server.left[0] - left < 1


@ALL
def test_a_cancellation_ends_the_wait_for_the_next_attempt(server, protocol):
    server.replies = [Reply(status=429, headers={"Retry-After": "30"})]

    async def cancel() -> float:
        reading = asyncio.create_task(items_of(protocol.model(server, retries=3), ASKED, (), 5))
        assert await asyncio.to_thread(server.asking.wait, 5)
        await asyncio.sleep(0.2)
        reading.cancel()
        cancelled = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return time.monotonic() - cancelled

    assert asyncio.run(cancel()) < 1
    assert len(server.asked) == 1


# Provider details.


def openai_chunks(*deltas: dict[str, Any]) -> Reply:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    ended = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return Reply(tuple(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*chunks, ended]))


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        ([{"function": {"name": "a", "arguments": "{"}}, {"function": {"arguments": "}"}}], [("call_0", "a", "{}")]),
        ([{"index": 0, "id": "x", "function": {"name": "a"}}], [("x", "a", "{}")]),
        (
            [
                {"index": 0, "id": "x", "function": {"name": "a", "arguments": "{}"}},
                {"index": 0, "id": "y", "function": {"name": "b", "arguments": "{}"}},
            ],
            [("x", "a", "{}"), ("y", "b", "{}")],
        ),
        (
            [
                {"index": 0, "id": "x", "function": {"name": "a", "arguments": '{"q"'}},
                {"index": 1, "id": "y", "function": {"name": "b", "arguments": "[1"}},
                {"index": 0, "function": {"arguments": ": 1}"}},
                {"index": 1, "id": "", "function": {"name": "", "arguments": "]"}},
            ],
            [("x", "a", '{"q": 1}'), ("y", "b", "[1]")],
        ),
    ],
    ids=["no index, no id", "no arguments", "every call is the first", "by turns"],
)
def test_servers_that_speak_openais_protocol_number_calls_as_they_like(server, fragments, calls):
    server.replies = [openai_chunks(*({"tool_calls": [fragment]} for fragment in fragments))]

    assert ask(OPENAI.model(server), tools=[SEARCH]) == [*(ToolCall(*call) for call in calls), Usage()]


def test_ids_that_a_server_leaves_out_are_unique_in_the_conversation(server):
    earlier = [
        *ASKED,
        Message("assistant", "", (ToolCall("call_0", "search", "{}"),)),
        Message("tool", "", (), "call_0"),
    ]
    server.replies = [OLLAMA.reply(ToolCall("", "search", "{}"), Usage(1, 1))]
    assert ToolCall("call_1", "search", "{}") in ask(OLLAMA.model(server), earlier, [SEARCH])

    server.replies = [openai_chunks({"tool_calls": [{"function": {"name": "search"}}]})]
    assert ToolCall("call_1", "search", "{}") in ask(OPENAI.model(server), earlier, [SEARCH])


def test_parameters_that_a_model_does_not_take_are_left_out_from_then_on(server):
    def refusal(parameter: str, code: str) -> Reply:
        error = {"message": "no", "param": parameter, "code": code}
        return Reply(status=400, body=json.dumps({"error": error}).encode())

    server.replies = [
        refusal("max_tokens", "unsupported_parameter"),
        refusal("temperature", "unsupported_value"),
        refusal("stream_options", "unsupported_parameter"),
        OPENAI.reply(*HELLO),
    ]

    assert ask(OPENAI.model(server))[0] == Delta("Hello.")
    assert server.asked[0]["stream_options"] == {"include_usage": True}
    assert server.asked[0]["temperature"] == 0
    assert server.asked[-1]["max_completion_tokens"] == 50
    assert not {"max_tokens", "temperature", "stream_options"} & set(server.asked[-1])


def test_a_refusal_in_words_is_an_answer(server):
    server.replies = [openai_chunks({"refusal": "I will not."})]

    assert ask(OPENAI.model(server))[0] == Delta("I will not.")


def test_ollama_is_asked_for_a_window_and_to_drop_nothing(server):
    server.replies = [OLLAMA.reply(*HELLO)]

    model = OLLAMA.model(server, context_tokens=20_000)
    assert model.context_tokens == 20_000
    ask(model)
    ask(OLLAMA.model(server))

    assert [asked["options"]["num_ctx"] for asked in server.asked] == [20_000, 16_384]
    assert (server.asked[0]["truncate"], server.asked[0]["shift"]) == (False, False)


@pytest.mark.parametrize(("counted", "words"), [(1024, 10), (400, 3000)], ids=["it is full", "more was sent"])
def test_a_prompt_of_which_ollama_dropped_a_part_is_reported(server, counted, words):
    server.replies = [OLLAMA.reply(Delta("Well."), Usage(counted, 2))]
    model = OLLAMA.model(server, context_tokens=1024)

    assert ask(model, [Message("user", "word " * words)])[-1] == Usage(counted, 2, is_prompt_cut=True)
    assert ask(OLLAMA.model(server, context_tokens=8192), ASKED)[-1] == Usage(counted, 2)


def test_a_prompt_that_ollama_refuses_since_it_does_not_fit_says_which_setting_helps(server):
    server.replies = [Reply(status=400, body=b'{"error": "the input length exceeds the context length"}')]

    with pytest.raises(LLMError, match=r"does not fit into the 2,048-token window of small-1; see llm\.context_tokens"):
        ask(OLLAMA.model(server, context_tokens=2048, retries=2))
    assert len(server.asked) == 1


def test_a_model_that_ollama_does_not_have_is_named_with_how_to_get_it(server):
    server.replies = [Reply(status=404, body=b'{"error": "model not found"}')]

    with pytest.raises(LLMError, match=r"127\.0\.0\.1 has no model 'small-1': run `ollama pull small-1`"):
        ask(OLLAMA.model(server))


def writer(server: ChatServer, protocol: Protocol, **options: Any) -> LLM:
    return load_llm(
        LLMSettings(provider=protocol.provider, model=MODEL, base_url=server.address + protocol.prefix, **options)
    )


@ALL
def test_who_chats_writes_summaries_too(server, protocol):
    server.replies = [protocol.reply(Delta("It moves "), Delta("water."), Usage(30, 4))]
    llm = writer(server, protocol)

    assert llm.complete("Say what it is.", "A pump.", 50) == Completion("It moves water.", 30, 4)
    assert llm.name == f"{protocol.provider}/small-1"
    if protocol is OLLAMA:
        assert server.asked[0]["options"]["num_ctx"] == 16_384


@ALL
def test_a_summary_that_breaks_off_is_asked_for_again_as_often_as_the_settings_say(server, protocol):
    half = Reply(tuple(protocol.events([Delta("A pump ")])), ends=False)
    server.replies = [half, half, protocol.reply(*ANSWER)]
    assert writer(server, protocol, retries=2).complete("", "A pump.", 50).text == "A pump moves water [1]."

    server.replies = [half]
    with pytest.raises(LLMTruncatedError):
        writer(server, protocol, retries=1).complete("", "A pump.", 50)
    assert len(server.asked) == 3 + 2


@pytest.mark.parametrize(
    ("protocol", "variable"),
    [
        pytest.param(OPENAI, "OPENAI_API_KEY", id="openai"),
        pytest.param(ANTHROPIC, "ANTHROPIC_API_KEY", id="anthropic"),
    ],
)
def test_the_key_of_a_vendor_is_for_the_vendor_alone(server, monkeypatch, protocol, variable):
    server.replies = [protocol.reply(*HELLO)]
    with pytest.raises(LLMKeyError, match=f"set DOCINDEX_LLM__API_KEY or {variable}"):
        ask(chat_model(LLMSettings(provider=protocol.provider, model=MODEL)))

    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    ask(protocol.model(server, api_key=None))
    assert KEY not in str(server.keys)

    monkeypatch.setenv(variable.replace("API_KEY", "BASE_URL"), server.address + protocol.prefix)
    ask(chat_model(LLMSettings(provider=protocol.provider, model=MODEL)))
    assert KEY in server.keys[-1]


@ALL
def test_half_a_character_is_replaced(server, protocol):
    pieces = (piece.replace(b"A pump", rb"A \ud83d pump") for piece in protocol.events([Delta("A pump"), HELLO[1]]))
    server.replies = [Reply(tuple(pieces))]

    assert ask(protocol.model(server)) == [Delta("A \ufffd pump"), HELLO[1]]


@pytest.mark.parametrize("protocol", [pytest.param(OPENAI, id="openai"), pytest.param(ANTHROPIC, id="anthropic")])
def test_what_is_no_stream_of_events_is_no_answer(server, protocol):
    server.replies = [protocol.reply(*HELLO, headers={"Content-Type": "text/plain"})]

    with pytest.raises(LLMInvalidResponseError):
        ask(protocol.model(server))


def test_anthropics_api_is_asked_in_the_version_that_is_read(server):
    server.replies = [ANTHROPIC.reply(*HELLO)]
    ask(ANTHROPIC.model(server))

    assert {name.lower(): value for name, value in server.headers[0].items()}["anthropic-version"] == "2023-06-01"


def test_connections_are_made_once_however_many_threads_prepare_them(server, monkeypatch):
    made = []

    class Slow(httpx2.AsyncClient):
        def __init__(self, **options: Any) -> None:
            time.sleep(0.05)
            made.append(self)
            super().__init__(**options)

    monkeypatch.setattr(httpx2, "AsyncClient", Slow)
    server.replies = [OPENAI.reply(*HELLO)]
    model = OPENAI.model(server)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: prepare(model), range(4)))
    ask(model)

    assert len(made) == 1
