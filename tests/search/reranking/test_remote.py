"""Reranking over HTTP: scores are blended with the ranking, and a search succeeds whatever the API does."""

import json
import logging
import time
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.reranking.remote import RemoteReranker
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of
from tests.search.reranking.rerank_api import KEY, RerankApi, serving, unused_url

FILES = {
    "lib/pump.py": ["fill fills the tank with the pump pump pump"],
    "lib/tank.py": ["drain empties the tank when the pump stops and the valve is open"],
    "lib/valve.py": ["shut closes the valve"],
}
QUERY = "pump tank valve open"


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of(FILES)
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    return open_reader(layout)


@pytest.fixture
def api():
    with serving() as api:
        yield api


def ask(reader: Reader, reranker: RemoteReranker | None, warnings: list[str] | None = None) -> list[Hit]:
    reported = [] if warnings is None else warnings
    return search(reader, QUERY, StaticEmbedder, mode=Mode.BM25, reranker=reranker, warn=reported.append)


def of(api: RerankApi, **options: Any) -> RemoteReranker:
    return replace(RemoteReranker(api.url, "rerank-1", SecretStr(KEY), timeout_s=0.5), **options)


def test_it_is_asked_with_the_query_the_passages_and_the_key(reader, api):
    ask(reader, of(api))

    (asked,) = api.asked
    assert (asked["model"], asked["query"], asked["top_n"]) == ("rerank-1", QUERY, 3)
    assert any(document.startswith("lib/pump.py fill\nfill fills the tank") for document in asked["documents"])
    assert api.keys == [f"Bearer {KEY}"]


def test_its_opinion_is_blended_with_the_first_score(reader, api):
    before = {hit.path: hit.score for hit in ask(reader, None)}
    after = ask(reader, of(api, weight=0.5))

    assert after[0].path == "lib/tank.py"  # contains all words
    for hit in after:
        assert hit.score == pytest.approx(sum(signal.contribution for signal in hit.signals))
        changes = [signal.contribution for signal in hit.signals if signal.name == "rerank"]
        assert hit.score - before[hit.path] == pytest.approx(sum(changes))


def test_without_weight_it_changes_nothing_and_with_all_of_it_nothing_else_counts(reader, api):
    assert ask(reader, of(api, weight=0.0)) == ask(reader, None)

    first, *_, last = ask(reader, of(api, weight=1.0))
    assert (first.path, last.path) == ("lib/tank.py", "lib/valve.py")


def test_a_passage_that_the_answer_leaves_out_is_the_least_relevant(reader, api):
    api.reply = json.dumps(
        {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]}
    ).encode()

    assert len(ask(reader, of(api))) == 3


NONSENSE = [
    b"",
    b"not json",
    b"[]",
    b'{"results": 5}',
    b'{"results": []}',
    b'{"results": [{"index": 99, "relevance_score": 1}]}',
    b'{"results": [{"index": -1, "relevance_score": 1}]}',
    b'{"results": [{"index": 0, "relevance_score": "high"}]}',
    b'{"results": [{"index": 0, "relevance_score": NaN}]}',
    b'{"results": [{"index": 0}]}',
    b"\xff\xfe" * 50,
    b"[" * 100_000,
    b'{"results": [{"index": 0, "relevance_score": 1e308}, {"index": 1, "relevance_score": -1e308}]}',
]


@pytest.mark.parametrize("reply", NONSENSE)
def test_nonsense_degrades_to_the_first_order_with_a_warning(reader, api, reply):
    api.reply = reply
    warnings: list[str] = []

    assert ask(reader, of(api), warnings) == ask(reader, None)
    (warning,) = warnings
    assert warning.startswith("the results are not reranked: ")
    assert "\n" not in warning


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (401, "it rejects the key in DOCINDEX_RERANK__API_KEY"),
        (404, "check rerank.url"),
        (429, "too many requests"),
        (500, "answered 500"),
        (503, "answered 503"),
        (302, "answered 302"),
    ],
)
def test_a_refusal_degrades_and_says_what_to_do(reader, api, status, why):
    api.status = status
    warnings: list[str] = []

    assert ask(reader, of(api), warnings) == ask(reader, None)
    assert why in warnings[0]
    assert len(api.asked) == 1  # interactive searches do not wait for a retry


HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"results": [{"index"'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip"


@pytest.mark.parametrize("broken", [b"", b"nonsense\r\n\r\n", HALF, CHUNKED, GZIP])
def test_an_answer_that_breaks_off_degrades(reader, api, broken):
    api.broken = broken
    warnings: list[str] = []

    assert ask(reader, of(api), warnings) == ask(reader, None)
    (warning,) = warnings
    assert "127.0.0.1" in warning
    assert "\n" not in warning


@pytest.mark.parametrize("slow", [{"delay_s": 30.0}, {"drip_s": 0.2}, {"slow_header_s": 0.1}])
def test_an_answer_that_takes_too_long_is_not_waited_for(reader, api, slow):
    for name, value in slow.items():
        setattr(api, name, value)
    warnings: list[str] = []
    started = time.monotonic()

    assert ask(reader, of(api), warnings) == ask(reader, None)
    assert time.monotonic() - started < 5
    assert "did not answer within 0.5 s" in warnings[0]


def test_an_unreachable_server_degrades(reader):
    warnings: list[str] = []

    assert ask(reader, RemoteReranker(unused_url(), "m"), warnings) == ask(reader, None)
    assert "127.0.0.1 cannot be reached" in warnings[0]


def test_it_is_given_as_many_as_it_looks_at_and_the_others_follow(reader, api):
    found = search(reader, QUERY, StaticEmbedder, mode=Mode.BM25, reranker=of(api, candidates=2), top_k=3)

    assert [len(asked["documents"]) for asked in api.asked] == [2]
    assert len(found) == 3
    assert found[2] == ask(reader, None)[2]


def test_the_key_is_shown_nowhere(reader, api, caplog):
    caplog.set_level(logging.DEBUG)
    warnings: list[str] = []
    reranker = of(api)
    api.status = 401

    ask(reader, reranker, warnings)

    assert KEY not in f"{warnings} {caplog.text} {reranker!r}"
