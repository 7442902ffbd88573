"""Tests of recording answers to a question over HTTP: when it is allowed, and what is recorded or rejected."""

import json
from pathlib import Path

import pytest

from tests.serving.http.conftest import serving
from tests.serving.http.scripted import write_settings

TOKEN = "a-token-that-is-long-enough-0123456789"
SECRET = "ghp_" + "Zq3x8Kd0vN4mYt7Rb1Lw9Gs6Hc2Jf5Pa0UeE"
QUESTIONS = "/api/v1/questions"
SENT = {"question": "who moves water", "place": "tank.py:9-11"}


@pytest.fixture
def collecting(root: Path) -> Path:
    """Return a copy of the project that collects questions."""
    write_settings(root, "[evaluation]\ncollect = true\n")
    return root


@pytest.fixture
def client(collecting):
    with serving(collecting) as made:
        yield made


def records(root: Path) -> list[dict[str, object]]:
    file = root / ".docindex" / "questions.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_result_is_noted_once_and_can_be_taken_back(client, collecting):
    hit = client.post("/api/v1/search", json={"query": "who moves water"}).json()["items"][0]
    body = {"question": "who moves  water", "place": hit["chunk_id"]}

    first, again = (client.post(QUESTIONS, json=body) for _ in range(2))
    noted = records(collecting)
    back = client.post(QUESTIONS, json={**body, "answers": False})

    place = f"{hit['path']}:{hit['start_line']}-{hit['end_line']}"
    expected = {"question": "who moves water", "source": hit["source"], "path": place}
    assert (first.status_code, first.json()) == (200, {**expected, "is_noted": True, "is_new": True})
    assert again.json() == {**expected, "is_noted": True, "is_new": False}
    assert noted == [{**expected, "origin": "api"}]
    assert back.json() == {**expected, "is_noted": False, "is_new": True}
    assert records(collecting) == []


def test_lines_of_a_file_answer_as_well_in_a_source_that_is_named(client, collecting):
    answer = client.post(QUESTIONS, json={**SENT, "source": "shop", "origin": "page"})

    assert answer.json()["path"] == "tank.py:9-11"
    assert [(one["path"], one["source"], one["origin"]) for one in records(collecting)] == [
        ("tank.py:9-11", "git/shop", "page")
    ]


@pytest.mark.parametrize(
    ("wrong", "problem", "detail"),
    [
        ({"question": ""}, "invalid-request", "at least 1 character"),
        ({"question": "?!"}, "query", "the question is empty"),
        ({"question": "x" * 2001}, "invalid-request", "at most 2000 characters"),
        ({"question": f"who uses {SECRET}"}, "query", "contains a secret"),
        ({"place": "nowhere.py:3"}, "query", "no indexed chunk is named"),
        ({"place": "tank.py:900"}, "query", "the last indexed line"),
        ({"place": "tank.py:9-3"}, "query", "invalid lines 9-3"),
        ({"place": "../docindex.toml"}, "query", "no indexed chunk is named"),
        ({"place": "x" * 5001}, "invalid-request", "at most 4096 characters"),
        ({"source": "nowhere"}, "source", "source 'nowhere' not found"),
        ({"source": "manual"}, "query", "no indexed chunk is named"),
        ({"origin": "mcp"}, "invalid-request", "'api' or 'page'"),
        ({"more": 1}, "invalid-request", "Extra inputs"),
    ],
)
def test_what_cannot_be_noted_is_refused_with_the_reason(client, collecting, wrong, problem, detail):
    answer = client.post(QUESTIONS, json={**SENT, **wrong})

    assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{problem}")
    assert detail in answer.json()["detail"]
    assert SECRET not in answer.text
    assert records(collecting) == []


def test_where_nothing_is_collected_that_is_the_answer_until_the_settings_say_otherwise(root):
    with serving(root) as client:
        off = client.post(QUESTIONS, json=SENT)
        write_settings(root, "[evaluation]\ncollect = true\n")
        on = client.post(QUESTIONS, json=SENT)

    assert (off.status_code, off.json()["type"]) == (409, "/problems/collecting-off")
    assert "evaluation.collect = true" in off.json()["detail"]
    assert on.status_code == 200
    assert len(records(root)) == 1


def test_a_page_of_another_site_and_who_has_no_token_note_nothing(collecting):
    with serving(collecting, token=TOKEN) as client:
        nobody = client.post(QUESTIONS, json=SENT)
        foreign = client.post(
            QUESTIONS, json=SENT, headers={"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}
        )
        plain = client.post(
            QUESTIONS,
            content=json.dumps(SENT),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/plain"},
        )

    assert [answer.status_code for answer in (nobody, foreign)] == [401, 403]
    assert plain.status_code in {415, 422}  # a request that a form on another site could send
    assert records(collecting) == []
