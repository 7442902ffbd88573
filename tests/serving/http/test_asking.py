"""Tests of questions over HTTP: JSON and event streams, every event, and every model failure as API clients see it."""

import dataclasses
import json
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from docindex_dagster.answering.events import Spent
from docindex_dagster.answering.passages import Passage
from docindex_dagster.llm.chat import Delta, ToolCall, Usage
from docindex_dagster.serving.http import client_disconnect, conversations
from tests import loopback, offering
from tests.llm.chats import MODEL, OPENAI, ChatServer, Reply
from tests.serving.http.conftest import serving
from tests.serving.http.scripted import ANSWER, PUMP, THOUGHT, WORDS, script, use_model, write_settings
from tests.serving.http.server import Server, running
from tests.serving.http.test_leaving import until

ASK = "/api/v1/ask"
BODY = {"question": PUMP, "path": "pumps.md"}
STREAM = {"Accept": "text/event-stream"}
CITATION = "number start end claim state source path start_line end_line is_moved support better stale chunk_ids"


def ask(client: TestClient, **body: Any) -> Any:
    """Return the JSON answer to a question, restricted to one small file unless the body says otherwise."""
    return client.post(ASK, json={"question": PUMP, "path": "pumps.md", **body})


def parsed(text: str) -> list[tuple[str, Any]]:
    """Return the events, each with its name."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [(event["event"], json.loads(event["data"])) for event in fields]


def events_of(client: TestClient, **body: Any) -> list[tuple[str, Any]]:
    answer = client.post(ASK, json={"question": PUMP, "path": "pumps.md", **body}, headers=STREAM)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    return parsed(answer.text)


# Responses


def test_the_events_come_in_their_order_and_have_these_fields(client):
    events = events_of(client)

    assert [name for name, _ in events] == ["sources", "delta", "delta", "answer", "usage"]
    sources, *deltas, answer, usage = [data for _, data in events]
    assert list(sources) == ["query", "passages", "commits", "generation", "warnings"]
    assert list(sources["passages"][0]) == [field.name for field in dataclasses.fields(Passage)]
    assert (sources["passages"][0]["path"], sources["passages"][0]["number"]) == ("pumps.md", 1)
    assert "".join(delta["text"] for delta in deltas) == answer["text"] == ANSWER
    assert {**answer, "citations": [], "conversation": ""} == {
        "text": ANSWER,
        "html": None,
        "citations": [],
        "conversation": "",
        "model": f"openai/{MODEL}",
        "is_broken": False,
        "is_cut": False,
        "is_prompt_cut": False,
    }
    assert list(usage) == [field.name for field in dataclasses.fields(Spent)]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (700, 20)


def test_each_citation_is_checked_and_stands_where_it_says(client):
    answer = dict(events_of(client))["answer"]

    right, wrong = answer["citations"]
    assert list(right) == list(wrong) == CITATION.split()
    assert (right["state"], right["source"], right["path"]) == ("supported", "library/manual", "pumps.md")
    assert (right["start_line"], right["stale"], right["better"]) == (5, False, None)
    assert right["chunk_ids"]
    assert answer["text"][right["start"] : right["end"]] == "[1]"
    assert (wrong["state"], wrong["number"]) == ("missing", 99)
    assert [wrong[name] for name in ("source", "path", "start_line", "end_line", "support", "stale")] == [None] * 6
    assert wrong["chunk_ids"] == []


def test_offsets_count_characters_whatever_they_take_in_bytes_or_in_javascript(client, chats):
    script(chats, Delta("Wasser → häufig 🚰: the valve first [1]."), Usage())

    answer = ask(client).json()

    (citation,) = answer["citations"]
    assert answer["answer"][citation["start"] : citation["end"]] == "[1]"


def test_html_links_what_is_there_to_its_lines_and_nothing_else(client, chats):
    script(chats, Delta("Open the **valve** first [1], [or](http://evil.test) <img src=x> [99]."), Usage())

    answer = ask(client, html=True).json()

    html = answer["html"]
    last = answer["citations"][0]["end_line"]
    assert f'href="/file/library/manual/pumps.md?from=1&amp;to={last}#L1">[1]</a>' in html
    assert '<s class="citation missing">[99]</s>' in html
    assert html.count("href") == 1
    assert "<img" not in html
    assert "<strong>valve</strong>" in html


def test_without_the_page_links_lead_to_the_api(project, chats):
    script(chats, *WORDS)
    with serving(project, has_page=False) as client:
        answer = ask(client, html=True).json()
        (address,) = [part.split('"')[0] for part in answer["html"].split('href="')[1:]]
        assert client.get(address.replace("&amp;", "&")).json()["file"]["path"] == "pumps.md"


def test_one_body_has_what_the_events_have(client):
    body = ask(client, html=True).json()
    events = dict(events_of(client, html=True))

    written, sources = events["answer"], events["sources"]
    for name in ("html", "citations", "model", "is_cut", "is_prompt_cut"):
        assert body[name] == written[name]
    for name in ("passages", "query", "commits", "generation", "warnings"):
        assert body[name] == sources[name]
    assert (body["question"], body["answer"], body["steps"]) == (PUMP, ANSWER, [])
    assert body["usage"]["completion_tokens"] == 20
    assert body["conversation"] not in {"", written["conversation"]}


def test_a_question_about_the_history_names_its_commits(client):
    sources = dict(events_of(client, question="What was the latest commit?", path=None, sources=["git/shop"]))[
        "sources"
    ]
    assert sources["commits"]


def look_further(chats: ChatServer) -> None:
    """Script a model that calls two tools before it answers; one of them does not exist."""
    calls = (ToolCall("a", "context", '{"query": "tank"}'), ToolCall("b", "rm", "{"))
    chats.replies = [OPENAI.reply(Delta(THOUGHT), *calls, Usage(9, 9)), OPENAI.reply(*WORDS)]


def test_each_step_of_an_agent_is_an_event_and_its_passages_are_among_those_that_were_read(client, chats):
    look_further(chats)
    events = events_of(client, agent=True, path=None, tokens=100)
    look_further(chats)
    body = ask(client, agent=True, path=None, tokens=100).json()

    assert [name for name, _ in events] == ["sources", "delta", "step", "step", "delta", "delta", "answer", "usage"]
    first, second = [data for name, data in events if name == "step"]
    assert list(first) == ["tool", "arguments", "outcome", "passages", "is_error"]
    assert (first["tool"], first["arguments"], first["is_error"]) == ("context", '{"query": "tank"}', False)
    assert (second["tool"], second["arguments"], second["is_error"]) == ("rm", "{", True)
    assert "tank.py" in {passage["path"] for passage in first["passages"]}
    assert body["steps"] == [first, second]
    assert {one["number"] for one in first["passages"]} <= {one["number"] for one in body["passages"]}
    assert body["answer"] == ANSWER  # text written before the steps is excluded
    assert body["usage"]["completion_tokens"] == 29


def test_who_wants_no_agent_gives_the_model_no_tools(client, chats):
    ask(client)
    assert "tools" not in chats.asked[0]


def test_an_answer_that_reaches_its_limit_says_so(client, chats):
    script(chats, Delta("Open the valve"), Usage(is_answer_cut=True))
    assert ask(client).json()["is_cut"] is True
    assert dict(events_of(client))["answer"]["is_cut"] is True


def test_half_a_character_of_a_model_breaks_nothing(root, tmp_path, monkeypatch):
    edit = ("line.decode()", 'line.decode() + "\\ud83d"')
    offering.install(tmp_path, "A language model that answers questions", monkeypatch, edit=edit)
    program = tmp_path / "answers"
    program.write_text("#!/bin/sh\necho 'Open it [1].'\n")
    program.chmod(0o755)
    write_settings(root, f'[llm]\nprovider = "lines"\nmodel = "{program}"\n')
    with serving(root) as client:
        body, events = ask(client).json(), events_of(client)
    assert body["answer"] == dict(events)["answer"]["text"] == "Open it [1].\n?"
    assert [data["text"] for name, data in events if name == "delta"] == ["Open it [1].\n?"]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("", "application/json"),
        ("application/json, text/event-stream", "application/json"),
        ("Text/Event-Stream;q=1, application/json;q=0.1", "text/event-stream"),
        ("text/html, text/event-stream", "text/event-stream"),
    ],
)
def test_the_form_is_the_one_that_the_client_names_first(client, accept, media_type):
    answer = client.post(ASK, json=BODY, headers={"Accept": accept})
    assert answer.headers["Content-Type"].partition(";")[0] == media_type


# Requests


def test_filters_and_tokens_bound_what_is_read(client):
    few = ask(client, path=None, tokens=100).json()["passages"]
    many = ask(client, path=None, sources=["manual"]).json()["passages"]

    assert 0 < len(few) < len(many)
    assert {passage["source"] for passage in many} == {"library/manual"}


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({"question": ""}, 422, "invalid-request"),
        ({"question": " "}, 422, "query"),
        ({"question": "x" * 20_001}, 422, "invalid-request"),
        ({"tokens": 0}, 422, "invalid-request"),
        ({"tokens": 1_000_000}, 422, "invalid-request"),
        ({"language": "python"}, 422, "invalid-request"),
        ({"sources": ["nowhere"]}, 422, "source"),
        ({"conversation": "a/b"}, 422, "invalid-request"),
        ({"conversation": "gone"}, 404, "unknown-conversation"),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("headers", [{}, STREAM], ids=["whole", "stream"])
def test_what_cannot_be_asked_is_a_problem_in_both_forms_and_asks_no_model(  # noqa: PLR0917 each is a parameter
    client, chats, body, status, problem, headers
):
    answer = client.post(ASK, json={"question": PUMP, **body}, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{problem}")
    assert chats.asked == []


# Without a model


def test_without_a_model_the_best_passages_are_the_answer(api):
    events = dict(events_of(api))
    assert events["answer"]["model"] is None
    assert events["answer"]["text"].startswith("No language model is configured")
    assert {citation["path"] for citation in events["answer"]["citations"]} == {"pumps.md"}
    assert events["usage"]["prompt_tokens"] == 0


def test_who_wants_a_model_is_refused_where_none_is_set(api):
    answer = ask(api, extractive=False)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/no-model")


def test_with_a_model_passages_alone_are_given_to_who_asks_for_them(client, chats):
    assert ask(client, extractive=True).json()["model"] is None
    assert chats.asked == []
    assert ask(client, extractive=False).json()["model"] == f"openai/{MODEL}"


# Conversations


def test_a_conversation_goes_on_with_its_numbers_and_what_was_said(client, chats):
    first = ask(client).json()
    second = ask(client, question="And how is it stopped?", path="tank.py", conversation=first["conversation"]).json()

    assert second["conversation"] == first["conversation"]
    highest = max(passage["number"] for passage in first["passages"])
    new = [passage["number"] for passage in second["passages"] if passage["path"] == "tank.py"]
    assert min(new) == highest + 1
    assert "pump" in second["query"]
    assert [message["role"] for message in chats.asked[-1]["messages"]] == ["system", "user", "assistant", "user"]
    assert chats.asked[-1]["messages"][2]["content"] == ANSWER
    assert second["citations"][0]["path"] == "pumps.md"  # the passage of the first answer


def test_another_conversation_begins_at_one_and_has_another_name(client):
    names = {ask(client).json()["conversation"] for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) > 40 for name in names)
    assert ask(client).json()["passages"][0]["number"] == 1


def test_a_conversation_is_forgotten_with_the_server(client, project):
    name = ask(client).json()["conversation"]
    with serving(project) as other:
        assert ask(other, conversation=name).status_code == 404


# Model failures

_IN_A_MINUTE = format_datetime(datetime.now(UTC) + timedelta(seconds=3000), usegmt=True)
FAILURES = {
    "401": (Reply(status=401), 502, "upstream", None),
    "403": (Reply(status=403), 502, "upstream", None),
    "404": (Reply(status=404), 502, "upstream", None),
    "429": (Reply(status=429), 429, "upstream-limit", None),
    "429 and when, in seconds": (Reply(status=429, headers={"Retry-After": "1800"}), 429, "upstream-limit", 1800),
    "429 and when, as a date": (Reply(status=429, headers={"Retry-After": _IN_A_MINUTE}), 429, "upstream-limit", 3000),
    "500": (Reply(status=500), 502, "upstream", None),
    "503 and when": (Reply(status=503, headers={"Retry-After": "7"}), 502, "upstream", 7),
    "redirection": (Reply(status=302), 502, "upstream", None),
    "nonsense": (Reply(body=b"<html>hello</html>"), 502, "upstream", None),
    "nonsense in events": (Reply((b"data: {nonsense\n\n",)), 502, "upstream", None),
    "no HTTP": (Reply(broken=b"SSH-2.0-OpenSSH_9.2\r\n"), 502, "upstream", None),
    "no word": (OPENAI.reply(Usage()), 502, "upstream", None),
}


@pytest.mark.parametrize(("reply", "status", "problem", "after"), FAILURES.values(), ids=FAILURES)
def test_a_model_that_fails_is_a_problem_or_an_event_of_the_same_problem(  # noqa: PLR0917 each is a parameter
    client, chats, reply, status, problem, after
):
    chats.replies = [reply]

    answer = ask(client)
    events = events_of(client)

    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{problem}")
    assert answer.headers["Content-Type"] == "application/problem+json"
    asked_s = answer.headers.get("Retry-After")
    assert asked_s == after if after is None else after - 2400 < int(asked_s) <= after
    assert [name for name, _ in events] == ["sources", "error"]
    assert events[-1][1] == answer.json()
    assert "K3Y" not in answer.text
    assert chats.keys[-1] not in answer.text


def test_a_model_that_breaks_off_leaves_what_came_and_an_error(client, chats):
    script(chats, Delta("Open the valve [1]"), ends=False)

    events = events_of(client)
    whole = ask(client)

    assert [name for name, _ in events] == ["sources", "delta", "answer", "error"]
    written, error = events[-2][1], events[-1][1]
    assert (written["text"], written["is_broken"]) == ("Open the valve [1]", True)
    assert [citation["number"] for citation in written["citations"]] == [1]
    assert error == whole.json()
    assert (whole.status_code, error["type"]) == (502, "/problems/upstream")

    script(chats, *WORDS)
    again = ask(client, question="Go on", conversation=written["conversation"])
    assert again.status_code == 200
    assert chats.asked[-1]["messages"][2]["content"] == "Open the valve [1]"


def test_a_server_where_nobody_is_is_a_problem(root):
    use_model(root, loopback.unused_address())
    with serving(root) as client:
        answer = ask(client)
        assert (answer.status_code, answer.json()["type"]) == (502, "/problems/upstream")
        assert "cannot be reached" in answer.json()["detail"]


@pytest.mark.parametrize("how", ["silence", "drops"])
def test_a_model_that_takes_too_long_is_given_up(root, chats, how):
    use_model(root, chats.address, timeout_s=0.5)
    if how == "silence":
        chats.replies = [Reply(delay_s=30)]
    else:
        script(chats, *[Delta("drop ")] * 1000, drip_s=0.05)
    with serving(root) as client:
        answer = ask(client)
        assert (answer.status_code, answer.json()["type"]) == (504, "/problems/upstream-late")
        names = [name for name, _ in events_of(client)]
        assert names[-1] == "error"
        assert ("answer" in names) == (how == "drops")


def test_a_question_beyond_its_budget_is_refused_before_it_is_sent(root, chats):
    use_model(root, chats.address, further="question_tokens = 50")
    chats.asked.clear()
    with serving(root) as client:
        answer = ask(client)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/budget")
    assert "llm.question_tokens" in answer.json()["detail"]
    assert chats.asked == []


def test_another_model_in_the_settings_answers_the_next_question(root, chats):
    use_model(root, chats.address)
    script(chats, *WORDS)
    with serving(root) as client:
        assert ask(client).json()["model"] == f"openai/{MODEL}"
        use_model(root, chats.address, model="small-2")
        assert ask(client).json()["model"] == "openai/small-2"
        write_settings(root)
        assert ask(client).json()["model"] is None


def test_an_answer_that_is_being_written_is_not_broken_off_by_another_model_in_the_settings(root, chats):
    use_model(root, chats.address)
    script(chats, *[Delta("word ")] * 10, Usage(), drip_s=0.1)
    chats.asking.clear()
    with serving(root) as client, ThreadPoolExecutor() as threads:
        slow = threads.submit(ask, client)
        assert chats.asking.wait(30)
        script(chats, *WORDS)
        use_model(root, chats.address, model="small-2")
        assert ask(client).json()["model"] == "openai/small-2"
        assert not slow.done()
        assert slow.result().json()["answer"] == "word " * 10


# Disconnected and concurrent clients


@pytest.fixture(scope="module")
def process(project: Path) -> Iterator[Server]:
    with running(project, "--no-jobs") as server:
        yield server


def begin(server: Server, headers: Mapping[str, str], **body: Any) -> socket.socket:
    """Send a question without reading the answer; the caller may close the connection at any time."""
    text = json.dumps({**BODY, **body}).encode()
    lines = {"Host": server.url.removeprefix("http://"), "Content-Type": "application/json", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**lines, "Content-Length": len(text)}.items())
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(f"POST {ASK} HTTP/1.1\r\n{head}\r\n".encode() + text)
    return connection


@pytest.mark.parametrize("headers", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(delay_s=30), id="before the first word"),
        pytest.param(Reply(tuple(OPENAI.events([Delta("Open ")])), stays=True), id="after it"),
    ],
)
def test_a_client_that_leaves_closes_the_request_to_the_model_within_a_second(process, chats, reply, headers):
    chats.replies = [reply]
    chats.asking.clear()
    chats.leaving.clear()
    with begin(process, headers):
        assert chats.asking.wait(30)
        assert not chats.leaving.wait(0.3)
        left = time.monotonic()
    assert chats.leaving.wait(10)
    assert chats.left[-1] - left < 1


def test_questions_whose_clients_left_are_counted_as_such(process, chats):
    chats.replies = [Reply(delay_s=30)]
    chats.asking.clear()
    with begin(process, STREAM):
        assert chats.asking.wait(30)
    counted = 'docindex_failures_total{error="(left)",operation="question"}'
    assert until(lambda: counted in httpx.get(f"{process.url}/metrics").text)


def test_words_are_there_before_the_next_ones_are_written(process, chats):
    chats.replies = [Reply(tuple(OPENAI.events([Delta("Open "), Delta("it.")])), stays=True)]
    with (
        httpx.Client(base_url=process.url, timeout=30) as client,
        client.stream("POST", ASK, json=BODY, headers=STREAM) as answer,
    ):
        lines = answer.iter_lines()
        assert next(line for line in lines if "Open" in line) == 'data: {"text":"Open "}'
    assert chats.leaving.wait(10)


def test_a_conversation_goes_on_after_an_answer_that_was_stopped(process, chats):
    """Test the page's Stop button: passage numbers already shown are not reused."""
    script(chats, *WORDS)
    with httpx.Client(base_url=process.url, timeout=30) as client:
        first = client.post(ASK, json=BODY).json()
        chats.replies = [Reply(tuple(OPENAI.events([Delta("Open ")])), stays=True)]
        going_on = {"conversation": first["conversation"], "path": "tank.py"}
        chats.asking.clear()
        with begin(process, STREAM, **going_on):
            assert chats.asking.wait(30)
            busy = client.post(ASK, json={**BODY, **going_on})
        script(chats, *WORDS)
        third = client.post(ASK, json={**BODY, **going_on}).json()

    assert (busy.status_code, busy.json()["type"]) == (409, "/problems/conversation-busy")
    known = max(passage["number"] for passage in first["passages"])
    new = [passage["number"] for passage in third["passages"] if passage["path"] == "tank.py"]
    assert min(new) == known + len(new) + 1  # the stopped question showed the same number of passages


