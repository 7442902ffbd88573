"""Tests that every graph query reports unlinked files, with or without results."""

import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from docindex_dagster import DocindexWarning, open_index
from docindex_dagster.core import tables
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import EVERYTHING, Extraction, provisional
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.stores.publish import publish, withdraw
from docindex_dagster.stores.rows import SourceRows
from tests.conftest import MODEL
from tests.serving.http.conftest import serving
from tests.serving.test_mcp import Agent

KEY = "library/lib"
SENTENCE = "linking 1 of 3 files: not all of their calls are in this answer yet"
FILES = {
    "a.py": "def alone():\n    pass\n\n\ndef one():\n    two()\n\n\ndef two():\n    pass\n",
    "b.py": "def other():\n    pass\n",
    "c.md": "# Title\n\nWords.\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("program")
    (root / "lib").mkdir()
    for name, text in FILES.items():
        (root / "lib" / name).write_text(text)
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "lib"\n')
    settings = load_settings(root)
    index(settings, registry.sources(settings)[KEY], StaticEmbedder())
    layout = Layout(settings.home)
    withdraw(layout, KEY)
    chunks, vectors = (tables.read(layout.table(name, KEY)) for name in ("chunks", "embeddings"))
    complete = extraction.read(layout, KEY)
    assert complete is not None
    made = provisional(without("b.py", complete), chunks, EVERYTHING)
    publish(layout, SourceRows(KEY, chunks, vectors, made), MODEL)
    return root


def without(path: str, made: Extraction) -> Extraction:
    """Return an extraction built from another version of a file."""
    assert made.graph is not None
    nodes = made.graph.nodes
    changed = pc.if_else(pc.equal(nodes["node"], path), pa.scalar(None, pa.string()), nodes["made_from"])
    at = nodes.schema.get_field_index("made_from")
    graph = Graph(nodes.set_column(at, nodes.schema.field(at), changed), made.graph.triples)
    return Extraction(graph, made.plan, made.chunks, made.references)


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "docindex_dagster.cli", *arguments]
    return subprocess.run(line, cwd=root, check=False, capture_output=True, text=True)


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("symbol", ["alone", "two"])
def test_the_command_says_it_below_the_answer_and_beside_json(root, symbol):
    shown = command(root, "graph", "callers", symbol).stdout
    assert shown.rstrip().endswith(SENTENCE)
    assert ("one calls" in shown) is (symbol == "two")
    as_json = command(root, "graph", "callers", symbol, "--json")
    assert len(json.loads(as_json.stdout)) == (symbol == "two")
    assert SENTENCE in plain(as_json.stderr)


@pytest.mark.parametrize("arguments", [("stats",), ("cycles",), ("export",)])
def test_what_shows_the_whole_graph_says_it_on_standard_error(root, arguments):
    assert SENTENCE in plain(command(root, "graph", *arguments).stderr)


def test_a_symbol_that_is_not_there_may_be_in_a_file_that_is_not_linked(root):
    ended = command(root, "graph", "callers", "other")
    assert ended.returncode != 0
    assert SENTENCE in plain(ended.stderr)


def test_the_status_says_it_and_calls_no_source_degraded(root):
    assert f"{KEY}: linking 1 of 3 files" in command(root, "status").stdout
    (row,) = json.loads(command(root, "status", "--json").stdout)
    assert (row["unlinked"], row["state"]) == (1, "ok")


def test_the_tools_of_agents_say_it(root):
    questions = [{"question": "callers", "symbol": name} for name in ("alone", "two")] + [{"question": "stats"}]
    answers = [text for _, text in Agent(root).ask(*(("graph", question) for question in questions))]
    assert [SENTENCE[1:] in text for text in answers] == [True] * 3
    ((_, sources),) = Agent(root).ask(("status", {}))
    assert "linking 1 of 3 files" in sources


def test_the_api_over_http_says_it(root):
    with serving(root) as api:
        answers = [api.get("/api/v1/graph/callers", params={"symbol": name}).json() for name in ("alone", "two")]
        (source,) = api.get("/api/v1/status").json()["items"]
    assert [len(answer["items"]) for answer in answers] == [0, 1]
    assert [answer["notes"][-1] for answer in answers] == [SENTENCE] * 2
    assert source["unlinked"] == 1


def test_the_page_says_it(root):
    with serving(root) as api:
        around = api.get(f"/part/relations/{KEY}/a.py", params={"from": 5, "to": 6}).text
    assert SENTENCE[1:] in around


def test_the_api_of_python_warns(root):
    graph = open_index(root).graph
    for ask in (partial(graph.callers, "two"), partial(graph.callers, "alone"), graph.statistics):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            ask()
        assert SENTENCE in [str(one.message) for one in warned if one.category is DocindexWarning]
    with pytest.raises(QueryError, match=SENTENCE):
        graph.callers("other")
