"""Tests that API responses equal the commands' `--json` output, and that all pages of a list show one generation."""

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.generation import read_generation
from tests.serving.http.conftest import command, serving

NOTES = 30


def items(api: TestClient, address: str, /, **parameters: Any) -> Any:
    answer = api.get(f"/api/v1/{address}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def pages(api: TestClient, address: str, /, **parameters: Any) -> list[list[Any]]:
    """Return all pages of a list."""
    found, cursor = [], None
    while True:
        given = parameters | ({"cursor": cursor} if cursor else {})
        page = api.get(f"/api/v1/{address}", params=given).json()
        found.append(page["items"])
        cursor = page["next"]
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"query": "how is a pump started", "limit": 5}, ["--top-k", "5"]),
        ({"query": "pump", "mode": "bm25", "limit": 3, "sources": "shop"}, ["--mode", "bm25", "-k", "3", "-s", "shop"]),
        ({"query": "pump", "mode": "graph", "types": ["code"]}, ["--mode", "graph", "--type", "code"]),
        ({"query": "valve", "granularity": "file", "path": "old"}, ["--granularity", "file", "--path", "old"]),
        ({"query": "litres", "kinds": "function"}, ["--kind", "function"]),
    ],
)
def test_a_search_finds_what_the_command_does(api, indexed, parameters, arguments):
    expected = command(indexed, "search", parameters["query"], *arguments)
    assert expected
    assert items(api, "search", **parameters) == expected
    posted = api.post("/api/v1/search", json=_as_body(parameters)).json()
    assert posted["items"] == expected
    assert posted["generation"] == generation(indexed)


def _as_body(parameters: dict[str, Any]) -> dict[str, Any]:
    lists = {"sources", "types", "kinds", "languages"}
    return {name: [value] if name in lists and isinstance(value, str) else value for name, value in parameters.items()}


def generation(root: Path) -> int:
    found = read_generation(Layout(root / ".docindex"))
    assert found is not None
    return found.number


def test_what_resembles_a_place_is_what_the_command_finds(api, indexed):
    place = "git/shop::tank.py::0"
    assert items(api, "similar", place=place, limit=4) == command(indexed, "similar", place, "--top-k", "4")


def test_a_context_is_what_the_command_packs(api, indexed):
    packed = api.get("/api/v1/context", params={"query": "start a pump", "tokens": 500}).json()
    expected = command(indexed, "search", "start a pump", "--context", "500")
    assert expected.items() <= packed.items()
    assert "open the valve first" in packed["markdown"]
    assert api.post("/api/v1/context", json={"query": "start a pump", "tokens": 500}).json() == packed


def test_the_history_is_what_the_command_lists(api, indexed):
    latest = items(api, "log")
    assert latest == command(indexed, "log")
    assert [row["subject"] for row in latest] == ["Say what the shop sells", "Add the tank"]
    since = latest[0]["committed_at"]
    assert datetime.fromisoformat(since)
    assert items(api, "log", query="tank", author="ada") == command(indexed, "log", "tank", "--author", "ada")
    assert items(api, "log", path="*.py") == latest[1:]


@pytest.mark.parametrize(
    ("question", "arguments", "parameters"),
    [
        ("callers", ["check"], {"symbol": "check"}),
        ("callees", ["Tank.fill"], {"symbol": "Tank.fill"}),
        ("impact", ["check"], {"symbol": "check"}),
        ("neighbors", ["pump"], {"symbol": "pump"}),
        ("path", ["Tank.fill", "check"], {"symbol": "Tank.fill", "to": "check"}),
    ],
)
def test_the_graph_answers_as_the_command_does(api, indexed, question, arguments, parameters):
    expected = command(indexed, "graph", question, *arguments)
    assert expected
    assert items(api, f"graph/{question}", **parameters) == expected


def test_the_figures_of_the_graph_are_those_of_the_command(api, indexed):
    assert api.get("/api/v1/graph/stats").json() == command(indexed, "graph", "stats")


def test_the_sources_and_how_they_stand_are_what_the_commands_list(api, indexed):
    assert items(api, "sources") == command(indexed, "source", "list")
    status = items(api, "status")
    assert status == command(indexed, "status", "--check")
    assert [row["source"] for row in status] == ["git/shop", "library/manual"]


def test_one_source_and_its_figures(api):
    (manual, shop) = items(api, "sources")
    assert api.get("/api/v1/sources/git/shop").json() == shop
    figures = api.get("/api/v1/sources/library/manual/stats").json()
    assert (figures["source"], figures["files"]) == (manual["source"], NOTES + 1)


def test_why_a_file_is_not_found_is_what_the_command_says(api, indexed):
    asked = {"source": "library/manual", "path": "yarn.lock"}
    answer = api.get("/api/v1/why", params=asked).json()
    assert answer == command(indexed, "why", "manual/yarn.lock")
    assert "always-skipped" in str(answer)


