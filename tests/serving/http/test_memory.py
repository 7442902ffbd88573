"""Tests of memory over HTTP: write, recall, forget, list, export, fold and erase, and how each is refused."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from docindex_dagster.core.settings import load_settings
from docindex_dagster.memory.memory import Memory
from tests.serving.http.conftest import command, serving
from tests.serving.http.scripted import write_settings

AT = "/api/v1/memory"


@pytest.fixture
def project(indexed: Path, tmp_path: Path) -> Path:
    """Return a copy of the project, because these tests write to memory."""
    return Path(shutil.copytree(indexed, tmp_path / "project", symlinks=True))


@pytest.fixture
def memory(project: Path) -> Iterator[TestClient]:
    with serving(project, domain="memory/main", may_read=["project/acme"]) as client:
        yield client


def write(memory: TestClient, text: str, session: str = "s", **others: Any) -> dict[str, Any]:
    answer = memory.post(f"{AT}/messages", json={"text": text, "session": session, **others})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def recalled(memory: TestClient, query: str, **others: Any) -> list[str]:
    answer = memory.post(f"{AT}/recall", json={"query": query, **others})
    assert answer.status_code == 200, answer.text
    return [item["text"] for item in answer.json()["items"]]


def problem_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].removeprefix("/problems/")


def test_a_message_is_written_recalled_and_forgotten(memory):
    written = write(memory, "the gasket is worn", role="ASSISTANT", message_id="1", domain="memory/main")
    again = write(memory, "the gasket is worn", message_id="1")

    assert (written["domain"], written["session"], written["chunks"]) == ("memory/main", "s", 1)
    assert (written["is_repeat"], again["is_repeat"]) == (False, True)
    assert written["message_id"] == again["message_id"]
    [item] = memory.post(f"{AT}/recall", json={"query": "gasket"}).json()["items"]
    assert (item["role"], item["message_id"], item["repeats"]) == ("assistant", written["message_id"], 1)
    forgotten = memory.post(f"{AT}/forget", json={"message": written["message_id"]}).json()
    assert forgotten == {
        "domain": "memory/main",
        "what": "message",
        "value": written["message_id"],
        "messages": 1,
    }
    assert recalled(memory, "gasket") == []


def test_a_blank_message_is_not_written(memory):
    assert write(memory, " ")["message_id"] == ""
    assert memory.get(f"{AT}/status").json()[0]["messages"] == 0


def test_messages_name_code_and_are_recalled_with_it(memory):
    anchors = write(memory, "check() refuses negative litres")["anchors"]
    answer = memory.post(f"{AT}/recall", json={"query": "negative litres", "code": True, "impact": True}).json()

    assert [(anchor["path"], anchor["name"]) for anchor in anchors] == [("tank.py", "check")]
    [anchored] = answer["items"][0]["anchors"]
    assert (anchored["state"], anchored["dependents"]) == ("fresh", 2)
    assert "tank.py" in {hit["path"] for hit in answer["code"]}


def test_pages_follow_each_other_and_code_comes_with_the_first(memory):
    for number in range(5):
        write(memory, f"rivet {number} of the pump")

    texts, cursor, codes = [], None, []
    while True:
        body = {"query": "rivet pump", "limit": 2, "cursor": cursor, "code": True}
        page = memory.post(f"{AT}/recall", json=body).json()
        texts += [item["text"] for item in page["items"]]
        codes.append(bool(page["code"]))
        cursor = page["next"]
        if cursor is None:
            break
    other = memory.post(f"{AT}/recall", json={"query": "other", "cursor": "WzIsICJ4Il0"})

    assert sorted(texts) == [f"rivet {number} of the pump" for number in range(5)]
    assert codes == [True, False, False]
    assert problem_of(other) == (422, "invalid-request")


def test_recall_is_narrowed(memory):
    write(memory, "one nut", "a", role="user")
    write(memory, "two nut", "b", role="tool", tool="pytest")

    assert recalled(memory, "nut", sessions=["a"]) == ["one nut"]
    assert recalled(memory, "nut", roles=["tool"]) == ["two nut"]
    assert recalled(memory, "nut", domains=["project/acme"]) == []
    assert recalled(memory, "nut", as_of="2020-01-01T00:00:00Z") == []
    assert sorted(recalled(memory, "nut", as_of="2100-01-01")) == ["one nut", "two nut"]


def test_what_another_process_wrote_is_there_at_once(memory, project):
    printed = command(project, "memory", "ingest", "--session", "s", "written by a command")

    assert recalled(memory, "command") == ["written by a command"]
    assert command(project, "memory", "recall", "command")["messages"][0]["message_id"] == printed["message_id"]


def test_the_status_is_that_of_the_command(memory, project):
    write(memory, "a nut")
    found = memory.get(f"{AT}/status").json()

    assert [(one["domain"], one["messages"], one["is_bound"]) for one in found] == [
        ("memory/main", 1, True),
        ("project/acme", 0, False),
    ]
    assert command(project, "memory", "status") == found[:1]


def test_the_export_is_a_line_of_json_for_each_message(memory, project):
    for text in ("first\nof two lines", "second"):
        write(memory, text)
    write(memory, "second")
    Memory(load_settings(project), "project/acme").ingest("elsewhere", session="s")

    exported = memory.get(f"{AT}/export")
    lines = [json.loads(line) for line in exported.text.splitlines()]

    assert exported.headers["Content-Type"].startswith("application/jsonl")
    assert [(line["message"]["text"], line["repeats"]) for line in lines] == [("first\nof two lines", 0), ("second", 1)]
    assert "elsewhere" in memory.get(f"{AT}/export", params={"domain": "project/acme"}).text


def test_the_log_is_folded_and_what_was_forgotten_erased(memory, project):
    write(memory, "an unforgettable quokka", "secret")
    write(memory, "a wombat")
    folded = memory.post(f"{AT}/fold").json()
    memory.post(f"{AT}/forget", json={"session": "secret"})
    receipt = memory.post(f"{AT}/erase").json()

    assert (folded["messages"], folded["added"], folded["receipt"]) == (2, 2, None)
    assert len(receipt["forgotten"]) == 1
    assert receipt["files"] > 5
    assert recalled(memory, "quokka wombat") == ["a wombat"]
    files = [file for file in (project / ".docindex" / "memory").rglob("*") if file.is_file()]
    assert not [file for file in files if b"quokka" in file.read_bytes()]


@pytest.mark.parametrize(
    ("path", "body", "status", "name"),
    [
        ("messages", {"text": "x" * (256 * 1024 + 1), "session": "s"}, 413, "message-size"),
        ("messages", {"text": "x", "session": "\n"}, 422, "message"),
        ("messages", {"text": "x", "session": ""}, 422, "message"),
        ("messages", {"text": "x", "session": "s", "nonsense": 1}, 422, "invalid-request"),
        ("messages", {"text": "x", "session": "s", "domain": "memory/other"}, 404, "unknown-domain"),
        ("recall", {"query": "x", "domains": ["memory/other"]}, 404, "unknown-domain"),
        ("recall", {"query": "x", "roles": ["king"]}, 422, "invalid-request"),
        ("recall", {"query": " "}, 422, "query"),
        ("forget", {}, 422, "query"),
        ("forget", {"session": "s", "message": "m"}, 422, "query"),
        ("forget", {"domain": "project/acme"}, 404, "unknown-domain"),
    ],
)
def test_mistakes_are_answered_by_problems(memory, path, body, status, name):
    assert problem_of(memory.post(f"{AT}/{path}", json=body)) == (status, name)


@pytest.mark.parametrize(
    ("limit", "status", "name"), [("per_second = 1", 429, "rate"), ("quota_bytes = 1048576", 507, "quota")]
)
def test_who_writes_too_much_is_refused(project, limit, status, name):
    write_settings(project, f"[memory]\n{limit}\n")
    with serving(project, domain="memory/main") as memory:
        answers = [
            memory.post(f"{AT}/messages", json={"text": f"{at}" + "x" * 250_000, "session": "s"}) for at in range(6)
        ]

    refused = [answer for answer in answers if answer.status_code != 200]
    assert problem_of(refused[0]) == (status, name)
    assert ("Retry-After" in refused[0].headers) == (name == "rate")


def test_a_log_that_cannot_be_written_acknowledges_nothing(memory, project):
    home = project / ".docindex" / "memory"
    home.mkdir()
    (home / "memory%2Fmain").symlink_to(home)

    assert problem_of(memory.post(f"{AT}/messages", json={"text": "x", "session": "s"})) == (503, "memory")


def test_only_who_has_the_token_writes_and_no_page_of_another_site(project):
    body = {"text": "x", "session": "s"}
    with serving(project, domain="memory/main", token="a-token-that-is-long-enough") as memory:
        refused = memory.post(f"{AT}/messages", json=body)
        bearer = {"Authorization": "Bearer a-token-that-is-long-enough"}
        foreign = memory.post(f"{AT}/messages", json=body, headers={**bearer, "Origin": "https://evil.example.com"})
        status = memory.get(f"{AT}/status", headers=bearer).json()

    assert problem_of(refused) == (401, "unauthorized")
    assert problem_of(foreign) == (403, "forbidden")
    assert status[0]["messages"] == 0


def test_a_server_without_a_domain_says_how_to_switch_memory_on(api):
    answer = api.get(f"{AT}/status")
    assert problem_of(answer) == (404, "memory-off")
    assert re.search(r"start it with --domain memory/NAME", answer.json()["detail"])
