"""Queries and keys go only to the endpoint that embedded the index, whatever the settings say now.

A second server stands in for OpenAI's own endpoint.
"""

from pathlib import Path

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import EmbeddingSettings, Settings, load_settings
from docindex_dagster.embedding.openai import OpenAIEmbedder
from docindex_dagster.embedding.providers import embedder_named, load_embedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry
from docindex_dagster.stores.doctor import roll_back
from docindex_dagster.stores.reader import open_reader
from tests.embedding.openai_server import KEY, serving


@pytest.fixture
def project(api, tmp_path, monkeypatch):
    """Index two libraries with the API, then remove it from the settings. The key stays in the environment."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Page {name}\n\nOpen the pump.\n")
    _configure(tmp_path, f'[embedding]\nprovider = "openai"\nbase_url = "{api.url}"\nmodel = "m"\ndimensions = 8\n')
    monkeypatch.setenv("DOCINDEX_EMBEDDING__API_KEY", KEY)
    _index(load_settings(tmp_path), "one", "two")
    _configure(tmp_path, "")
    return tmp_path


def _configure(folder: Path, embedding: str) -> None:
    sources = "".join(f'[[source]]\nkind = "library"\npath = "{name}"\n' for name in ("one", "two"))
    (folder / "docindex.toml").write_text(embedding + sources)


def _index(settings: Settings, *names: str) -> None:
    for name in names:
        index(settings, registry.find(settings, name), load_embedder(settings.embedding))


def _ask(settings: Settings, mode: Mode = Mode.HYBRID) -> tuple[list[Hit], str]:
    warnings: list[str] = []
    hits = hits_of(settings, open_reader(Layout(settings.home)), Request("open the pump", mode), warnings.append)
    return hits, "".join(warnings)


@pytest.mark.parametrize("when", ["before the first run", "while the takeover waits", "after a rollback"])
def test_no_query_and_no_key_goes_where_the_texts_did_not_go(project, api, when, monkeypatch):
    settings = load_settings(project)
    if when != "before the first run":
        _index(settings, "one")
    if when == "after a rollback":
        _index(settings, "two")
        roll_back(Layout(settings.home))
    sent = len(api.requests)
    with serving() as openai:
        monkeypatch.setenv("OPENAI_BASE_URL", openai.url)
        hits, warning = _ask(settings)

        assert {hit.path for hit in hits} == {"page.md"}
        assert "results use word search only" in warning
        with pytest.raises(QueryError, match="or search by words"):
            _ask(settings, Mode.VECTOR)
        assert (len(openai.requests), len(api.requests)) == (0, sent)


def test_an_endpoint_that_is_named_anew_is_used_once_the_index_was_brought_up_to_date(project, api):
    with serving() as other:
        section = f'[embedding]\nprovider = "openai"\nbase_url = "{other.url}"\nmodel = "m"\ndimensions = 8\n'
        _configure(project, section)
        settings = load_settings(project)

        assert f"vectors of openai/m/8 from {api.url}, but the settings name {other.url}" in _ask(settings)[1]
        assert other.requests == []

        assert not is_current(settings, registry.find(settings, "one"))
        _index(settings, "one")
        assert _ask(settings, Mode.VECTOR)[1] == ""
        assert other.texts() == 1  # only the query: no text is embedded twice


def test_a_key_goes_to_no_provider_but_that_of_the_settings(api):
    with_key = EmbeddingSettings(provider="static", base_url=api.url, api_key=KEY)

    embedder_named("openai/m/8", with_key).embed_query("a")

    assert api.keys == ["Bearer none"]


@pytest.mark.parametrize("given", ["http://me:secret@host:81/v1/?key=secret#part", "http://host:81/v1"])
def test_an_endpoint_is_named_without_credentials(given, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", given)

    assert OpenAIEmbedder(EmbeddingSettings()).endpoint == "http://host:81/v1"
