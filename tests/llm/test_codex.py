"""Chats through the Codex program: its arguments, its output, and the cleanup of its processes and files."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from docindex_dagster.core.errors import (
    LLMError,
    LLMFailedError,
    LLMInvalidResponseError,
    LLMKeyError,
    LLMLimitError,
    LLMTimeoutError,
    LLMTruncatedError,
    SettingsError,
)
from docindex_dagster.core.settings import LLMSettings, check_settings
from docindex_dagster.llm.chat import ChatModel, Delta, Item, Message, Tool, Usage
from docindex_dagster.llm.providers import availability, chat_model, load_llm
from tests.llm.codex import DONE, STARTED, VERSION, Codex, install, is_running, message
from tests.llm.server import KEY

ASKED = [Message("system", "Answer from the passages."), Message("user", "What is a “pump”?\n")]


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Codex:
    return install(tmp_path / "bin", monkeypatch)


def model(**options: Any) -> ChatModel:
    return chat_model(LLMSettings(provider="codex", **{"timeout_s": 10, "retries": 3, **options}))


async def items_of(asked: ChatModel, messages: Sequence[Message]) -> list[Item]:
    async with aclosing(asked.stream(messages, max_tokens=50)) as stream:
        return [item async for item in stream]


def ask(asked: ChatModel, messages: Sequence[Message] = ASKED) -> list[Item]:
    return asyncio.run(items_of(asked, messages))


def gone(codex: Codex, within_s: float = 1.0) -> bool:
    """Return whether all its processes exit in time and its folder is removed."""
    until = time.monotonic() + within_s
    while any(is_running(pid) for pid in codex.asked["pids"]) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(is_running(pid) for pid in codex.asked["pids"]) and not Path(codex.asked["folder"]).exists()


def test_its_message_is_one_piece_and_its_usage_comes_after_it(codex):
    codex.play(*STARTED, message("A pump moves water [1]."), DONE)

    assert ask(model()) == [Delta("A pump moves water [1]."), Usage(11, 5)]
    assert gone(codex)


def test_the_prompt_is_on_its_input_and_the_instructions_in_a_file_outside_its_empty_folder(codex):
    codex.play(message("Yes."), DONE)
    ask(model(model="gpt-5"))

    asked = codex.asked
    assert (asked["prompt"], asked["instructions"]) == ("What is a “pump”?\n", "Answer from the passages.")
    assert asked["files"] == []
    assert asked["arguments"][-2:] == ["--model=gpt-5", "-"]
    assert asked["arguments"][asked["arguments"].index("-C") + 1] == asked["folder"]
    assert "pump" not in str(asked["arguments"])


def test_it_may_not_write_run_or_search_and_reads_no_configuration(codex):
    codex.play(message("Yes."), DONE)
    ask(model())

    words = " ".join(codex.asked["arguments"])
    assert words.startswith("exec --json --ephemeral --ignore-user-config --ignore-rules --skip-git-repo-check ")
    assert "--sandbox read-only" in words
    assert "--disable shell_tool --disable multi_agent --disable goals" in words
    assert 'web_search="disabled"' in words
    assert "--model" not in words
    assert "danger" not in words


def test_our_variables_are_not_given_to_it_but_the_key_is(codex, monkeypatch):
    monkeypatch.setenv("DOCINDEX_SERVE__TOKEN", "t0p-s3cr3t")
    codex.play(message("Yes."), DONE)
    ask(model(api_key=SecretStr(KEY)))

    environment = codex.asked["environment"]
    assert environment["CODEX_API_KEY"] == KEY
    assert not [name for name in environment if name.startswith("DOCINDEX_")]
    assert KEY not in str(codex.asked["arguments"])


def test_a_conversation_says_who_spoke(codex):
    codex.play(message("Yes."), DONE)
    ask(model(), [*ASKED, Message("assistant", "A machine [1]."), Message("user", "And a valve?")])

    assert codex.asked["prompt"] == (
        "[user]\nWhat is a “pump”?\n\n\n[assistant]\nA machine [1].\n\n[user]\nAnd a valve?"
    )


def test_a_long_prompt_and_a_long_message_go_through(codex):
    codex.play(message("word " * 100_000), DONE)

    assert ask(model(), [Message("user", "word " * 100_000)])[0] == Delta("word " * 100_000)
    assert len(codex.asked["prompt"]) == 500_000


# Failures.


def failed(why: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": f"{why} {KEY}"}}


@pytest.mark.parametrize(
    ("events", "kind", "why"),
    [
        ([failed("unexpected status 401 Unauthorized: wrong")], LLMKeyError, "run `codex login`"),
        ([failed("exceeded retry limit, last status: 429 Too Many Requests")], LLMLimitError, "rate limit"),
        ([failed("You've hit your usage limit.")], LLMLimitError, "used up"),
        ([failed("stream disconnected")], LLMFailedError, "codex failed"),
        (["nonsense"], LLMInvalidResponseError, "invalid completion from codex"),
        (["[1]"], LLMInvalidResponseError, "invalid completion from codex"),
        ([{"type": "item.completed", "item": 5}], LLMInvalidResponseError, "invalid completion from codex"),
        ([], LLMFailedError, r"no answer \(exit code 1\); expected codex 0\.169 or later"),
        ([message("A pump")], LLMTruncatedError, r"the answer from codex broke off \(exit code 1\)"),
    ],
)
def test_what_it_fails_of_is_an_error_that_does_not_repeat_what_it_says(codex, events, kind, why):
    codex.play(*STARTED if events else (), *events, exit_code=1)

    with pytest.raises(kind, match=why) as caught:
        ask(model())
    assert KEY not in str(caught.value)
    assert not codex.was_asked or gone(codex)


def test_a_wrong_key_is_not_waited_for_while_it_tries_again(codex):
    codex.play({"type": "error", "message": f"Reconnecting... 1/5 (unexpected status 401: {KEY})"}, stays_s=30)
    started = time.monotonic()

    with pytest.raises(LLMKeyError):
        ask(model())
    assert time.monotonic() - started < 5
    assert gone(codex)


@pytest.mark.parametrize(
    "how",
    [
        {"stays_s": 30},
        {"drip_s": 0.05, "lines": [{"type": "error", "message": "Reconnecting... 1/5"}] * 200},
        {"reads": False, "stays_s": 30},
    ],
    ids=["silence", "drip", "does not read"],
)
def test_it_is_killed_with_what_it_started_when_its_time_is_over(codex, how):
    codex.play(*how.pop("lines", STARTED), starts=True, **how)
    started = time.monotonic()

    with pytest.raises(LLMTimeoutError, match=r"codex did not answer within 1 s \(llm\.timeout_s\)"):
        ask(model(timeout_s=1), [Message("user", "word " * 100_000)])
    assert time.monotonic() - started < 4
    assert len(codex.asked["pids"]) == 2
    assert gone(codex)


def test_who_leaves_ends_it_within_a_second(codex):
    codex.play(*STARTED, message("A pump"), stays_s=30, starts=True)

    async def leave() -> None:
        async with aclosing(model().stream(ASKED, max_tokens=5)) as stream:
            assert await anext(stream) == Delta("A pump")
        assert await asyncio.to_thread(gone, codex)

    asyncio.run(leave())


def test_a_cancellation_ends_it_as_fast(codex):
    codex.play(*STARTED, stays_s=30, starts=True)

    async def cancel() -> None:
        reading = asyncio.create_task(items_of(model(), ASKED))
        while not codex.was_asked:  # noqa: ASYNC110 it is another process
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(gone, codex)

    asyncio.run(cancel())


def test_without_the_program_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(LLMError, match="npm install -g @openai/codex"):
        ask(model())
    found = asyncio.run(availability(LLMSettings(provider="codex")))
    assert (found.is_configured, "npm install" in found.problem) == (False, True)


def test_it_takes_no_tools(codex):
    assert not model().has_tools

    async def offer() -> None:
        async for _ in model().stream(ASKED, [Tool("search", "", {})], max_tokens=5):
            pass

    with pytest.raises(LLMError, match="codex does not support tools"):
        asyncio.run(offer())


# Checks and summaries.


@pytest.mark.parametrize("is_logged_in", [True, False])
def test_a_check_tells_the_version_and_the_login(codex, is_logged_in):
    codex.play(is_logged_in=is_logged_in)
    found = asyncio.run(availability(LLMSettings(provider="codex", model="gpt-5")))

    assert (found.version, found.model, found.is_configured) == (VERSION, "gpt-5", True)
    assert (found.is_logged_in, found.is_reachable) == (is_logged_in, None)
    assert ("run `codex login`" in found.problem) is not is_logged_in


def test_whether_a_key_is_accepted_is_not_known_before_a_question(codex):
    found = asyncio.run(availability(LLMSettings(provider="codex", api_key=SecretStr(KEY))))

    assert (found.is_logged_in, found.problem) == (None, "")
    assert KEY not in repr(found)


def test_it_writes_no_summaries(tmp_path):
    with pytest.raises(SettingsError, match=r"summaries: .* starts a process per chunk"):
        check_settings(tmp_path, {"llm": {"provider": "codex"}, "summaries": {"enabled": True}})
    with pytest.raises(LLMError, match="only single questions"):
        load_llm(LLMSettings(provider="codex")).complete("", "", 5)
