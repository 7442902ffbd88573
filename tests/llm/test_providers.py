"""LLM requests over HTTP: their content, and the mapping of any response to an answer or a one-line error."""

import gc
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import SecretStr

from docindex_dagster.core.errors import LLMError, SettingsError
from docindex_dagster.core.settings import LLMSettings, check_settings
from docindex_dagster.llm.protocol import LLM, Completion
from docindex_dagster.llm.providers import load_llm
from tests.llm.server import KEY, LlmServer, unused_url

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def of(llm: LlmServer, provider: str = "openai", **options: Any) -> LLM:
    base_url = llm.url if provider == "openai" else llm.url.removesuffix("/v1")
    own = {"timeout_s": 2, "retries": 0, "api_key": SecretStr(KEY), **options}
    return load_llm(LLMSettings(provider=provider, model="small-1", base_url=base_url, **own))


def ask(llm: LLM) -> Completion:
    return llm.complete("Say what it is.", "A pump.", 50)


@BOTH
def test_it_is_asked_with_the_prompt_the_text_the_limit_and_the_key(llm, provider):
    assert ask(of(llm, provider)) == Completion("It is about A pump..", 100, 20)

    (asked,) = llm.asked
    assert (asked["model"], asked["max_tokens"]) == ("small-1", 50)
    assert asked["messages"][-1] == {"role": "user", "content": "A pump."}
    assert "Say what it is." in json.dumps(asked)
    assert [str(key).removeprefix("Bearer ") for key in llm.keys] == [KEY]
    assert llm.paths == ["/v1/chat/completions" if provider == "openai" else "/v1/messages"]


def test_an_answer_is_to_be_the_same_each_time(llm):
    ask(of(llm))

    assert llm.asked[0]["temperature"] == 0


def test_a_model_that_takes_other_parameters_is_asked_with_these_from_then_on(llm):
    llm.refuses = {"max_tokens": "unsupported_parameter", "temperature": "unsupported_value"}
    model = of(llm)

    assert ask(model).text
    ask(model)

    assert llm.asked[-1]["max_completion_tokens"] == 50
    assert len(llm.asked) == 4  # two of them were rejected


def test_a_refusal_for_another_reason_is_no_invitation_to_try_again(llm):
    llm.refuses = {"max_tokens": "invalid_value"}

    with pytest.raises(LLMError, match="answered 400"):
        ask(of(llm))
    assert len(llm.asked) == 1


def test_who_serves_the_model_plays_no_part_in_its_name(llm):
    assert of(llm).name == load_llm(LLMSettings(provider="openai", model="small-1")).name == "openai/small-1"


def test_a_model_that_may_not_be_streamed_is_asked_for_all_at_once_from_then_on(llm):
    llm.refuses = {"stream": "unsupported_value"}
    model = of(llm)

    assert [ask(model).text, ask(model).text] == ["It is about A pump.."] * 2
    assert len(llm.asked) == 3
    assert not {"stream", "stream_options"} & set(llm.asked[-1])


def test_several_that_are_refused_together_are_all_asked_again(llm):
    llm.refuses, llm.delay_s = {"max_tokens": "unsupported_parameter"}, 0.2
    model = of(llm)

    with ThreadPoolExecutor(4) as pool:
        assert len([answer.text for answer in pool.map(lambda _: ask(model), range(4))]) == 4
    assert llm.concurrency == 4


def test_a_parameter_that_goes_by_no_name_is_not_asked_for_again(llm):
    llm.refuses = dict.fromkeys(["max_tokens", "max_completion_tokens"], "unsupported_parameter")

    with pytest.raises(LLMError, match="answered 400"):
        ask(of(llm))
    assert len(llm.asked) == 2


@BOTH
def test_questions_share_their_connections(llm, provider):
    model = of(llm, provider)
    for _ in range(3):
        ask(model)

    assert len(llm.clients) == 1


@BOTH
def test_connections_are_closed_with_their_model(llm, provider):
    model = of(llm, provider)
    ask(model)
    assert not llm.left.is_set()

    del model
    gc.collect()
    assert llm.left.wait(5)


@BOTH
def test_what_passes_is_asked_again(llm, provider):
    llm.fails = 2

    assert ask(of(llm, provider, retries=2)).text
    assert len(llm.asked) == 3


@BOTH
def test_what_stays_is_reported(llm, provider):
    llm.fails = 3

    with pytest.raises(LLMError, match=r"127\.0\.0\.1 answered 503: the server failed"):
        ask(of(llm, provider, retries=1))
    assert len(llm.asked) == 2


def test_a_server_that_asks_for_patience_gets_it(llm):
    llm.status, llm.headers = 429, {"Retry-After": "1"}
    started = time.monotonic()

    with pytest.raises(LLMError, match="rate limit reached"):
        ask(of(llm, retries=1))
    assert time.monotonic() - started >= 1
    assert len(llm.asked) == 2


@pytest.mark.parametrize("patience", ["86400", "1e300"])
def test_but_not_for_as_long_as_it_likes(llm, patience):
    llm.status, llm.headers = 429, {"Retry-After": patience}

    with pytest.raises(LLMError):
        ask(of(llm, retries=5))
    assert len(llm.asked) == 1


@pytest.mark.parametrize("value", ["nan", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "soon"])
def test_a_time_that_is_none_is_not_waited_for(llm, value):
    llm.fails, llm.headers = 1, {"Retry-After": value}

    assert ask(of(llm, retries=1)).text