def test_as_many_questions_are_answered_as_may_be_and_others_may_come_again(process, chats):
    chats.replies = [Reply(delay_s=30)]
    chats.asked.clear()
    with ExitStack() as open_ones, httpx.Client(base_url=process.url, timeout=30) as client:
        for _ in range(conversations.MOST):
            open_ones.enter_context(begin(process, STREAM))
        while len(chats.asked) < conversations.MOST:
            time.sleep(0.02)
        refused = [client.post(ASK, json=BODY, headers=headers) for headers in ({}, STREAM)]
        assert client.get("/api/v1/search", params={"query": "pump"}).status_code == 200
    script(chats, *WORDS)
    assert until(lambda: httpx.post(f"{process.url}{ASK}", json=BODY, timeout=30).status_code == 200)
    for answer in refused:
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/busy")
        assert int(answer.headers["Retry-After"]) > 0


def test_a_stream_says_now_and_then_that_it_lives(project, chats, monkeypatch):
    monkeypatch.setattr(client_disconnect, "_KEEPALIVE_S", 0.05)
    script(chats, *WORDS, drip_s=0.1)
    with serving(project) as client:
        text = client.post(ASK, json=BODY, headers=STREAM).text
    assert "\n\n: " in text
    assert [name for name, _ in parsed(text)] == ["sources", "delta", "delta", "answer", "usage"]


