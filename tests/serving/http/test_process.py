"""Tests of `docindex serve` as users run it: a listening process, and clients that come and go."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.http.scripted import write_settings
from tests.serving.http.server import LONGEST_S, running

TOKEN = "a-token-that-is-long-enough-0123456789"
VARIABLE = "DOCINDEX_SERVE__TOKEN"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def project(indexed, tmp_path_factory) -> Path:
    return Path(shutil.copytree(indexed, tmp_path_factory.mktemp("process") / "project", symlinks=True))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "search.example.com"])
def test_it_listens_for_other_machines_with_a_token_alone(project, host):
    command = [sys.executable, "-m", "docindex_dagster.cli", "serve", "--host", host]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert VARIABLE in ended.stderr


def test_a_token_that_can_be_guessed_is_refused_and_not_repeated(project, monkeypatch):
    monkeypatch.setenv(VARIABLE, "hunter2")
    command = [sys.executable, "-m", "docindex_dagster.cli", "serve"]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert ended.returncode == 1
    assert "at least" in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


def test_a_token_in_the_file_is_refused(root):
    write_settings(root, f'[serve]\ntoken = "{TOKEN}"\n')
    command = [sys.executable, "-m", "docindex_dagster.cli", "serve"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert ended.returncode == 1
    assert TOKEN not in ended.stderr + ended.stdout


def events_of(url: str, last: str | None = None, most: int | None = None) -> list[tuple[str, str, Any]]:
    """Return the events of a job as (id, name, data); `most` closes the connection after that many."""
    found: list[tuple[str, str, Any]] = []
    event: dict[str, str] = {}
    headers = {} if last is None else {"Last-Event-ID": last}
    with httpx.stream("GET", url, headers=headers, timeout=LONGEST_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["Cache-Control"] == "no-cache"
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name:
                event[name] = value
            elif event:
                found.append((event["id"], event["event"], json.loads(event["data"])))
                event = {}
                if len(found) == most:
                    return found
    return found


def test_a_job_is_followed_over_broken_connections_without_loss_or_repetition(root):
    (root / "manual" / "new.md").write_text("# New\n\nA page about the weir.\n")
    with running(root) as server:
        api = f"{server.url}/api/v1"
        place, key = f"{api}/sources/library/manual/index", {"Idempotency-Key": "one"}
        started = httpx.post(place, headers=key)
        again = httpx.post(place, headers=key)
        other = httpx.post(place, headers=key, json={"mode": "full"})
        job = started.json()["id"]
        assert (started.status_code, started.headers["Location"]) == (202, f"/api/v1/jobs/{job}")
        assert (again.status_code, again.json()["id"]) == (202, job)
        assert (other.status_code, other.json()["type"]) == (409, "/problems/key-reused")

        seen: list[tuple[str, str, Any]] = []
        while not seen or seen[-1][1] != "ended":
            seen += events_of(f"{api}/jobs/{job}/events", seen[-1][0] if seen else None, most=2)

        assert [int(number) for number, *_ in seen] == list(range(1, len(seen) + 1))
        assert len(seen) > 2
        assert seen[-1][2]["state"] == "succeeded"
        assert events_of(f"{api}/jobs/{job}/events") == seen
        assert events_of(f"{api}/jobs/{job}/events", seen[-2][0]) == seen[-1:]
        ended = httpx.delete(f"{api}/jobs/{job}")
        assert (ended.status_code, ended.json()["type"]) == (409, "/problems/job-ended")
        assert httpx.get(f"{api}/search", params={"query": "weir"}).json()["items"][0]["path"] == "new.md"
        wrong = httpx.get(f"{api}/jobs/{job}/events", headers={"Last-Event-ID": "x"})
        assert (wrong.status_code, wrong.json()["type"]) == (422, "/problems/invalid-request")


def test_the_token_is_nowhere_in_what_the_server_says(root):
    """Test that the token never appears in the server's output, whatever fails, even with --debug."""
    addresses = ["/", "/mcp", "/openapi.json", "/api/v1/health", "/api/v1/status", "/api/v1/jobs", "/api/v1/nothing"]
    addresses += ["/api/v1/search?query=pump", "/api/v1/search?query=(&mode=regex", "/api/v1/search?limit=x"]
    with (
        running(root, "--debug", environment={VARIABLE: TOKEN}) as server,
        httpx.Client(base_url=server.url, timeout=LONGEST_S) as client,
    ):
        texts = []
        for headers in ({}, BEARER, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
            for address in addresses:
                answers = [client.request(method, address, headers=headers) for method in ("GET", "POST")]
                texts += [f"{answer.headers}{answer.text}" for answer in answers]
        (root / "docindex.toml").write_text(f'[serve]\ntoken = "{TOKEN[:-1]}y"\n')
        texts.append(client.get("/api/v1/status", headers=BEARER).text)
        shutil.rmtree(root / ".docindex" / "stores")
        texts.append(client.get("/api/v1/search?query=pump", headers=BEARER).text)
        children = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True, check=True).stdout

    texts.append(server.output.read_text())
    assert not [text for text in (*texts, children) if TOKEN[:-1] in text]