@BOTH
@pytest.mark.parametrize(
    ("status", "why"),
    [
        (400, "see llm.model"),
        (401, "rejected the key in DOCINDEX_LLM__API_KEY"),
        (404, "see llm.base_url and llm.model"),
        (302, "answered 302"),
        (418, "answered 418"),
    ],
)
def test_a_refusal_is_reported_at_once_with_what_to_do_and_without_what_the_server_says(llm, provider, status, why):
    llm.status = status

    with pytest.raises(LLMError, match=why) as caught:
        ask(of(llm, provider, retries=5))

    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(llm.asked) == 1


NONSENSE = [
    b"",
    b"not json",
    b"[]",
    b'{"choices": []}',
    b'{"choices": [{"message": {"content": 5}}], "content": 5}',
    b'{"choices": [{"message": {}}], "usage": {"prompt_tokens": -1}, "content": [{"text": "no type"}]}',
    b'{"choices": {"a": 1}, "content": null}',
    b"\xff\xfe" * 50,
    b"[" * 100_000,
    b" " * (5 << 20),
]


@BOTH
@pytest.mark.parametrize("reply", NONSENSE)
def test_nonsense_is_an_error_in_a_line(llm, provider, reply):
    llm.reply = reply

    with pytest.raises(LLMError, match="invalid completion") as caught:
        ask(of(llm, provider))
    assert "\n" not in str(caught.value)


HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [{"index"'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip"


@BOTH
@pytest.mark.parametrize("broken", [b"", b"nonsense\r\n\r\n", HALF, CHUNKED, GZIP])
def test_an_answer_that_breaks_off_is_an_error_in_a_line(llm, provider, broken):
    llm.broken = broken

    with pytest.raises(LLMError, match=r"127\.0\.0\.1") as caught:
        ask(of(llm, provider))
    assert "\n" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("slow", [{"delay_s": 30.0}, {"drip_s": 0.2}])
def test_an_answer_that_takes_too_long_is_not_waited_for_and_not_asked_for_again(llm, provider, slow):
    for name, value in slow.items():
        setattr(llm, name, value)
    started = time.monotonic()

    with pytest.raises(LLMError, match=r"did not answer within 0\.5 s"):
        ask(of(llm, provider, timeout_s=0.5, retries=5))
    assert time.monotonic() - started < 5
    assert len(llm.asked) == 1


@BOTH
def test_an_unreachable_server_is_reported(provider):
    unreachable = LLMSettings(provider=provider, model="small-1", base_url=unused_url(), retries=1)

    with pytest.raises(LLMError, match=r"127\.0\.0\.1 cannot be reached"):
        ask(load_llm(unreachable))


# Keys.


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")],
)
def test_the_key_of_a_vendor_is_for_the_vendor_alone(llm, monkeypatch, provider, variable):
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)

    ask(of(llm, provider, api_key=None))

    assert KEY not in str(llm.keys)


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")],
)
def test_the_vendor_wants_a_key_and_its_own_variable_will_do(llm, monkeypatch, provider, variable):
    model = load_llm(LLMSettings(provider=provider, model="small-1"))
    with pytest.raises(LLMError, match=f"set DOCINDEX_LLM__API_KEY or {variable}"):
        ask(model)

    monkeypatch.setenv(variable, KEY)
    base_url = llm.url if provider == "openai" else llm.url.removesuffix("/v1")
    monkeypatch.setenv(variable.replace("API_KEY", "BASE_URL"), base_url)

    assert ask(model).text
    assert KEY in str(llm.keys)


@BOTH
def test_the_key_is_shown_nowhere(llm, caplog, provider):
    caplog.set_level(logging.DEBUG)
    model = of(llm, provider)
    ask(model)
    llm.status = 401

    with pytest.raises(LLMError) as caught:
        ask(model)

    assert KEY not in f"{caplog.text} {model!r} {caught.value!r}"


def test_a_key_in_the_file_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="set DOCINDEX_LLM__API_KEY instead") as caught:
        check_settings(tmp_path, {"llm": {"api_key": KEY}})
    assert KEY not in str(caught.value)


# Settings.


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"llm": {"provider": "oracle"}}, "'oracle' not found; must be one of 'none', 'openai', 'anthropic'"),
        ({"llm": {"provider": "openai"}}, "llm.model is required"),
        ({"llm": {"provider": "openai", "model": ""}}, "llm.model"),
        ({"llm": {"provider": "openai", "model": "m", "base_url": "localhost:11434"}}, "must be an HTTP or HTTPS URL"),
        ({"summaries": {"enabled": True}}, "summaries: enabled = true requires llm.provider"),
        ({"summaries": {"source_types": ["commit"]}}, "'doc', 'code', 'test' or 'config'"),
    ],
)
def test_a_mistake_in_the_settings_is_reported_before_anything_runs(tmp_path, values, problem):
    with pytest.raises(SettingsError, match=problem):
        check_settings(tmp_path, values)


def test_a_model_whose_package_is_not_there_fails_when_it_is_asked():
    model = load_llm(LLMSettings.model_construct(provider="oracle", model="m"))

    assert model.name == "oracle/m"
    with pytest.raises(LLMError, match=r"no installed package provides it in docindex\.llms"):
        ask(model)
