"""The provider `openai` against a real server: requests, limits, and the outcome of each failure.

Each row of the table “When the API fails” in docs/how-to/use-another-embedding-model.md has tests in this module.
"""

import json
import logging
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docindex_dagster.core.errors import EmbeddingError, PartialEmbeddingError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.openai import OpenAIEmbedder
from docindex_dagster.embedding.protocol import Batched, Embedder, Metered
from docindex_dagster.embedding.providers import embedder_named, load_embedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.lance_table import table_name
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.staging import Model
from tests.conftest import chunks_of, publish_rows
from tests.embedding.openai_server import KEY, Fault, OpenAIServer, serving, unused_url, vector_of

TEXTS = [f"text {number} of the pump" for number in range(7)]
TOO_LONG = "This model's maximum context length is 8192 tokens"


def embedder(api: OpenAIServer, **options: Any) -> OpenAIEmbedder:
    given = {"provider": "openai", "base_url": api.url, "dimensions": 8, "api_key": KEY, "timeout_s": 5, "retries": 3}
    return OpenAIEmbedder(EmbeddingSettings(**given | options), first_wait_s=0.01)


def unit(texts: list[str], dimension: int = 8) -> np.ndarray:
    rows = np.array([vector_of(text, dimension) for text in texts])
    vectors: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors


# Names and settings.


def test_it_says_what_it_is_without_a_key_and_without_asking_anybody(api):
    model = load_embedder(EmbeddingSettings(provider="openai"))

    assert (model.name, model.dimension, model.max_tokens) == ("openai/text-embedding-3-large/3072", 3072, 8192)
    assert isinstance(model, Embedder)
    assert isinstance(model, Batched)
    assert isinstance(model, Metered)
    assert (model.batch_size, model.concurrency) == (100, 4)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "openai/text-embedding-3-large/3072"),
        ({"dimensions": 256}, "openai/text-embedding-3-large/256"),
        ({"model": "text-embedding-3-small"}, "openai/text-embedding-3-small/1536"),
        ({"model": "text-embedding-ada-002"}, "openai/text-embedding-ada-002/1536"),
        ({"model": "BAAI/bge-m3", "dimensions": 1024}, "openai/BAAI/bge-m3/1024"),
    ],
)
def test_its_name_says_all_that_decides_a_vector_and_names_it_again(options, name):
    assert OpenAIEmbedder(EmbeddingSettings(provider="openai", **options)).name == name
    assert embedder_named(name).name == name


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": "nomic-embed-text"}, "set embedding.dimensions"),
        ({"dimensions": 4000}, "must be 2 to 3072, not 4000"),
        ({"model": "text-embedding-ada-002", "dimensions": 512}, "must be 1536, not 512"),
    ],
)
def test_a_dimension_that_cannot_be_is_reported_at_once(options, why):
    with pytest.raises(EmbeddingError, match=why):
        load_embedder(EmbeddingSettings(provider="openai", **options))


NAMES = [
    "openai/a/b/8",
    "openai/a-b/8",
    "openai/A-b/8",
    "openai/../../x/8",
    "..",
    ".",
    "openai/" + "x" * 400 + "/8",
    "ä",
]


def test_a_name_is_safe_wherever_it_names_a_file_and_two_names_never_share_one(tmp_path):
    layout = Layout(tmp_path)
    tables = {table_name(name) for name in NAMES}

    assert len(tables) == len(NAMES)
    for table in tables:
        assert len(table) < 150
        assert table.isascii()
        assert table.replace("-", "").isalnum()
    assert table_name("docindex-static-e932ff3d").startswith("chunks-docindex-static-e932ff3d-")

    folders = {layout.cached_vectors("git/x", name) for name in NAMES}
    assert len(folders) == len(NAMES)
    assert {folder.resolve().parent for folder in folders} == {layout.cached_vectors("git/x")}


# Requests.


def test_texts_become_vectors_of_unit_length_in_their_order(api):
    model = embedder(api)

    vectors = model.embed_documents(TEXTS)

    assert vectors.dtype == np.float32
    assert np.allclose(vectors, unit(TEXTS), atol=1e-6)
    assert np.allclose(model.embed_query(TEXTS[2]), vectors[2], atol=1e-6)
    asked = api.requests[0]
    assert (asked["path"], asked["model"], asked["dimensions"]) == ("/v1/embeddings", "text-embedding-3-large", 8)
    assert asked["encoding_format"] == "base64"
    assert set(api.keys) == {f"Bearer {KEY}"}