def test_every_place_of_an_exact_text_is_listed_in_order(api):
    found = api.get("/api/v1/matches", params={"query": "valve"}).json()
    assert found["total"] == len(found["items"]) == NOTES + 2
    assert found["files"] == NOTES + 1
    places = [(match["path"], match["line"]) for match in found["items"]]
    assert places == sorted(places)


def test_a_file_is_read_whole_and_its_lines_are_marked(api, indexed):
    read = api.get("/api/v1/files/git/shop/tank.py", params={"from": 9, "to": 11}).json()
    text = "".join(piece["text"] for piece in read["file"]["pieces"])
    assert text == (indexed / "shop" / "tank.py").read_text()
    assert (read["start"], read["end"], read["file"]["stale"]) == (9, 11, False)
    assert [one["name"] for one in read["file"]["definitions"]] == ["Tank", "Tank.fill", "pump", "check"]
    assert read["generation"] == generation(indexed)


def test_the_server_says_what_it_serves(api, indexed):
    health = api.get("/api/v1/health").json()
    assert (health["status"], health["generation"], health["sources"]) == ("ok", generation(indexed), 2)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("search", {"query": "valve"}),
        ("search", {"query": "valve", "granularity": "file"}),
        ("similar", {"place": "library/manual::old/note01.md::0"}),
        ("matches", {"query": "valve"}),
        ("log", {}),
        ("sources", {}),
        ("status", {}),
        ("graph/impact", {"symbol": "check"}),
    ],
)
@pytest.mark.parametrize("limit", [1, 7])
def test_the_pages_of_a_list_hold_each_item_once_and_in_order(api, path, parameters, limit):
    whole = items(api, path, **parameters, limit=200)
    cut = pages(api, path, **parameters, limit=limit)

    assert [item for page in cut for item in page] == whole
    assert len(cut) == max(1, -(-len(whole) // limit))
    assert all(len(page) == limit for page, _ in pairwise(cut))


def test_a_page_of_another_size_goes_on_at_the_same_place(api):
    first = api.get("/api/v1/search", params={"query": "valve", "limit": 3}).json()
    rest = items(api, "search", query="valve", limit=200, cursor=first["next"])
    assert first["items"] + rest == items(api, "search", query="valve", limit=200)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("search", {"query": "valves"}),
        ("search", {"query": "valve", "mode": "bm25"}),
        ("search", {"query": "valve", "sources": "manual"}),
        ("matches", {"query": "valve"}),
        ("log", {"query": "valve"}),
        ("sources", {}),
        ("status", {}),
        ("jobs", {}),
        ("graph/callers", {"symbol": "valve"}),
    ],
)
def test_the_cursor_of_another_request_is_refused(api, path, parameters):
    cursor = api.get("/api/v1/search", params={"query": "valve", "limit": 1}).json()["next"]
    answer = api.get(f"/api/v1/{path}", params={**parameters, "cursor": cursor})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-request")
    assert "cursor" in answer.json()["detail"]


@pytest.mark.parametrize("cursor", ["", "x", "W10", "bnVsbA", "e30", "ÿ", "WzEsMl0", "\0", "A" * 201, "%%%"])
def test_what_is_no_cursor_is_refused(api, cursor):
    answer = api.get("/api/v1/sources", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-request")


def test_each_question_meets_the_settings_and_the_files_as_they_are_then(root):
    with serving(root) as api:
        assert len(items(api, "sources")) == 2
        settings = (root / "docindex.toml").read_text()
        (root / "docindex.toml").write_text(settings[: settings.index("[[source]]", 5)])
        (root / "manual" / "pumps.md").write_text("# Pumps\n\nAnother text.\n")

        assert [row["source"] for row in items(api, "sources")] == ["library/manual"]
        assert api.get("/api/v1/files/library/manual/pumps.md").json()["file"]["stale"] is True
        (root / "docindex.toml").write_text("nonsense")
        answer = api.get("/api/v1/sources")
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/settings")


@pytest.mark.parametrize("address", ["similar?place=", "graph/neighbors?symbol="])
def test_a_path_on_the_disk_of_the_server_is_not_looked_up(api, indexed, address):
    assert command(indexed, "similar", str(indexed / "shop" / "tank.py"), "--same-file", "-k", "1")
    answer = api.get(f"/api/v1/{address}{indexed}/shop/tank.py")
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/query")


@pytest.mark.parametrize("request_", [{"granularity": "file"}, {"rerank": "mmr"}, {"tokens": 5}])
def test_matches_refuse_what_ranks_results(api, request_):
    assert api.get("/api/v1/matches", params={"query": "pump", **request_}).status_code == 422
