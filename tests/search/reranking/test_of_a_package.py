"""Rerankers from other packages: the example from the documentation, selected by name."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.model import Granularity, Hit, Mode
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader
from tests import offering

REQUEST = Request("cold water", Mode.BM25, Granularity.CHUNK, 5, rerank="phrase")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Index a library of two pages, the second of which contains the words as a phrase."""
    root: Path = tmp_path_factory.mktemp("project")
    (root / "docs").mkdir()
    (root / "docs" / "a.md").write_text("# Cold\n\nWater is cold: cold, cold water of the water works, and cold.\n")
    (root / "docs" / "b.md").write_text("# Pumps\n\nAll of the pumps of the house move what it needs: Cold  water.\n")
    (root / "docs" / "c.md").write_text("# Winter\n\nWater and wine, both of them are cold.\n")
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    found = load_settings(root)
    index(found, registry.find(found, "library/docs"), StaticEmbedder())
    return found


@pytest.fixture
def phrase(tmp_path, monkeypatch, request) -> Iterator[None]:
    offering.install(tmp_path, "A reranker", monkeypatch, edit=getattr(request, "param", ("", "")))
    yield
    monkeypatch.undo()
    sys.modules.pop("docindex_phrase", None)
    offering.forget()


def hits(settings: Settings, warnings: list[str]) -> list[Hit]:
    return hits_of(settings, open_reader(Layout(settings.home)), REQUEST, warnings.append)


def test_the_example_of_the_documentation_moves_phrases_up(settings, phrase):
    warnings: list[str] = []

    found = {hit.path: {signal.name for signal in hit.signals} for hit in hits(settings, warnings)}

    assert "phrase" in found["a.md"]
    assert warnings == []


def test_without_the_package_the_name_is_unknown(settings):
    with pytest.raises(SettingsError, match="'phrase' not found; must be one of 'none', 'mmr', 'cross-encoder'"):
        hits(settings, [])


@pytest.mark.parametrize(
    ("phrase", "problem"),
    [
        (("opinions = [", "1 / 0; opinions = ["), "ZeroDivisionError: division by zero"),
        (('return blend("phrase", passages', 'return blend("phrase", passages[1:]'), ""),
        (("return Phrase(settings.candidates, settings.weight)", "raise OSError('no model')"), "OSError: no model"),
        (("from dataclasses import dataclass", "from dataclasses import dataklass"), "cannot import name 'dataklass'"),
    ],
    indirect=["phrase"],
)
def test_one_that_fails_costs_a_warning(settings, phrase, problem):
    warnings: list[str] = []

    found = hits(settings, warnings)

    assert [hit.path for hit in found] == [hit.path for hit in without(settings)]
    assert len(warnings) == 1
    assert warnings[0].startswith("the results are not reranked: ")
    assert problem in warnings[0]


def without(settings: Settings) -> list[Hit]:
    return hits_of(settings, open_reader(Layout(settings.home)), replace(REQUEST, rerank="none"))
