"""Tests that graph queries without results report which files were not searched."""

import subprocess
import sys
from pathlib import Path

import pytest

from docindex_dagster import DocindexWarning, open_index
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.serving.http.conftest import serving
from tests.serving.test_mcp import Agent

SENTENCE = "1 of 3 files was not searched: 1 in languages whose calls are not read"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("program")
    (root / "lib").mkdir()
    (root / "lib" / "a.py").write_text("def alone():\n    pass\n\n\ndef one():\n    two()\n\n\ndef two():\n    pass\n")
    (root / "lib" / "b.pl").write_text("sub go { alone(); }\ngo();\n")
    (root / "lib" / "c.md").write_text("# Title\n\nWords.\n")
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "lib"\n')
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return root


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "docindex_dagster.cli", "graph", *arguments]
    return subprocess.run(line, cwd=root, check=True, capture_output=True, text=True)


def test_the_command_says_it_below_the_answer_and_beside_json(root):
    assert SENTENCE in command(root, "callers", "alone").stdout
    as_json = command(root, "callers", "alone", "--json")
    assert as_json.stdout.strip() == "[]"
    assert SENTENCE in " ".join(as_json.stderr.split())
    assert "not searched" not in command(root, "callers", "two", "--json").stderr


def test_the_tool_of_agents_says_it(root):
    alone, two = (
        text
        for _, text in Agent(root).ask(
            ("graph", {"question": "callers", "symbol": "alone"}), ("graph", {"question": "callers", "symbol": "two"})
        )
    )
    assert SENTENCE in alone
    assert "not searched" not in two


def test_the_api_over_http_says_it(root):
    with serving(root) as api:
        alone, two = (api.get("/api/v1/graph/callers", params={"symbol": name}).json() for name in ("alone", "two"))
    assert alone["items"] == []
    assert [note for note in alone["notes"] if SENTENCE in note]
    assert two["notes"] == []


def test_the_api_of_python_warns(root, recwarn):
    with pytest.warns(DocindexWarning, match=SENTENCE):
        assert open_index(root).graph.callers("alone") == []
    assert len(open_index(root).graph.callers("two")) == 1
    assert not [one for one in recwarn if issubclass(one.category, DocindexWarning)]
