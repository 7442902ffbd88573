"""Tests that errors are problem details of the right type, and that every type is documented."""

from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import pytest

from docindex_dagster.serving.http.problems import KINDS, MEDIA_TYPE
from tests.serving.http.conftest import serving

ROOT = Path(__file__).parents[3]
MEANT: dict[str, list[tuple[str, str, bytes | None]]] = {
    "invalid-request": [
        ("GET", "/api/v1/search", None),
        ("GET", "/api/v1/search?query=x&limit=0", None),
        ("GET", "/api/v1/search?query=x&limit=201", None),
        ("GET", "/api/v1/search?query=x&nonsense=1", None),
        ("GET", "/api/v1/search?query=" + "x" * 20_001, None),
        ("GET", "/api/v1/log?since=yesterday", None),
        ("GET", "/api/v1/log?since=0", None),
        ("GET", "/api/v1/graph/everything?symbol=x", None),
        ("GET", "/api/v1/files/git/shop/tank.py?from=999", None),
        ("GET", "/api/v1/files/git/shop/tank.py?from=5&to=2", None),
        ("POST", "/api/v1/search", b"{"),
        ("POST", "/api/v1/search", b'{"query": "x", "\\ud800": 1}'),
        ("POST", "/api/v1/search", b'{"query": "x", "limit": "ten"}'),
        ("POST", "/api/v1/search", b"query=x"),
        ("POST", "/api/v1/sources", b'{"place": ""}'),
        ("POST", "/api/v1/sources/git/shop/index", b'{"paths": [' + b'"a", ' * 1000 + b'"a"]}'),
    ],
    "http": [
        ("POST", "/api/v1/search", b"\xff"),
        ("POST", "/api/v1/search", b"[" * 100_000),
        ("POST", "/api/v1/search", b'{"query": "x", "limit": ' + b"1" * 5000 + b"}"),
    ],
    "query": [
        ("GET", "/api/v1/search?query=%20", None),
        ("GET", "/api/v1/search?query=x(&mode=regex", None),
        ("GET", "/api/v1/search?query=x&languages=klingon", None),
        ("GET", "/api/v1/search?query=x&rerank=nonsense", None),
        ("GET", "/api/v1/context?query=x&rerank=nonsense", None),
        ("GET", "/api/v1/similar?place=nowhere", None),
        ("GET", "/api/v1/graph/callers?symbol=nothing", None),
        ("GET", "/api/v1/matches?query=(&mode=regex", None),
    ],
    "unknown-source": [
        ("GET", "/api/v1/sources/git/nowhere", None),
        ("GET", "/api/v1/sources/git/nowhere/stats", None),
        ("PUT", "/api/v1/sources/git/nowhere/default", None),
        ("POST", "/api/v1/sources/git/nowhere/index", None),
        ("DELETE", "/api/v1/sources/git/nowhere", None),
        ("GET", "/api/v1/files/git/nowhere/tank.py", None),
        ("GET", "/api/v1/why?source=git/nowhere&path=tank.py", None),
    ],
    "unknown-file": [
        ("GET", "/api/v1/files/git/shop/nowhere.py", None),
        ("GET", "/api/v1/why?source=git/shop&path=../docindex.toml", None),
        ("GET", "/api/v1/why?source=git/shop&path=/etc/passwd", None),
        ("GET", "/api/v1/why?source=git/shop&path=%00", None),
        ("GET", "/api/v1/why?source=git/shop&path=.", None),
    ],
    "unknown-job": [
        ("GET", "/api/v1/jobs/nothing", None),
        ("GET", "/api/v1/jobs/nothing/events", None),
    ],
    "not-found": [
        ("GET", "/api/v1", None),
        ("GET", "/api/v1/nothing", None),
        ("GET", "/docs", None),
        ("GET", "/redoc", None),
        ("GET", "/api/v1/jobs/..%2f..%2fx", None),
        ("GET", "/API/V1/health", None),
    ],
    "method": [("DELETE", "/api/v1/search", None), ("PATCH", "/api/v1/sources", b"{}"), ("POST", "/openapi.json", b"")],
    "exists": [("POST", "/api/v1/sources", b'{"place": "manual"}')],
    "source": [
        ("GET", "/api/v1/search?query=x&sources=nowhere", None),
        ("POST", "/api/v1/sources", b'{"place": "nowhere"}'),
        ("POST", "/api/v1/sources", b'{"place": "manual/pumps.md"}'),
        ("POST", "/api/v1/sources", b'{"place": "\\u0000"}'),
        ("POST", "/api/v1/sources", b'{"place": "' + b"x" * 900 + b'"}'),
        ("POST", "/api/v1/sources", b'{"place": "all/*/"}'),
        ("POST", "/api/v1/sources", b'{"place": "ext::sh -c id"}'),
        ("POST", "/api/v1/sources", b'{"place": "https://user:secret@example.com/x.git"}'),
        ("POST", "/api/v1/sources", b'{"place": "manual", "kind": "git", "name": "other"}'),
    ],
    "jobs-off": [
        ("DELETE", "/api/v1/jobs/nothing", None),
        ("POST", "/api/v1/sources/git/shop/index", None),
        ("DELETE", "/api/v1/sources/git/shop", None),
    ],
    "memory-off": [
        ("GET", "/api/v1/memory/status", None),
        ("GET", "/api/v1/memory/export", None),
        ("POST", "/api/v1/memory/messages", b'{"text": "x", "session": "s"}'),
        ("POST", "/api/v1/memory/recall", b'{"query": "x"}'),
        ("POST", "/api/v1/memory/forget", b'{"session": "s"}'),
        ("POST", "/api/v1/memory/fold", b""),
        ("POST", "/api/v1/memory/erase", b""),
    ],
    "too-large": [("POST", "/api/v1/search", b" " * ((1 << 20) + 1))],
    "too-long": [("GET", "/api/v1/search?query=" + "%20" * 15_000, None)],
    "host": [("GET", "//evil.example.com/api/v1/health", None)],
}
CASES = [(name, *case) for name, cases in MEANT.items() for case in cases]