# What is known about the model


def test_it_says_which_model_answers_and_that_it_can(client, chats):
    found = client.get("/api/v1/llm").json()
    assert found == {
        "provider": "openai",
        "model": MODEL,
        "host": chats.address.removeprefix("http://"),
        "is_configured": True,
        "is_reachable": True,
        "is_logged_in": True,
        "version": found["version"],
        "problem": "",
    }
    assert found["version"]


def test_however_often_it_is_asked_the_model_is_looked_for_once(project, chats):
    chats.asked.clear()
    chats.replies = [Reply(delay_s=0.2)]
    with serving(project) as client, ThreadPoolExecutor() as threads:
        found = list(threads.map(lambda _: client.get("/api/v1/llm").json(), range(20)))
    assert len(chats.asked) == 1
    assert all(one == found[0] for one in found)


def test_it_says_why_a_model_cannot_be_asked_and_never_its_key(root, chats):
    use_model(root, chats.address.replace("http://", "http://user:K3Y-0f-the-pr0xy@"))
    chats.replies = [Reply(status=401)]
    with serving(root) as client:
        answer = client.get("/api/v1/llm")
    assert (answer.json()["is_reachable"], answer.json()["is_logged_in"]) == (True, False)
    assert "DOCINDEX_LLM__API_KEY" in answer.json()["problem"]
    assert "K3Y" not in answer.text


def test_it_says_that_none_is_set(api):
    found = api.get("/api/v1/llm").json()
    assert (found["provider"], found["is_configured"]) == ("none", False)
    assert "docs/how-to/ask-questions.md" in found["problem"]


def test_health_says_whether_a_model_is_set(api, client):
    assert [one.get("/api/v1/health").json()["has_model"] for one in (api, client)] == [False, True]
