"""Tests of the OpenAI-compatible API: responses, failures, and the official client package."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from markdown_it import MarkdownIt
from openai import OpenAI
from openai.types.chat import ChatCompletion
from starlette.testclient import TestClient

from docindex_dagster.answering.conversation import Turn
from docindex_dagster.llm.chat import Delta, Item, Usage
from docindex_dagster.serving.http.completions import ChatQuestion
from docindex_dagster.serving.http.conversations import Conversations
from docindex_dagster.serving.http.openai_form import ChatMessage
from tests.llm.chats import OPENAI, ChatServer, Reply
from tests.serving.http.conftest import ADDRESS, serving
from tests.serving.http.scripted import ANSWER, PUMP, THOUGHT, WORDS, script
from tests.serving.http.server import Server, running
from tests.serving.http.test_asking import FAILURES, look_further
from tests.serving.http.test_process import BEARER, TOKEN, VARIABLE

PATH = "/v1/chat/completions"
QUOTED = 'They say "open the valve first, then prime it with water" [{}]. It is blue [99].'


@pytest.fixture(scope="module")
def process(project: Path) -> Iterator[Server]:
    """Run `docindex serve` as users do, with a token."""
    with running(project, "--no-jobs", environment={VARIABLE: TOKEN}) as server:
        yield server


@pytest.fixture
def package(process: Server, chats: ChatServer) -> Iterator[OpenAI]:
    """Return the official client, configured as its users would."""
    chats.asked.clear()
    script(chats, *WORDS)
    with OpenAI(base_url=f"{process.url}/v1", api_key=TOKEN, max_retries=0) as made:
        yield made


def messages_of(*texts: str) -> list[dict[str, str]]:
    """Return messages that alternate between user and assistant."""
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


def complete(client: TestClient, *texts: str, **body: Any) -> Any:
    return client.post(PATH, json={"model": "docindex", "messages": messages_of(*(texts or (PUMP,))), **body})


def chunks_of(text: str) -> list[Any]:
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    return [json.loads(event) for event in events[:-1]]


# Responses


def test_a_whole_answer_has_openais_form_and_nothing_else(client):
    answer = complete(client, temperature=0.1, top_p=1, n=1, tools=[], user="me", max_tokens=5).json()

    assert answer["id"].startswith("chatcmpl-")
    assert answer == {
        "id": answer["id"],
        "object": "chat.completion",
        "created": answer["created"],
        "model": "docindex",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": ANSWER,
                    "refusal": None,
                    "annotations": answer["choices"][0]["message"]["annotations"],
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720},
    }
    ChatCompletion.model_validate(answer, strict=True)


def test_a_stream_has_the_words_then_the_citations_then_the_end(client):
    answer = complete(client, stream=True)
    chunks = chunks_of(answer.text)

    assert answer.headers["Content-Type"].startswith("text/event-stream")
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [delta["content"] for delta in deltas[1:3]] == [ANSWER[:30], ANSWER[30:]]
    assert list(deltas[3]) == ["annotations"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 4 + ["stop"]
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        (chunks[0]["id"], "chat.completion.chunk", "docindex")
    }
    assert not any("usage" in chunk for chunk in chunks)


def test_usage_is_in_the_last_chunk_of_who_asks_for_it(client):
    chunks = chunks_of(complete(client, stream=True, stream_options={"include_usage": True}).text)
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 720)


def test_what_is_cited_has_an_address_and_what_is_missing_has_none(client):
    message = complete(client).json()["choices"][0]["message"]

    (annotation,) = message["annotations"]
    cited = annotation["url_citation"]
    assert annotation["type"] == "url_citation"
    assert message["content"][cited["start_index"] : cited["end_index"]] == "[1]"
    path, _, lines = cited["title"].partition(" ")[0].rpartition(":")
    assert cited["title"].endswith("(supported)") or cited["title"].endswith("(doubtful)")
    first, last = lines.split("-")
    assert cited["url"].startswith(f"{ADDRESS}/file/")
    assert f"/{path}?from={first}" in cited["url"]
    assert last in cited["url"]
    assert client.get(cited["url"]).status_code == 200


def test_addresses_are_those_by_which_the_client_calls_the_server(client):
    headers = {"Host": "localhost:8090", "X-Forwarded-Proto": "https"}
    body = {"model": "docindex", "messages": messages_of(PUMP)}
    (annotation,) = client.post(PATH, json=body, headers=headers).json()["choices"][0]["message"]["annotations"]
    assert annotation["url_citation"]["url"].startswith("https://localhost:8090/file/")


def test_an_answer_that_reaches_its_limit_ends_by_length(client, chats):
    script(chats, Delta("Open"), Usage(is_answer_cut=True))
    assert complete(client).json()["choices"][0]["finish_reason"] == "length"
    assert chunks_of(complete(client, stream=True).text)[-1]["choices"][0]["finish_reason"] == "length"


def test_content_may_be_parts_of_text(client, chats):
    content = [{"type": "text", "text": "How is a pump"}, {"type": "text", "text": "started?"}]
    assert client.post(PATH, json={"model": "docindex", "messages": [{"role": "user", "content": content}]}).is_success
    assert "How is a pump\nstarted?" in chats.asked[0]["messages"][-1]["content"]


def test_the_clients_system_messages_and_tools_go_nowhere(client, chats):
    messages = [{"role": "system", "content": "Speak like a pirate."}, *messages_of(PUMP)]
    tool = {"type": "function", "function": {"name": "rm", "parameters": {}}}
    assert client.post(PATH, json={"model": "docindex", "messages": messages, "tools": [tool]}).is_success
    assert "pirate" not in json.dumps(chats.asked)
    assert '"rm"' not in json.dumps(chats.asked)


@pytest.mark.parametrize("stream", [False, True])
def test_pictures_and_links_to_other_hosts_are_text(client, chats, stream):
    pieces = [
        "Open ![x](https:",
        "//evil.test/?q=secret) <img src='https://evil.test'>",
        " [the valve](https://evil.test) [1].",
    ]
    script(chats, *map(Delta, pieces), Usage())
    answer = complete(client, stream=stream)
    if stream:
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks_of(answer.text)]
        content = "".join(delta.get("content", "") for delta in deltas)
        (annotation,) = [one for delta in deltas for one in delta.get("annotations", ())]
    else:
        message = answer.json()["choices"][0]["message"]
        content, (annotation,) = message["content"], message["annotations"]

    tokens = MarkdownIt("commonmark").parse(content)
    assert not {"image", "link_open", "html_inline", "html_block"} & {one.type for one in tokens[1].children or ()}
    assert "the valve" in content
    cited = annotation["url_citation"]
    assert content[cited["start_index"] : cited["end_index"]] == "[1]"
    again = complete(client, PUMP, content, "And how is it stopped?").json()["choices"][0]["message"]
    assert again["annotations"]
    assert chats.asked[-1]["messages"][2]["content"] == "".join(pieces)  # the server found the conversation


def test_without_a_model_the_best_passages_are_the_answer(api):
    message = complete(api).json()["choices"][0]["message"]
    assert message["content"].startswith("No language model is configured")
    assert message["annotations"]


def test_it_offers_two_models(api):
    listed = api.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["docindex", "docindex-agent"]
    assert api.get("/v1/models/docindex").json() == listed["data"][0]


# Earlier turns


def test_a_conversation_is_found_by_its_turns_and_its_numbers_go_on(client, chats):
    first = complete(client).json()["choices"][0]["message"]
    script(chats, Delta("See [1]."), Usage())
    second = complete(client, PUMP, ANSWER, "And how is it stopped?").json()["choices"][0]["message"]

    assert (
        second["annotations"][0]["url_citation"]["url"].partition("?")[0]
        == (first["annotations"][0]["url_citation"]["url"].partition("?")[0])
    )
    assert [message["content"] for message in chats.asked[-1]["messages"][1:3]] == [PUMP, ANSWER]


def test_turns_of_which_nothing_is_known_are_numbered_on_from_what_they_cite(client, chats):
    script(chats, Delta("See [1], [42] and [43]."), Usage())
    earlier = "It is the valve [7], and [42]; not `x[500]`."
    message = complete(client, "What is it?", earlier, PUMP).json()["choices"][0]["message"]

    cited = [message["content"][one["url_citation"]["start_index"] :][:4] for one in message["annotations"]]
    assert cited == ["[43]"]  # 1 and 42 referred to passages that no longer exist


def test_of_turns_the_longest_beginning_is_known():
    known = Conversations()
    messages = messages_of("1?", "1", "2?", "2", "3?", "3 [70]", "4?")
    asked = ChatQuestion.of([ChatMessage.model_validate(message) for message in messages])
    begun = ChatQuestion("1?", ()).conversation(known).answered("1?", "1", ())
    known.put(ChatQuestion("1?", ()).name("1"), begun)
    known.put(ChatQuestion("2?", (Turn("1?", "1"),)).name("2"), begun.answered("2?", "kept", ()))

    found = asked.conversation(known)

    assert [turn.answer for turn in found.turns] == ["1", "kept", "3 [70]"]
    assert found.passages.last == 70


def test_names_of_conversations_are_none_that_a_client_may_ask_for(client):
    complete(client)
    name = ChatQuestion(PUMP, ()).name(ANSWER)
    asked = client.post("/api/v1/ask", json={"question": PUMP, "conversation": name})
    assert asked.status_code == 422


def test_what_an_agent_writes_before_a_step_stays_in_a_paragraph_of_its_own(client, chats):
    look_further(chats)
    whole = complete(client, model="docindex-agent").json()["choices"][0]["message"]
    look_further(chats)
    chunks = chunks_of(complete(client, model="docindex-agent", stream=True).text)

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert whole["content"] == f"{THOUGHT}\n\n{ANSWER}"
    assert "".join(delta.get("content", "") for delta in deltas) == whole["content"]
    (cited,) = [annotation["url_citation"] for annotation in whole["annotations"]]
    assert whole["content"].index("[1]", len(THOUGHT)) == cited["start_index"]
    assert whole["content"][cited["start_index"] : cited["end_index"]] == "[1]"
    assert deltas[-2]["annotations"] == whole["annotations"]


# Failures


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", None),
        ({"messages": []}, 400, "invalid_request", "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "query", None),
        ({"messages": messages_of("one", "two")}, 400, "query", None),
        ({"messages": [{"role": "system", "content": "be good"}]}, 400, "query", None),
        ({"messages": [{"role": "user", "content": "x" * 20_001}]}, 400, "query", None),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "invalid_request", None),
        ({"stream": "perhaps"}, 400, "invalid_request", "stream"),
    ],
)
def test_what_cannot_be_asked_is_an_error_in_openais_form(client, chats, body, status, code, param):  # noqa: PLR0917
    answer = complete(client, **body)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/json"
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert error["message"]
    assert param in {None, error["param"]}
    assert chats.asked == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "status", "problem", "after"), FAILURES.values(), ids=FAILURES)
def test_a_model_that_fails_before_a_word_is_an_error_with_a_status(  # noqa: PLR0917 each is a parameter
    client, chats, reply, status, problem, after, stream
):
    chats.replies = [reply]
    answer = complete(client, stream=stream)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == problem.replace("-", "_")
    assert ("Retry-After" in answer.headers) == (after is not None)
    assert chats.keys[-1] not in answer.text


def test_one_that_breaks_off_is_an_error_behind_what_came(client, chats):
    script(chats, Delta("Open the valve [1]"), ends=False)
    whole = complete(client)
    events = complete(client, stream=True).text.strip().split("\n\n")
    assert (whole.status_code, whole.json()["error"]["type"]) == (502, "server_error")
    assert "Open the valve [1]" in events[1]
    assert json.loads(events[-1].removeprefix("data: ")) == whole.json()


@pytest.mark.parametrize(
    ("request_of", "status", "code"),
    [
        ({"url": "/v1/models", "headers": {"Host": "evil.test"}}, 421, "host"),
        ({"url": "/v1/nothing", "headers": BEARER}, 404, "not_found"),
        ({"url": "/v1/models"}, 401, "invalid_api_key"),
        ({"url": PATH, "headers": BEARER}, 405, "method"),
        ({"method": "POST", "url": PATH, "headers": {"Origin": "https://evil.test", **BEARER}}, 403, "forbidden"),
        ({"method": "POST", "url": PATH, "headers": BEARER, "content": b"x" * (2 << 20)}, 413, "too_large"),
        ({"method": "POST", "url": PATH, "headers": BEARER, "content": b"{"}, 400, "invalid_request"),
    ],
)
def test_whoever_refuses_does_so_in_openais_form(project, request_of, status, code):
    with serving(project, token=TOKEN) as client:
        answer = client.request(**{"method": "GET", **request_of})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert client.get("/api/v1/search", headers=BEARER).json()["type"] == "/problems/invalid-request"
        assert client.head("/v1/models").status_code == 401


# The official client package against `docindex serve`


def test_the_package_streams_words_citations_and_usage(package):
    chunks = list(
        package.chat.completions.create(
            model="docindex",
            messages=[{"role": "user", "content": PUMP}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    text = "".join(delta.content or "" for delta in deltas)
    (annotation,) = [one for delta in deltas for one in (delta.model_extra or {}).get("annotations", [])]
    assert text == ANSWER
    cited = annotation["url_citation"]
    assert text[cited["start_index"] : cited["end_index"]] == "[1]"
    assert cited["url"].startswith(str(package.base_url).removesuffix("v1/") + "file/")
    assert chunks[-1].usage.total_tokens == 720


def test_the_package_reads_a_whole_answer(package):
    answer = package.chat.completions.create(model="docindex-agent", messages=[{"role": "user", "content": PUMP}])
    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].message.annotations[0].url_citation.title
    assert answer.usage.prompt_tokens == 700
    assert [model.id for model in package.models.list()] == ["docindex", "docindex-agent"]


def test_the_packages_errors_are_those_that_its_users_know(package, chats):
    def fails(kind: type[openai.APIStatusError], **how: Any) -> Any:
        body: Any = {"model": "docindex", "messages": messages_of(PUMP), **how}
        with pytest.raises(kind) as caught:
            package.chat.completions.create(**body)
        return caught.value

    assert fails(openai.NotFoundError, model="gpt-9").code == "model_not_found"
    assert fails(openai.BadRequestError, messages=[]).param == "messages"
    chats.replies = [Reply(status=429, headers={"Retry-After": "1800"})]
    assert fails(openai.RateLimitError, stream=True).response.headers["Retry-After"] == "1800"
    chats.replies = [Reply(status=401)]
    assert fails(openai.InternalServerError).status_code == 502
    package.api_key = "wrong"
    assert fails(openai.AuthenticationError).code == "invalid_api_key"


def test_the_package_learns_of_a_stream_that_breaks_off(package, chats):
    script(chats, Delta("Open the valve"), ends=False)
    chunks = iter(package.chat.completions.create(model="docindex", messages=messages_of(PUMP), stream=True))
    words = [next(chunks).choices[0].delta.content for _ in range(2)]
    with pytest.raises(openai.APIError, match="broke off"):
        list(chunks)
    assert words == ["", "Open the valve"]


def test_who_closes_the_packages_stream_closes_the_one_of_the_model(package, chats):
    events: list[Item] = [Delta("Open ")]
    chats.replies = [Reply(tuple(OPENAI.events(events)), stays=True)]
    chats.leaving.clear()
    with package.chat.completions.create(model="docindex", messages=messages_of(PUMP), stream=True) as stream:
        assert next(chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content) == "Open "
        assert not chats.leaving.is_set()
    assert chats.leaving.wait(1)