def test_an_endpoint_that_answers_numbers_will_do(api):
    api.only_floats = True

    assert np.allclose(embedder(api).embed_documents(TEXTS), unit(TEXTS), atol=1e-6)


def test_an_option_that_an_endpoint_does_not_know_is_left_out(api):
    api.refused_options = {
        "dimensions=8": "Model nomic does not support matryoshka representation",
        "encoding_format=base64": "encoding_format must be float",
    }

    assert np.allclose(embedder(api, model="nomic", retries=0).embed_documents(TEXTS), unit(TEXTS), atol=1e-6)
    assert set(api.requests[-1]) == {"path", "model", "input", "encoding_format"}


@pytest.mark.parametrize("model", ["text-embedding-ada-002"])
def test_dimensions_are_not_sent_to_a_model_that_does_not_take_them(api, model):
    api.dimension = 1536
    embedder(api, model=model, dimensions=None).embed_documents(["a"])

    assert "dimensions" not in api.requests[0]


def test_requests_stay_within_the_limits_of_texts_and_tokens(api):
    model = embedder(api, batch_size=100)
    long = "pump " * 6000  # at least 6,000 tokens

    model.embed_documents([f"{number} {long}" for number in range(60)] + ["short"] * 150)

    sizes = [len(asked["input"]) for asked in api.requests]
    assert sum(sizes) == 210
    assert max(sizes) <= 100
    for asked in api.requests:
        assert sum(len(text.split()) * 1.2 for text in asked["input"]) <= 300_000


def test_limits_a_minute_spread_the_requests(api):
    model = embedder(api, requests_per_minute=600, batch_size=1)  # one request per 0.1 s

    model.embed_documents(TEXTS[:4])

    assert api.times[-1] - api.times[0] > 0.2


def test_no_text_is_refused_for_being_empty(api):
    api.refuse = lambda text: None if text.strip() else "input cannot be an empty string"

    assert np.isfinite(embedder(api).embed_documents(["", "  \n", "a"])).all()


def test_a_text_that_is_too_long_is_cut_and_counted(api):
    model = embedder(api)

    vectors = model.embed_documents(["word " * 20_000, "short"])

    first, second = api.requests[0]["input"]
    assert 5000 < len(first.split()) <= 8192
    assert second == "short"
    assert np.isfinite(vectors).all()
    assert model.usage().cut == 1


def test_what_the_api_still_finds_too_long_is_cut_again(api):
    api.refuse = lambda text: TOO_LONG if len(text.split()) > 300 else None
    model = embedder(api)

    vectors = model.embed_documents(["word " * 1000, *TEXTS])

    assert np.allclose(vectors[1:], unit(TEXTS), atol=1e-6)
    assert np.isfinite(vectors).all()
    longest = max(len(text.split()) for _, _, text in api.answered)
    assert 200 < longest <= 300
    assert model.usage().cut == 1
    assert api.twice == []


def test_usage_tells_requests_tokens_and_cost(api):
    model = embedder(api, price=2.0, batch_size=4)
    model.embed_documents(TEXTS)

    tokens = sum(len(text.split()) for text in TEXTS)
    assert (model.usage().requests, model.usage().tokens) == (2, tokens)
    assert model.usage().cost == pytest.approx(tokens * 2e-6)


def test_tokens_are_counted_here_where_the_api_does_not_and_a_cost_is_reported_only_where_a_price_is_known(api):
    api.with_usage = False
    model = embedder(api)
    model.embed_documents(TEXTS)

    assert model.usage().tokens >= len(TEXTS) * 5
    assert model.usage().cost is None
    assert OpenAIEmbedder(EmbeddingSettings(provider="openai")).usage().cost == 0


def test_vectors_of_3072_values_are_published_and_found(api, layout):
    chunks = chunks_of({f"{number}.py": [text] for number, text in enumerate(TEXTS)})
    model = embedder(api, dimensions=None)
    vectors = build_embeddings(chunks, None, model, "library/sample").table

    publish_rows(layout, "library/sample", chunks, vectors, Model.of(model))

    found = search(open_reader(layout), TEXTS[3], lambda: model, mode=Mode.VECTOR)
    assert found[0].text == TEXTS[3]