@pytest.fixture(scope="module")
def changeable(indexed, tmp_path_factory):
    import shutil

    root = Path(shutil.copytree(indexed, tmp_path_factory.mktemp("problems") / "project", symlinks=True))
    with serving(root) as client:
        yield client


@pytest.mark.parametrize(("name", "method", "address", "body"), CASES, ids=lambda value: str(value)[:50])
def test_each_mistake_is_answered_by_a_problem_of_its_kind(changeable, name, method, address, body):
    headers = {} if body is None else {"Content-Type": "application/json"}
    if address.startswith("//"):
        headers["Host"], address = "evil.example.com", "/api/v1/health"
    answer = changeable.request(method, address, content=body, headers=headers)
    problem = answer.json()

    assert (answer.headers["Content-Type"], problem["type"]) == (MEDIA_TYPE, f"/problems/{name}")
    assert answer.status_code == problem["status"] == KINDS[name].status
    assert problem["title"] == KINDS[name].title
    assert problem["detail"].isprintable()
    assert len(answer.content) < 10_000
    assert "secret" not in answer.text


def test_a_problem_of_a_request_names_each_part_that_is_wrong(api):
    problem = api.get("/api/v1/search?limit=0").json()
    assert {mistake["place"] for mistake in problem["errors"]} == {"query.query", "query.limit"}


def test_a_source_is_declared_then_indexed(root):
    with serving(root) as api:
        new = api.post("/api/v1/sources", json={"place": "manual/old", "name": "notes"})
        again = api.post("/api/v1/sources", json={"place": "manual/old"})
        assert new.status_code == 201, new.text
        place = new.headers["Location"]
        figures = api.get(f"{place}/stats")
        chosen = api.put(f"{place}/default")
        removed = api.delete(f"{place}/default")

    assert (new.status_code, place) == (201, "/api/v1/sources/library/notes")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/exists")
    assert (figures.status_code, figures.json()["type"]) == (404, "/problems/not-indexed")
    assert (chosen.status_code, chosen.json()["default"]) == (200, True)
    assert (removed.status_code, removed.content) == (204, b"")


def test_a_method_that_is_not_taken_names_those_that_are(api):
    assert api.delete("/api/v1/search").headers["Allow"] == "GET, HEAD, POST"
    assert api.post("/api/v1/jobs/x").headers["Allow"] == "GET, HEAD, DELETE"
    asked = api.options("/api/v1/sources")
    assert (asked.status_code, asked.headers["Allow"], asked.content) == (204, "GET, HEAD, POST", b"")
    assert api.options("/nothing").status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/search?query=pump", "/openapi.json", "/api/v1/nothing"])
def test_head_says_what_get_would(api, path):
    head, get = api.head(path), api.get(path)
    assert (head.status_code, head.headers["Content-Type"], head.content) == (
        get.status_code,
        get.headers["Content-Type"],
        b"",
    )


@pytest.mark.parametrize(
    "place",
    [
        "library/manual/../shop/tank.py",
        "library/manual/..%2fshop%2ftank.py",
        "library/manual/%2e%2e/%2e%2e/etc/passwd",
        "library/manual//etc/passwd",
        "library/manual/%2fetc%2fpasswd",
        "library/manual/pumps.md%00",
        "library/manual/pumps.md/",
        "library/manual/yarn.lock",  # on disk, but not indexed
        "library/manual/%252e%252e/docindex.toml",
        "library/manual/*",
        "git/shop/.git/config",
        "git/shop/" + quote("é" * 300),
        "library/",
        "",
    ],
)
def test_a_file_is_read_from_the_index_alone(api, place):
    answer = api.get(f"/api/v1/files/{place}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, MEDIA_TYPE)
    assert "root:" not in answer.text


def test_each_kind_is_explained_at_the_address_of_its_type(indexed):
    with serving(indexed, has_page=False) as api:
        for kind in KINDS.values():
            assert api.get(kind.type).json() == asdict(kind)
        assert api.get("/problems/nothing").json()["type"] == "/problems/not-found"
