"""The example of a chat model in docs/how-to/write-a-plug-in.md, and packages that fail to answer."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from docindex_dagster.core.errors import LLMError, LLMTimeoutError, LLMTruncatedError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import ChatModel, Delta, Item, Message, Usage
from docindex_dagster.llm.providers import availability, chat_model, load_llm
from tests import offering

ASKED = [Message("system", "Answer."), Message("user", "What is a pump?")]
HEADING = "A language model that answers questions"


def items_of(model: ChatModel) -> list[Item]:
    async def read() -> list[Item]:
        async with aclosing(model.stream(ASKED, max_tokens=50)) as stream:
            return [item async for item in stream]

    return asyncio.run(read())


@pytest.fixture(autouse=True)
def not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unload the package of the same name from another test."""
    monkeypatch.delitem(sys.modules, "docindex_lines", raising=False)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ChatModel]:
    site = tmp_path / "site"
    site.mkdir()
    offering.install(site, HEADING, monkeypatch)

    def model(script: str) -> ChatModel:
        program = tmp_path / "model"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return chat_model(LLMSettings(provider="lines", model=str(program), timeout_s=1))

    return model


def test_the_example_answers(lines):
    model = lines("cat; echo; echo in $1 tokens")

    assert items_of(model) == [
        *(Delta("Answer.\n"), Delta("\n"), Delta("What is a pump?\n"), Delta("in 50 tokens\n")),
        Usage(),
    ]
    assert not model.has_tools


@pytest.mark.parametrize(
    ("script", "kind"), [("echo A; exit 3", LLMTruncatedError), ("exec sleep 30", LLMTimeoutError)]
)
def test_it_fails_as_ours_do(lines, script, kind):
    with pytest.raises(kind):
        items_of(lines(script))


def test_it_writes_summaries_too(lines):
    model = lines("cat; echo; echo in $1 tokens")
    llm = load_llm(LLMSettings(provider="lines", model=model.program))

    assert llm.complete("Say what it is.", "A pump.", 50).text == "Say what it is.\n\nA pump.\nin 50 tokens\n"
    assert llm.name == model.name


def test_it_is_checked_as_ours_are(lines):
    lines("true")

    assert asyncio.run(availability(LLMSettings(provider="lines"))).is_configured


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (("async def stream", "async def say"), "only writes summaries and cannot chat"),
        (("    return Lines(", "    raise KeyError("), "cannot use the LLM provider 'lines': KeyError"),
        (("import asyncio\n", "import asyncio\nimport not_there\n"), "No module named 'not_there'"),
    ],
    ids=["no chat", "fails", "no package"],
)
def test_one_that_cannot_be_used_says_why(tmp_path, monkeypatch, edit, problem):
    offering.install(tmp_path, HEADING, monkeypatch, edit=edit)
    settings = LLMSettings(provider="lines")

    with pytest.raises(LLMError, match=problem):
        chat_model(settings)
    found = asyncio.run(availability(settings))
    assert (found.is_configured, problem in found.problem) == (False, True)
    with pytest.raises(LLMError, match="returned neither an LLM nor a ChatModel|" + problem):
        load_llm(settings).complete("Say what it is.", "A pump.", 50)


def test_a_check_that_fails_is_reported_without_what_it_says(tmp_path, monkeypatch):
    offering.install(tmp_path, HEADING, monkeypatch, edit=("return Availability(", 'raise OSError("key K3Y")  # '))

    found = asyncio.run(availability(LLMSettings(provider="lines")))
    assert found.problem == "the LLM provider 'lines' failed (OSError)"