# Keys.


def test_openai_itself_needs_a_key_which_is_reported_when_it_first_embeds(api):
    with pytest.raises(EmbeddingError, match="set DOCINDEX_EMBEDDING__API_KEY or OPENAI_API_KEY"):
        OpenAIEmbedder(EmbeddingSettings(provider="openai")).embed_query("a")


def test_the_key_of_openai_goes_to_no_other_place_that_the_settings_name(api, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder(api, api_key=None).embed_query("a")
    assert not any(KEY in (key or "") for key in api.keys)

    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    embedder(api, api_key=None, base_url=None).embed_query("a")
    assert api.keys[-1] == f"Bearer {KEY}"


def test_a_key_that_can_be_none_is_not_shown(api):
    with pytest.raises(EmbeddingError, match="non-ASCII or unprintable characters") as caught:
        embedder(api, api_key="sk-\u00e4\u00e4").embed_query("a")

    assert "sk-" not in str(caught.value)


def test_a_redirect_is_not_followed(api):
    with serving() as elsewhere:
        api.always = Fault(307, headers={"Location": f"{elsewhere.url}/embeddings"})
        with pytest.raises(EmbeddingError, match=r"answered 307: set embedding.base_url"):
            embedder(api).embed_documents(TEXTS)

        assert elsewhere.requests == []
    assert len(api.requests) == 1


# API failures, as listed in docs/how-to/use-another-embedding-model.md.


def test_429_is_asked_again_with_longer_and_longer_waits(api):
    api.faults.extend([Fault(429)] * 3)

    assert np.isfinite(embedder(api).embed_documents(TEXTS)).all()
    gaps = np.diff(api.times)
    assert len(gaps) == 3
    assert gaps[0] >= 0.005
    assert gaps[2] >= 0.02


@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms", "date"])
def test_429_with_retry_after_waits_so_long(api, header):
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    headers = {"date": {"Retry-After": until}, "retry-after": {"Retry-After": "0.4"}, "retry-after-ms": {header: "400"}}
    api.faults.append(Fault(429, headers=headers[header]))

    embedder(api).embed_documents(TEXTS)

    assert np.diff(api.times)[0] >= 0.38


def test_429_with_a_very_long_retry_after_ends_the_run_and_says_so(api):
    api.always = Fault(429, headers={"Retry-After": "86400"})

    with pytest.raises(EmbeddingError, match="Retry after 86,400 s"):
        embedder(api).embed_documents(TEXTS)
    assert len(api.requests) == 1


def test_429_for_a_quota_that_is_used_up_is_not_asked_again(api):
    api.always = Fault(429, b'{"error": {"message": "no money", "code": "insufficient_quota", "param": null}}')

    with pytest.raises(EmbeddingError, match="the account's quota is used up"):
        embedder(api).embed_documents(TEXTS)
    assert len(api.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_survived_and_a_lasting_one_names_the_place_the_status_and_what_to_do(api, status):
    api.faults.append(Fault(status))
    model = embedder(api, retries=2)
    assert np.isfinite(model.embed_documents(TEXTS)).all()
    assert len(api.requests) == 2

    api.always = Fault(status)
    with pytest.raises(EmbeddingError, match=rf"embedding API 127.0.0.1:\d+ answered {status}: .*\(3 tries\)"):
        model.embed_documents(TEXTS)
    assert len(api.requests) == 2 + 3


def test_no_answer_in_time_is_asked_again(api):
    api.faults.append(Fault(delay_s=5))
    model = embedder(api, timeout_s=0.3)
    assert np.isfinite(model.embed_documents(TEXTS)).all()

    api.always = Fault(delay_s=5)
    with pytest.raises(EmbeddingError, match=r"did not answer within 0.3 s: see embedding.timeout_s"):
        embedder(api, timeout_s=0.3, retries=1).embed_documents(TEXTS)


@pytest.mark.parametrize("pause_s", [0.05, 1])
def test_an_answer_that_drips_is_not_waited_for(api, pause_s):
    api.always = Fault(drip_s=pause_s)
    started = time.monotonic()

    with pytest.raises(EmbeddingError, match="did not answer in time"):
        embedder(api, timeout_s=0.3, retries=0).embed_documents(TEXTS)
    assert time.monotonic() - started < 3


def test_a_connection_that_is_reset_is_asked_again(api):
    api.faults.extend([Fault(reset=True)] * 2)
    assert np.isfinite(embedder(api).embed_documents(TEXTS)).all()

    api.always = Fault(reset=True)
    with pytest.raises(EmbeddingError, match=r"cannot be reached: check embedding.base_url"):
        embedder(api).embed_documents(TEXTS)


def test_an_unreachable_server_is_reported(api):
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        embedder(api, base_url=unused_url()).embed_documents(TEXTS)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_ends_the_run_at_once_and_is_not_shown(api, status, caplog):
    caplog.set_level(logging.DEBUG)
    api.always = Fault(status, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode())
    model = embedder(api)

    with pytest.raises(EmbeddingError, match=f"answered {status}: it requires a key or rejects this one") as caught:
        model.embed_documents(TEXTS)

    assert len(api.requests) == 1
    assert KEY not in f"{caught.value} {caught.value.__cause__!r} {caplog.text} {model!r} {vars(model)!r}"
    assert caught.value.__suppress_context__


def test_a_refusal_that_repeats_the_key_does_not_show_it(api):
    api.always = Fault(400, json.dumps({"error": {"message": f"bad {KEY}\nline", "param": "model"}}).encode())

    with pytest.raises(EmbeddingError, match="bad … line") as caught:
        embedder(api).embed_documents(TEXTS)
    assert KEY not in str(caught.value)


def test_an_unknown_model_or_path_ends_the_run_at_once(api):
    api.always = Fault(404)

    with pytest.raises(EmbeddingError, match=r"404: model or path not found: check embedding.model and"):
        embedder(api).embed_documents(TEXTS)
    assert len(api.requests) == 1


def test_vectors_of_another_dimension_end_the_run_and_say_what_to_set(api):
    api.always = Fault(change=lambda answer: answer | {"data": [row(at, [1.0] * 5) for at in range(7)]})

    with pytest.raises(EmbeddingError, match=r"vectors of 5 values, not 8: set embedding.dimensions = 5"):
        embedder(api).embed_documents(TEXTS)
    assert len(api.requests) == 1


def row(index: int, embedding: object) -> dict[str, object]:
    return {"index": index, "embedding": embedding}


def cut_short(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode()[:-40]


GARBLED = {
    "truncated JSON": cut_short,
    "nothing": lambda _: b"",
    "a page": lambda _: b"<html>hello</html>",
    "a vector too few": lambda answer: answer | {"data": answer["data"][1:]},
    "a vector twice": lambda answer: answer | {"data": [*answer["data"][1:], answer["data"][1]]},
    "not a number": lambda answer: answer | {"data": [row(at, [float("nan")] * 8) for at in range(7)]},
    "endless numbers": lambda answer: answer | {"data": [row(at, [float("inf")] * 8) for at in range(7)]},
    "no direction": lambda answer: answer | {"data": [row(at, [0.0] * 8) for at in range(7)]},
    "words": lambda answer: answer | {"data": [row(at, ["a"] * 8) for at in range(7)]},
    "no base64": lambda answer: answer | {"data": [row(at, "@@@@") for at in range(7)]},
    "half of a number": lambda answer: answer | {"data": [row(at, "AAAA") for at in range(7)]},
    "deep nesting": lambda _: b"[" * 100_000,
    "no UTF-8": lambda _: b"\xff\xfe" * 50,
    "far too much": lambda _: b" " * (3 << 20),
}


@pytest.mark.parametrize("change", GARBLED.values(), ids=GARBLED)
def test_an_answer_that_cannot_be_used_is_asked_for_again_at_most_twice(api, change):
    api.faults.append(Fault(change=change))
    assert np.allclose(embedder(api).embed_documents(TEXTS), unit(TEXTS), atol=1e-6)

    api.always = Fault(change=change)
    with pytest.raises(EmbeddingError, match=r"the embedding API 127.0.0.1:\d+ answered .*\(3 tries\)"):
        embedder(api, retries=10).embed_documents(TEXTS)
    assert len(api.requests) == 2 + 3


def test_a_bad_text_costs_no_other_one_its_vector(api):
    api.refuse = lambda text: "unsafe input" if text == TEXTS[3] else None
    model = embedder(api)
    model.embed_query("it works")

    with pytest.raises(
        PartialEmbeddingError, match="rejected the text that starts with 'text 3 of the pump': unsafe"
    ) as bad:
        model.embed_documents(TEXTS)

    assert bad.value.go_on
    assert np.isnan(bad.value.vectors[3]).all()
    others = [at for at in range(7) if at != 3]
    assert np.allclose(bad.value.vectors[others], unit([TEXTS[at] for at in others]), atol=1e-6)
    assert api.twice == []


def test_an_api_that_refuses_every_text_is_not_asked_for_each(api):
    api.refuse = lambda _: "the model is not loaded"

    with pytest.raises(PartialEmbeddingError, match="answers 400 to any text: the model is not loaded") as caught:
        embedder(api).embed_documents([f"text {number}" for number in range(100)])

    assert not caught.value.go_on
    assert len(api.requests) == 2


def test_vectors_from_before_a_failure_within_a_call_are_not_lost(api):
    model = embedder(api, batch_size=2, retries=0)
    api.faults.extend([Fault(change=dict), Fault(500)])

    with pytest.raises(PartialEmbeddingError) as caught:
        model.embed_documents(TEXTS)

    assert np.isfinite(caught.value.vectors).all(axis=1).tolist() == [True, True, False, False, False, False, False]
    assert not caught.value.go_on


# Queries.


@pytest.mark.parametrize(
    "fault", [Fault(delay_s=30), Fault(429, headers={"Retry-After": "20"}), Fault(503), Fault(reset=True)]
)
def test_a_search_does_not_wait_long_for_its_query(api, fault):
    api.always = fault
    started = time.monotonic()

    with pytest.raises(EmbeddingError):
        embedder(api, timeout_s=0.5).embed_query("where is the pump")

    assert time.monotonic() - started < 3
    assert len(api.requests) <= 2


FAILURES = {
    "429": ("test_429_is_asked_again_with_longer_and_longer_waits",),
    "429 with `Retry-After`": (
        "test_429_with_retry_after_waits_so_long",
        "test_429_with_a_very_long_retry_after_ends_the_run_and_says_so",
    ),
    "429 for an exhausted quota": ("test_429_for_a_quota_that_is_used_up_is_not_asked_again",),
    "408, 409, 5xx": (
        "test_a_passing_failure_is_survived_and_a_lasting_one_names_the_place_the_status_and_what_to_do",
    ),
    "no answer": (
        "test_no_answer_in_time_is_asked_again",
        "test_an_answer_that_drips_is_not_waited_for",
        "test_a_connection_that_is_reset_is_asked_again",
        "test_an_unreachable_server_is_reported",
    ),
    "401, 403, 404": (
        "test_a_wrong_key_ends_the_run_at_once_and_is_not_shown",
        "test_an_unknown_model_or_path_ends_the_run_at_once",
    ),
    "a redirect": ("test_a_redirect_is_not_followed",),
    "vectors of another dimension": ("test_vectors_of_another_dimension_end_the_run_and_say_what_to_set",),
    "an unusable response": ("test_an_answer_that_cannot_be_used_is_asked_for_again_at_most_twice",),
    "400 for one text": (
        "test_a_bad_text_costs_no_other_one_its_vector",
        "test_one_bad_text_ends_the_run_after_all_others_were_embedded",
    ),
    "400 for a long text": ("test_what_the_api_still_finds_too_long_is_cut_again",),
    "400 for every text": ("test_an_api_that_refuses_every_text_is_not_asked_for_each",),
    "an error in the middle of a run": (
        "test_vectors_from_before_a_failure_are_kept_and_the_next_run_goes_on_from_there",
        "test_what_is_under_way_when_another_request_fails_arrives_and_is_kept",
    ),
}
"""Tests of each row of the page's table."""


def test_every_row_of_the_table_of_failures_has_its_test():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-another-embedding-model.md").read_text("utf-8")
    section = page.partition("## When the API fails")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")][1:]
    here = Path(__file__).parent
    defined = "".join((here / name).read_text() for name in ("test_openai.py", "test_resuming.py"))

    assert rows == [*FAILURES]
    assert [test for tests in FAILURES.values() for test in tests if f"def {test}(" not in defined] == []
