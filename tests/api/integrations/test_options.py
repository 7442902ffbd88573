"""Retrievers accept the options of a search, return the location of each hit, and name the extra they require."""

import importlib
import inspect
import sys

import pytest

from docindex_dagster import open_index
from docindex_dagster.api import Index
from docindex_dagster.integrations import Options, metadata_of

FRAMEWORKS = {"dspy": "dspy", "langchain": "langchain_core", "llama_index": "llama_index"}


def test_the_options_are_those_of_a_search():
    parameters = inspect.signature(Index.search).parameters.keys() - {"self", "query"}

    assert Options.__annotations__.keys() == parameters


def test_a_hit_in_code_is_named_by_path_lines_and_symbol(root):
    (hit,) = open_index(root).search("start_station", mode="bm25", symbol_kinds="function", top_k=1)
    named = metadata_of(hit)

    assert named["source"] == "git/station"
    assert named["path"] == "src/station.py"
    assert named["file"] == str(root / "station" / "src" / "station.py")
    assert (named["start_line"], named["end_line"]) == (hit.start_line, hit.end_line)
    assert named["symbol"] == "start_station"
    assert named["score"] == hit.score > 0
    assert named["stale"] is False
    assert "commit" not in named
    assert "page" not in named


def test_a_hit_in_a_commit_is_named_by_its_id(root):
    (hit,) = open_index(root).search("Add the pump", source_types="commit")
    named = metadata_of(hit)

    assert named["commit"] == hit.path.rpartition("/")[2]
    assert len(str(named["commit"])) == 40
    assert "symbol" not in named
    assert None not in named.values()


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_without_the_framework_a_retriever_says_what_to_install(module, monkeypatch):
    name = f"docindex_dagster.integrations.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [each for each in sys.modules if each.partition(".")[0] == FRAMEWORKS[module]]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, FRAMEWORKS[module], None)

    with pytest.raises(ImportError, match=rf"needs an extra: pip install .*\[{module.replace('_', '-')}\]"):
        importlib.import_module(name)
