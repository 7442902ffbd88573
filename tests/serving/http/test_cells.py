"""A server that searches the cells of an index, each of which has a server of its own."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.objects.cells import cell_of
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.serving.http.server import Server, running

pytestmark = pytest.mark.slow  # four servers

TOKEN = "a-long-secret-of-all-servers-of-the-deployment"
TEXTS = {
    "pumps": "# Pumps\n\nA pump is started when its valve is open and it was primed with water.\n",
    "wells": "# Wells\n\nA well gives water to the pump; its depth is measured by a float.\n",
    "fields": "# Fields\n\nA dry field of wheat is watered at night, by the pump.\n",
    "gears": "# Gears\n\nA gear is engaged by the clutch, and slips when it is worn.\n",
}
QUERIES = ("start the pump", "how deep is the well", "water a field", "worn clutch", "wheat", "float and valve")


@dataclass(frozen=True)
class Deployment:
    root: Path
    front: Server
    cells: Sequence[Server]
    whole: Server

    def get(self, server: Server, path: str, **parameters: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.get(f"{server.url}/api/v1{path}", params=parameters, headers=headers, timeout=60)

    def search(self, server: Server, query: str, **parameters: Any) -> Mapping[str, Any]:
        answer = self.get(server, "/search", query=query, **parameters)
        assert answer.status_code == 200, answer.text
        found: Mapping[str, Any] = answer.json()
        return found


def declared(root: Path, files: Path, names: Sequence[str], more: str = "") -> Path:
    root.mkdir()
    sources = "".join(f'[[source]]\nkind = "library"\npath = "{files / name}"\n' for name in names)
    (root / CONFIG_NAME).write_text(sources + more)
    return root


def index_all(root: Path) -> None:
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())


def start(stack: ExitStack, root: Path) -> Server:
    options = ("--no-jobs", "--no-ui")
    return stack.enter_context(running(root, *options, environment={"DOCINDEX_SERVE__TOKEN": TOKEN}))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    root = tmp_path_factory.mktemp("deployment")
    files = root / "files"
    for name, text in TEXTS.items():
        (files / name).mkdir(parents=True)
        (files / name / "page.md").write_text(text)
    held = [[name for name in TEXTS if cell_of(f"library/{name}", 2) == cell] for cell in (0, 1)]
    assert all(held)
    with ExitStack() as stack:
        parts = [declared(root / f"cell{cell}", files, names) for cell, names in enumerate(held)]
        for part in (*parts, declared(root / "whole", files, [*TEXTS])):
            index_all(part)
        cells = [start(stack, part) for part in parts]
        urls = ", ".join(f'"{server.url}"' for server in cells)
        front = start(stack, declared(root / "front", files, [*TEXTS], f"[serve]\ncells = [{urls}]\n"))
        yield Deployment(root, front, cells, start(stack, root / "whole"))


@pytest.mark.parametrize("mode", ["hybrid", "bm25", "vector"])
def test_the_front_answers_as_a_server_of_the_whole_index(deployment: Deployment, mode: str) -> None:
    for query in QUERIES:
        parts, whole = (deployment.search(server, query, mode=mode) for server in (deployment.front, deployment.whole))

        assert [hit["chunk_id"] for hit in parts["items"]] == [hit["chunk_id"] for hit in whole["items"]]
        assert parts["warnings"] == whole["warnings"]


def test_contexts_matches_and_places_come_from_all_cells(deployment: Deployment) -> None:
    for path, parameters in (
        ("/matches", {"query": "pump"}),
        ("/context", {"query": "start the pump"}),
        ("/similar", {"place": "library/wells::page.md::0"}),
    ):
        parts, whole = (
            deployment.get(server, path, **parameters).json() for server in (deployment.front, deployment.whole)
        )
        ignored = {"generation", "items", "passages"}
        assert {name: parts[name] for name in parts.keys() - ignored} == {
            name: whole[name] for name in whole.keys() - ignored
        }
        places = [
            [(one["source"], one["path"]) for one in answer.get("items", answer.get("passages"))]
            for answer in (parts, whole)
        ]
        assert places[0] == places[1] != []


def test_what_needs_the_stores_of_a_cell_says_who_answers_it(deployment: Deployment) -> None:
    answer = deployment.get(deployment.front, "/graph/stats")

    assert answer.status_code == 503
    assert deployment.cells[0].url in answer.json()["detail"]


def test_cells_answer_those_alone_who_have_the_token(deployment: Deployment) -> None:
    for url in (f"{deployment.cells[0].url}/api/v1/cell", f"{deployment.cells[0].url}/api/v1/cell/AskLengths"):
        assert httpx.get(url).status_code == 401
        assert httpx.post(url, json={}).status_code == 401


def test_a_question_of_an_earlier_generation_is_refused(deployment: Deployment) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Docindex-Generation": "999"}
    url = f"{deployment.cells[0].url}/api/v1/cell/"

    assert httpx.post(f"{url}AskLengths", content=b"{}", headers=headers).status_code == 409
    for name, content in (("AskNothing", b"{}"), ("AskRows", b"{}"), ("AskRows", b"no JSON")):
        refused = httpx.post(url + name, content=content, headers=headers)
        assert (refused.status_code, "no question" in refused.json()["detail"]) == (422, True)


def test_a_search_sees_what_a_cell_has_published_meanwhile(deployment: Deployment) -> None:
    page = deployment.root / "files" / "gears" / "page.md"
    before = deployment.search(deployment.front, "zyzzyva")
    page.write_text(TEXTS["gears"] + "\nThe zyzzyva lives in no gear.\n")
    index_all(deployment.root / f"cell{cell_of('library/gears', 2)}")

    after = deployment.search(deployment.front, "zyzzyva", mode="bm25")

    assert [hit["source"] for hit in after["items"]] == ["library/gears"]
    assert after["generation"] > before["generation"]


def test_what_a_cell_that_is_down_holds_is_named(deployment: Deployment) -> None:
    """It is the last test, and ends the server of a cell."""
    down = deployment.cells[1]
    lost = [name for name in TEXTS if cell_of(f"library/{name}", 2) == 1]
    there = [name for name in TEXTS if cell_of(f"library/{name}", 2) == 0]
    os.kill(down.process.pid, signal.SIGKILL)
    down.process.wait()

    answer = deployment.search(deployment.front, "start the pump")

    assert {hit["source"] for hit in answer["items"]} == {f"library/{name}" for name in there}
    (warning,) = [warning for warning in answer["warnings"] if down.url in warning]
    assert all(f"library/{name}" in warning for name in lost)

    of_lost = deployment.search(deployment.front, "pump", sources=[f"library/{lost[0]}"])
    assert of_lost["items"] == []
    assert down.url in of_lost["warnings"][0]
    # No error says that there is no such file: nobody knows.
    narrowed = deployment.search(deployment.front, "pump", sources=[f"library/{lost[0]}"], types=["doc"])
    assert down.url in narrowed["warnings"][0]

    of_others = deployment.search(deployment.front, "pump", sources=[f"library/{there[0]}"])
    assert not any(down.url in warning for warning in of_others["warnings"])

    with ExitStack() as stack:
        anew = start(stack, deployment.root / "front")  # it knows by the hash alone what the cell holds
        answer = deployment.search(anew, "start the pump")
        assert all(f"library/{name}" in str(answer["warnings"]) for name in lost)
