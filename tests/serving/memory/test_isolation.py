"""Tests that a bound server cannot reach other domains through any argument, id, path or glob.

The other domain is on the same disk, with one message folded and one in its log. So is a domain that the server may
read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from tests.serving.http.server import running
from tests.serving.memory.agents import Call, agent, answer, write_project
from tests.serving.memory.conftest import BOUND

SECRET = "**Zanzibar vault** is a safe. The code of the zanzibar vault is quokka."
LATER = "The zanzibar vault was moved; its quokka stays."
OTHERS = ("memory/other", "session/other")
WORDS = ("zanzibar", "quokka", "Zanzibar vault")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("shared"))
    for domain in OTHERS:
        write(root, domain, SECRET)
        fold(load_settings(root), domain)
        write(root, domain, LATER)
    for domain in ("memory/main", "project/acme"):
        write(root, domain, f"**Public notice** is a page. The notice of {domain} is public.")
        fold(load_settings(root), domain)
    return root


def write(root: Path, domain: str, text: str) -> None:
    memory = Memory(load_settings(root), domain)
    memory.ingest(text, session="hidden", message_id=text)
    memory.close()


@pytest.fixture(scope="module")
def messages(root: Path) -> list[Any]:
    """Return the messages of the other domain, as a server bound to it sees them."""
    found = Memory(load_settings(root), "memory/other").recall("zanzibar vault quokka")
    assert len(found.messages) == 2
    return list(found.messages)


@pytest.fixture(scope="module")
def bound(root: Path) -> Iterator[Call]:
    with agent(root, *BOUND) as call:
        yield call


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[httpx.Client]:
    with running(root, "--no-jobs", *BOUND) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def holds_nothing(text: str) -> bool:
    """Return whether an answer contains nothing of the other domain except the query itself."""
    return not any(word in text for word in ("safe", "moved", "stays", "Zanzibar"))


def without_names(text: str) -> str:
    return re.sub(r"(memory|session|project)/(?!main\b|acme\b)[\w*.%-]+|project/none", "DOMAIN", text)


def test_what_may_be_read_is_found(bound):
    found = answer(bound, "recall", query="public notice")
    assert sorted(re.findall(r"\d\. (\S+) session", found)) == ["memory/main", "project/acme"]


@pytest.mark.parametrize("query", WORDS)
def test_not_by_a_query(bound, query):
    assert holds_nothing(answer(bound, "recall", query=query, include_code=True, impact=True, top_k=50))


@pytest.mark.parametrize("domain", [*OTHERS, "memory/*", "*", "memory%2Fother", "../memory/other", "", "project/acme/"])
def test_not_by_the_argument_of_recall_and_a_domain_that_is_there_is_refused_as_one_that_is_not(bound, domain):
    is_error, text = bound("recall", query="zanzibar", domains=[domain])
    _, of_none = bound("recall", query="zanzibar", domains=["memory/none"])

    assert is_error
    assert text == f"domain {domain!r} is not readable here; the readable domains are memory/main, project/acme"
    assert text.replace(repr(domain), "DOMAIN") == of_none.replace("'memory/none'", "DOMAIN")


@pytest.mark.parametrize("tool", ["ingest_message", "ingest_tool_result", "forget"])
@pytest.mark.parametrize("domain", [*OTHERS, "project/acme", "memory/none"])
def test_not_by_the_argument_of_what_writes(bound, root, tool, domain):
    before = held(root)
    arguments: dict[str, Any] = {"domain": domain}
    if tool != "forget":
        arguments |= {"text": "intruder", "session_id": "s"}
    if tool == "ingest_tool_result":
        arguments |= {"tool_name": "t"}

    is_error, text = bound(tool, **arguments)

    assert is_error
    assert without_names(text).endswith("omit the domain, or use memory/main")
    assert held(root) == before


def held(root: Path) -> dict[str, int]:
    """Return the number of messages in each other domain."""
    settings = load_settings(root)
    domains = (*OTHERS, "project/acme", "memory/none")
    return {one.domain: one.messages for domain in domains for one in Memory(settings, domain).status()}


def test_not_by_an_id(bound, root, messages):
    before = held(root)
    for message in messages:
        for given in (message.message_id, message.chunk_id):
            assert "memory/main has no messages to forget" in answer(bound, "forget", message_id=given)
            assert holds_nothing(answer(bound, "recall", query=given, top_k=50))
    assert "memory/main has no messages to forget" in answer(bound, "forget", session_id="hidden elsewhere")
    assert held(root) == before


def test_not_by_show(bound, messages):
    for message in messages:
        path = f".said/hidden/{message.message_id}"
        for place in (
            message.chunk_id,
            message.message_id,
            path,
            f"{path}:1",
            f"{message.domain}::{path}::0",
            f".docindex/memory/memory%2Fother/{path}",
        ):
            for sources in (None, [message.domain]):
                is_error, text = bound("show", reference=place, sources=sources)
                assert is_error
                assert holds_nothing(text.replace(place, ""))


def test_not_by_what_resembles_a_place(bound, messages):
    for message in messages:
        is_error, text = bound("find_similar", place=message.chunk_id)
        assert is_error
        assert holds_nothing(text)
    found = answer(bound, "find_similar", place="docs/station.py:1", top_k=50, same_file=True)
    assert holds_nothing(found)
    assert ".said" not in found


@pytest.mark.parametrize("mode", ["hybrid", "vector", "bm25", "graph", "literal", "regex"])
@pytest.mark.parametrize("glob", [None, "**", ".said/**", "*/*", "**/memory*/**"])
def test_not_by_search_in_any_mode_with_any_glob(bound, mode, glob):
    for query in ("zanzibar", "public notice"):  # code search does not search the server's own domain either
        _, text = bound("search", query=query, mode=mode, path=glob, top_k=50)
        assert holds_nothing(text)
        assert "is public" not in text
        assert not re.search(r"^\d+\. (?!library/docs )", text, re.MULTILINE)
        assert ".said/hidden" not in text


@pytest.mark.parametrize("source", [*OTHERS, "memory/main", "other", "main"])
def test_not_as_a_source(bound, source):
    for tool, arguments in (
        ("search", {"query": "zanzibar"}),
        ("context", {"query": "zanzibar"}),
        ("graph", {"question": "stats"}),
        ("log", {}),
        ("show", {"reference": "pump.md"}),
    ):
        is_error, text = bound(tool, sources=[source], **arguments)
        assert is_error
        assert holds_nothing(text)


def test_not_by_a_context_the_status_or_the_rules(bound):
    for tool, arguments in (
        ("context", {"query": "zanzibar vault quokka public notice"}),
        ("status", {}),
        ("memory_status", {}),
    ):
        text = answer(bound, tool, **arguments)
        assert holds_nothing(text)
        assert not any(domain in text for domain in OTHERS)
    _, text = bound("why", path=".docindex/memory/memory%2Fother")
    assert holds_nothing(text)


@pytest.mark.parametrize("question", ["callers", "callees", "impact", "neighbors"])
def test_not_by_the_graph(bound, messages, question):
    for symbol in (
        "zanzibar vault",
        "Zanzibar vault",
        "quokka",
        "public notice",
        f".said/hidden/{messages[0].message_id}",
    ):
        is_error, text = bound("graph", question=question, symbol=symbol)
        assert is_error or "no " in text.lower()
        assert holds_nothing(text.replace(symbol, ""))


def test_the_graph_counts_nothing_of_memory(bound):
    of_all, of_code = (answer(bound, "graph", question="stats", sources=sources) for sources in ([], ["library/docs"]))
    assert of_all == of_code


@pytest.mark.parametrize("domain", [*OTHERS, "memory/none"])
def test_not_over_http(served, messages, domain):
    by_argument = [
        served.post("/api/v1/memory/recall", json={"query": "zanzibar", "domains": [domain]}),
        served.get("/api/v1/memory/export", params={"domain": domain}),
        served.post("/api/v1/memory/messages", json={"text": "x", "session": "s", "domain": domain}),
        served.post("/api/v1/memory/forget", json={"domain": domain}),
    ]
    for response in by_argument:
        assert response.status_code == 404
        assert response.json()["type"] == "/problems/unknown-domain"
        assert holds_nothing(response.text)

    path = f".said/hidden/{messages[0].message_id}"
    for address in (
        f"/api/v1/files/{domain}/{path}",
        f"/api/v1/sources/{domain}/stats",
        f"/api/v1/similar?place={messages[0].chunk_id}",
        f"/api/v1/search?query=zanzibar&sources={domain}",
    ):
        response = served.get(address)
        assert 400 <= response.status_code < 500, address
        assert holds_nothing(response.text)


def test_not_on_the_pages(served, messages):
    for address in (
        "/?q=zanzibar&mode=literal",
        "/source/memory/other",
        f"/file/memory/other/.said/hidden/{messages[0].message_id}",
        "/log",
    ):
        text = served.get(address).text
        assert not any(word in text for word in ("safe.", "was moved", "stays")), address


@pytest.mark.parametrize("address", ["status", "export", "export?domain=project/acme"])
def test_not_among_what_is_listed(served, address):
    response = served.get(f"/api/v1/memory/{address}")
    assert response.status_code == 200
    assert holds_nothing(response.text)
    assert not any(domain in response.text for domain in OTHERS)


def test_neither_the_list_of_sources_nor_the_metrics_name_a_domain(served):
    for address in ("/sources", "/metrics", "/api/v1/sources", "/api/v1/status"):
        assert not any(domain in served.get(address).text for domain in (*OTHERS, *BOUND[1::2])), address


@pytest.mark.parametrize("way", ["message", "session"])
def test_not_by_forgetting_over_http(served, root, messages, way):
    before = held(root)
    value = messages[0].message_id if way == "message" else "elsewhere"
    assert served.post("/api/v1/memory/forget", json={way: value}).json()["messages"] == 0
    assert held(root) == before
