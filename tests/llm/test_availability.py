"""Availability checks, which send no prompt to the model."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from docindex_dagster.core.errors import LLMError, SettingsError
from docindex_dagster.core.settings import LLMSettings, check_settings
from docindex_dagster.llm import endpoint
from docindex_dagster.llm.chat import Availability
from docindex_dagster.llm.providers import availability, chat_model
from tests import loopback
from tests.llm.chats import ALL, ANTHROPIC, MODEL, OLLAMA, OPENAI, ChatServer, Protocol, Reply, serving
from tests.llm.server import KEY


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving() as started:
        yield started


def check(protocol: Protocol, address: str, **options: Any) -> Availability:
    own = {"provider": protocol.provider, "model": MODEL, "api_key": SecretStr(KEY), **options}
    return asyncio.run(availability(LLMSettings(base_url=address + protocol.prefix, **own)))


@ALL
def test_a_model_that_is_there_can_be_asked(server, protocol):
    found = check(protocol, server.address)

    assert (found.is_configured, found.is_reachable, found.is_logged_in, found.problem) == (True, True, True, "")
    assert found.model == MODEL
    versions = {"openai": "BaseHTTP/", "ollama": "0.20.1", "anthropic": "2023-06-01"}
    assert found.version.startswith(versions[protocol.provider])
    assert not [path for path in server.paths if path == protocol.path]


@ALL
def test_one_that_is_not_there_is_named(server, protocol):
    found = check(protocol, server.address, model="large-9")

    assert found.is_reachable
    assert "see llm." in found.problem


@ALL
def test_nobody_listens(protocol):
    found = check(protocol, loopback.unused_address())

    assert (found.is_configured, found.is_reachable, found.is_logged_in) == (True, False, None)
    assert found.problem == "127.0.0.1 cannot be reached; see llm.base_url"


@ALL
def test_a_key_that_is_not_accepted_is_no_login(server, protocol):
    server.replies = [Reply(status=401)]
    found = check(protocol, server.address)

    assert (found.is_configured, found.is_reachable, found.is_logged_in) == (True, True, False)
    assert "rejected the key in DOCINDEX_LLM__API_KEY" in found.problem
    assert KEY not in repr(found)


@ALL
@pytest.mark.parametrize("reply", [Reply(status=500), Reply(body=b"<html>"), Reply(body=b"[5]")])
def test_what_else_is_wrong_is_reported(server, protocol, reply):
    server.replies = [reply]
    found = check(protocol, server.address)

    assert found.is_reachable
    assert "127.0.0.1" in found.problem
    assert "\n" not in found.problem


@ALL
def test_a_check_takes_seconds_whatever_an_answer_may_take(server, protocol, monkeypatch):
    monkeypatch.setattr(endpoint, "LONGEST_S", 0.3)
    server.replies = [Reply(delay_s=30)]
    started = time.monotonic()

    found = check(protocol, server.address, timeout_s=600)
    assert time.monotonic() - started < 5
    assert (found.is_reachable, "no answer within 0.3 s" in found.problem) == (False, True)


@pytest.mark.parametrize(
    ("protocol", "variable"),
    [
        pytest.param(OPENAI, "OPENAI_API_KEY", id="openai"),
        pytest.param(ANTHROPIC, "ANTHROPIC_API_KEY", id="anthropic"),
    ],
)
def test_a_vendor_without_a_key_is_not_configured(protocol, variable):
    found = asyncio.run(availability(LLMSettings(provider=protocol.provider, model=MODEL)))

    assert (found.is_configured, found.is_reachable) == (False, None)
    assert f"set DOCINDEX_LLM__API_KEY or {variable}" in found.problem


def test_ollamas_models_go_by_their_tags(server):
    assert check(OLLAMA, server.address, model="small-1:latest").problem == ""
    assert "run `ollama pull small-1:7b`" in check(OLLAMA, server.address, model="small-1:7b").problem


# Model names.


def test_without_a_provider_there_is_none_to_ask():
    with pytest.raises(LLMError, match=r"set llm\.provider and llm\.model"):
        chat_model(LLMSettings())
    found = asyncio.run(availability(LLMSettings()))
    assert (found.is_configured, "llm.provider" in found.problem) == (False, True)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"provider": "ollama"}, r"llm\.model is required for provider = 'ollama'"),
        ({"provider": "codex", "question_dollars": 0.1}, r"requires llm\.price_in and llm\.price_out"),
        ({"context_tokens": 5}, r"llm\.context_tokens"),
        ({"max_answer_tokens": 0}, r"llm\.max_answer_tokens"),
    ],
)
def test_a_mistake_in_the_settings_is_reported_before_anything_is_asked(tmp_path, values, problem):
    with pytest.raises(SettingsError, match=problem):
        check_settings(tmp_path, {"llm": values})


def test_codex_needs_no_model(tmp_path):
    assert check_settings(tmp_path, {"llm": {"provider": "codex"}}).llm.model is None


@ALL
def test_an_answer_of_any_length_is_read_up_to_a_bound(server, protocol):
    body = json.dumps({"id": MODEL, "data": [], "models": [], "version": "1", "rest": "x" * (5 << 20)}).encode()
    server.replies = [Reply(body=body)]

    assert "invalid completion" in check(protocol, server.address).problem
