"""Tests of MCP over HTTP: every tool through the official client, and requests that are not valid messages."""

from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from tests.serving.http.server import running

TOKEN = "a-token-that-is-long-enough-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CALLS = [
    ("search", {"query": "how is a pump started"}, "pumps.md"),
    ("context", {"query": "start a pump"}, "open the valve first"),
    ("find_similar", {"place": "git/shop::tank.py::0"}, "score"),
    ("show", {"reference": "tank.py:3"}, "class Tank"),
    ("graph", {"question": "callers", "symbol": "check"}, "tank.py"),
    ("log", {"query": "tank", "path": "*.py"}, "| Add the tank"),
    ("why", {"path": "yarn.lock"}, "always-skipped"),
    ("status", {}, "library/manual"),
]
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def open_server(indexed):
    with running(indexed, "--no-jobs") as server:
        yield server


@pytest.fixture(scope="module")
def guarded_server(indexed):
    with running(indexed, "--no-jobs", environment={"DOCINDEX_SERVE__TOKEN": TOKEN}) as server:
        yield server


def ask(url: str, headers: dict[str, str]) -> list[tuple[bool, str]]:
    async def run() -> list[tuple[bool, str]]:
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {name for name, *_ in CALLS}
            results = [await client.call_tool(name, arguments) for name, arguments, _ in CALLS]
        return [(bool(result.is_error), result.content[0].text) for result in results]

    return anyio.run(run)


@pytest.mark.parametrize(("fixture", "headers"), [("open_server", {}), ("guarded_server", BEARER)])
def test_every_tool_answers(request, fixture, headers):
    answers = ask(request.getfixturevalue(fixture).url, headers)
    for (name, _, expected), (is_error, text) in zip(CALLS, answers, strict=True):
        assert (name, is_error) == (name, False)
        assert expected in text


def test_without_the_token_nothing_is_answered(guarded_server):
    answer = httpx.post(f"{guarded_server.url}/mcp", json=message("tools/list"), headers=ACCEPT)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    with pytest.raises((MCPError, ExceptionGroup)):
        ask(guarded_server.url, {})


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_stream_is_held_open(open_server, method):
    answer = httpx.request(method, f"{open_server.url}/mcp", headers=ACCEPT)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_page_of_another_site_reaches_no_tool(open_server):
    for headers in ({"Origin": "https://evil.example.com"}, {"Host": "evil.example.com"}, {"Origin": "null"}):
        answer = httpx.post(f"{open_server.url}/mcp", json=message("tools/list"), headers={**ACCEPT, **headers})
        assert answer.status_code in {403, 421}


def message(method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}


CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": %s}}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0"}',
        CALL % b'{"query": "\\ud800"}',
        CALL % (b'{"query": "pump", "top_k": ' + b"1" * 5000 + b"}"),
        CALL % b'{"query": "pump", "top_k": 1e999}',
        CALL % b'{"query": NaN}',
        CALL % b'{"nonsense": 1}',
    ],
    ids=lambda body: str(body)[:60],
)
def test_what_is_no_message_is_an_error_of_the_client(open_server, body):
    answer = httpx.post(f"{open_server.url}/mcp", content=body, headers=ACCEPT, timeout=60)
    assert answer.status_code < 500
    reply = answer.json()
    assert "error" in reply or reply["result"]["isError"] or "pump" in answer.text or "\ufffd" in answer.text
    assert httpx.get(f"{open_server.url}/api/v1/health").status_code == 200


def test_a_message_that_is_too_large_is_refused(open_server):
    def parts():
        for _ in range(40):
            yield b" " * 100_000

    for content in (b" " * 4_000_000, parts()):
        answer = httpx.post(f"{open_server.url}/mcp", content=content, headers=ACCEPT, timeout=60)
        assert answer.status_code == 413
