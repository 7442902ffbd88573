"""A change of the embedding model from the user's perspective: runs, searches and status messages."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import shared_embedder
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline import chunking, publication
from docindex_dagster.pipeline.publication import golden_query
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.log import log
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.service import Request, context_of, hits_of
from docindex_dagster.serving.tools import Tools
from docindex_dagster.sources import registry
from docindex_dagster.status import overview, source_status
from docindex_dagster.status.catalog import entries
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import read_generation, read_next
from docindex_dagster.stores.publish import Publication
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.takeover import Takeover
from tests.models import TinyEmbedder, offer

TEXTS = {"alpha": "Alpha reads a file.", "beta": "Beta sorts numbers.", "gamma": "Gamma opens a socket."}
KEYS = tuple(f"library/{name}" for name in TEXTS)
HALF_WAY = f"the index is migrating from {StaticEmbedder.name} to tiny: 1 of 3 sources are done"


def run(settings: Settings, key: str, model: Embedder) -> Publication:
    return index(settings, registry.find(settings, key), model)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("indexed")
    tables = []
    for name, text in TEXTS.items():
        (folder / name).mkdir()
        (folder / name / "page.md").write_text(f"# {name}\n\n{text}\n")
        tables.append(f'[[source]]\nkind = "library"\npath = "{name}"\n')
    (folder / "docindex.toml").write_text("\n".join(tables))
    made = load_settings(folder)
    for key in KEYS:
        run(made, key, StaticEmbedder())
    return folder


@pytest.fixture
def settings(indexed_once, tmp_path) -> Settings:
    """Return a project of three libraries, indexed with the default model."""
    shutil.copytree(indexed_once, tmp_path, dirs_exist_ok=True)
    return load_settings(tmp_path)


@pytest.fixture
def layout(settings) -> Layout:
    return Layout(settings.home)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyEmbedder]:
    """Configure a new model."""
    model = TinyEmbedder()
    offer(monkeypatch, model)
    shared_embedder.cache_clear()
    yield model
    shared_embedder.cache_clear()


@pytest.fixture
def half(settings: Settings, tiny: TinyEmbedder) -> Settings:
    run(settings, KEYS[0], tiny)
    return settings


def asked(settings: Settings, query: str, mode: Mode = Mode.HYBRID) -> tuple[list[Hit], list[str]]:
    warnings: list[str] = []
    hits = hits_of(settings, open_reader(Layout(settings.home)), Request(query, mode), warnings.append)
    return hits, warnings


def current(settings: Settings) -> list[str]:
    return [key for key in KEYS if is_current(settings, registry.find(settings, key))]


def test_each_source_is_to_be_indexed_again_until_next_holds_it(settings, tiny):
    assert current(settings) == []
    for done, key in enumerate(KEYS, start=1):
        run(settings, key, tiny)
        assert current(settings) == list(KEYS[:done])


def test_a_run_over_what_next_holds_does_nothing(half, tiny, layout, monkeypatch):
    embedded, named = len(tiny.embedded), layout.next.read_bytes()
    monkeypatch.setattr(chunking, "build_chunks", NotImplemented)

    assert run(half, KEYS[0], tiny).takeover.missing == KEYS[1:]

    assert (len(tiny.embedded), layout.next.read_bytes()) == (embedded, named)


def test_a_candidate_that_cannot_be_opened_is_made_again_by_a_run_that_would_find_nothing_to_do(half, tiny, layout):
    for file in (layout.tantivy / read_next(layout).tantivy).iterdir():
        file.unlink()

    publication = run(half, KEYS[0], tiny)

    assert publication.is_new
    assert list(examine(layout)) == []
    assert len(tiny.embedded) == 1


def test_nothing_is_embedded_twice_by_runs_that_go_on_from_one_that_died(half, tiny, layout, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr(publication, "publish", die)
    with pytest.raises(Killed):
        run(half, KEYS[1], tiny)
    monkeypatch.undo()
    for key in (*KEYS, *KEYS):
        run(half, key, tiny)

    assert read_generation(layout).model == "tiny"
    assert len(tiny.embedded) == len(set(tiny.embedded)) == 3


def test_changing_back_half_way_needs_no_run_and_the_next_one_drops_next(half, layout, monkeypatch):
    monkeypatch.undo()  # restores the default model in the settings
    assert current(half) == list(KEYS)
    assert source_status.change_of_model(half) is None

    run(half, KEYS[0], StaticEmbedder())

    assert not layout.next.exists()
    assert len(list(layout.lance.iterdir())) == 1
    assert asked(half, "socket", Mode.VECTOR)[1] == []


def test_a_hybrid_search_answers_by_words_and_says_so_once(half):
    hits, warnings = asked(half, "which opens a socket")

    assert hits[0].source == "library/gamma"
    assert warnings == [f"{HALF_WAY}. Until `docindex index` completes, results use word search only"]


def test_a_context_and_a_search_for_commits_say_so_too(half):
    warnings: list[str] = []
    reader = open_reader(Layout(half.home))

    packed = context_of(half, reader, Request("opens a socket"), 500, warnings.append)
    log(reader, "socket", TinyEmbedder, warn=warnings.append)

    assert "socket" in packed.markdown
    assert len(warnings) == 1  # nothing from `log`, because there are no commits to search


def test_a_search_for_words_says_nothing(half):
    assert asked(half, "socket", Mode.BM25)[1] == asked(half, "socket", Mode.LITERAL)[1] == []


def test_a_search_by_vectors_alone_says_what_to_do(half):
    with pytest.raises(
        QueryError, match=r"1 of 3 sources are done\. Run `docindex index`, or search by words with mode bm25"
    ):
        asked(half, "socket", Mode.VECTOR)


def test_before_the_first_run_none_is_done(settings, tiny):
    assert "0 of 3 sources are done" in asked(settings, "socket")[1][0]


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.VECTOR])
def test_where_the_old_model_is_still_there_it_answers(half, tiny, monkeypatch, mode):
    offer(monkeypatch, tiny, with_default=True)

    hits, warnings = asked(half, "which opens a socket", mode)

    assert (hits[0].source, warnings) == ("library/gamma", [])
    assert any(signal.name == "vector" for signal in hits[0].signals)


def test_the_golden_query_asks_what_was_just_written(half, tiny):
    assert golden_query(Layout(half.home), KEYS[0], lambda: tiny) == ""


def test_agents_learn_how_far_it_is(half):
    tools = Tools(Live(half), lambda _: None)

    assert f"Note: {HALF_WAY}" in tools.search(query="which opens a socket")
    assert f"Note: {HALF_WAY}" in tools.context(query="which opens a socket")
    assert f"Note: {HALF_WAY}; waiting for library/beta, library/gamma." in tools.status()


def test_the_page_says_how_far_it_is_and_what_is_missing(half, layout):
    change = source_status.change_of_model(half)

    page = overview.as_markdown(source_status.states_of_all(half, entries(layout), {}), 0, change)

    assert "1 of 3 sources are done; waiting for library/beta, library/gamma." in page.replace("\\", "")
    assert change == Takeover(StaticEmbedder.name, "tiny", 3, KEYS[1:])


def test_a_source_that_is_new_waits_for_the_takeover(half, tiny, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "page.md").write_text("# New\n\nDelta is new.\n")
    config = tmp_path / "docindex.toml"
    config.write_text(config.read_text() + '[[source]]\nkind = "library"\npath = "new"\n')
    changed = load_settings(tmp_path)
    run(changed, "library/new", tiny)

    (one,) = (
        one
        for one in source_status.states_of_all(changed, entries(Layout(changed.home)), {})
        if one.source == "library/new"
    )
    assert (one.state, one.needs_attention) == ("waiting for the takeover", False)
