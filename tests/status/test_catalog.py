"""The catalog: updated incrementally, concurrently with publications, and never older than the published index."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import orjson
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.schemas import COMMITS
from docindex_dagster.sources.history import REPOSITORY, RepositoryStatistics, to_json
from docindex_dagster.status import catalog
from docindex_dagster.stores import generation
from docindex_dagster.stores.generation import Generation, PublishedSource, write_generation

KEYS = ("git/a", "git/b", "git/c")
SOURCE = PublishedSource("v1", None, None, 1, 2, 3, 0, 0, {"python": 2}, "2026-01-01T00:00:00+00:00")
FIRST = Generation(1, "model", "table", 1, "00000001", dict.fromkeys(KEYS, SOURCE))
FIGURES = RepositoryStatistics(7, 1, 0, "c0ffee", "2026-01-01T00:00:00+00:00", "Begin", is_shallow=False)
PATIENCE_S = 10


def write_figures(layout: Layout, key: str, branches: int = 1) -> None:
    text = to_json(replace(FIGURES, branches=branches))
    rows = COMMITS.empty_table().replace_schema_metadata({REPOSITORY: text.encode(), tables.VERSION: b"v"})
    tables.write(layout.table("commits", key), rows)


def branches(found: list[catalog.CatalogEntry]) -> dict[str, int | None]:
    return {entry.source: entry.repository.branches if entry.repository else None for entry in found}


def on_disk(layout: Layout) -> list[tuple[str, str]]:
    """Return the sources in the catalog on disk with their versions."""
    lines = orjson.loads(layout.catalog.read_bytes())
    return [(line["entry"]["source"], line["entry"]["version"]) for line in lines]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the tables that are opened."""
    names: list[str] = []
    reading = tables.metadata_value

    def read(path: Path, key: bytes) -> str | None:
        names.append(path.stem)
        return reading(path, key)

    monkeypatch.setattr(tables, "metadata_value", read)
    return names


@pytest.fixture
def published(layout: Layout) -> Layout:
    """Publish three git sources, each with a table of commits."""
    for key in KEYS:
        write_figures(layout, key)
    write_generation(layout, FIRST)
    return layout


def test_it_has_an_entry_for_each_source_with_the_figures_of_its_repository(published):
    assert branches(catalog.rebuild(published, "test")) == dict.fromkeys(KEYS, 1)
    assert branches(catalog.entries(published)) == dict.fromkeys(KEYS, 1)
    assert on_disk(published) == [(key, "v1") for key in KEYS]


def test_only_the_tables_that_changed_are_opened(published, opened):
    catalog.rebuild(published, "test")
    opened.clear()
    write_figures(published, "git/b", branches=2)

    assert branches(catalog.rebuild(published, "test")) == {"git/a": 1, "git/b": 2, "git/c": 1}
    assert opened == ["git%2Fb"]
    opened.clear()
    catalog.entries(published)
    assert opened == []


def test_entries_that_nobody_wrote_down_yet_are_read(published, opened):
    catalog.rebuild(published, "test")
    write_figures(published, "git/b", branches=2)

    assert branches(catalog.entries(published))["git/b"] == 2


def test_what_is_published_counts_though_no_table_changed(published):
    catalog.rebuild(published, "test")
    write_generation(published, FIRST.with_source("git/a", replace(SOURCE, version="v2")).with_source("git/c", None))

    found = catalog.rebuild(published, "test")

    assert [(entry.source, entry.version) for entry in found] == [("git/a", "v2"), ("git/b", "v1")]
    assert on_disk(published) == [("git/a", "v2"), ("git/b", "v1")]


def test_the_same_catalogue_is_not_written_again(published):
    catalog.rebuild(published, "test")
    before = published.catalog.stat().st_mtime_ns

    catalog.rebuild(published, "test")

    assert published.catalog.stat().st_mtime_ns == before


def test_where_a_table_is_not_at_hand_the_figures_of_the_catalogue_count(published):
    """The stores may be on another machine, without the tables."""
    catalog.rebuild(published, "test")
    published.table("commits", "git/a").unlink()

    assert branches(catalog.entries(published))["git/a"] == 1


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '[{"source": "git/a", "repository": null}]', '[{"entry": {"source": "git/a"}}]', "null"],
    ids=["empty", "cut off", "numbers", "of an earlier version", "incomplete", "null"],
)
def test_one_that_cannot_be_used_is_made_anew(published, text):
    published.catalog.write_text(text)

    assert branches(catalog.rebuild(published, "test")) == dict.fromkeys(KEYS, 1)
    assert on_disk(published) == [(key, "v1") for key in KEYS]


def test_it_waits_for_no_publication(published):
    with ThreadPoolExecutor(1) as other, exclusive(published.publication_lock, "a run", on_wait=lambda _: None):
        found = other.submit(catalog.rebuild, published, "test")

        assert len(found.result(PATIENCE_S)) == len(KEYS)


def test_of_two_that_rebuild_it_at_once_the_later_generation_stays(published, monkeypatch):
    has_read, may_go_on = Event(), Event()
    reading = generation.read_generation

    def slowly(layout: Layout) -> Generation | None:
        found = reading(layout)
        if not has_read.is_set():  # only the first call blocks
            has_read.set()
            may_go_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(catalog, "read_generation", slowly)
    with ThreadPoolExecutor(2) as both:
        slow = both.submit(catalog.rebuild, published, "slow")
        assert has_read.wait(PATIENCE_S)
        write_generation(published, FIRST.with_source("git/a", replace(SOURCE, version="v2")))
        quick = both.submit(catalog.rebuild, published, "quick")
        with pytest.raises(TimeoutError):
            quick.result(0.3)  # the quick call waits for the slow one
        may_go_on.set()
        slow.result(PATIENCE_S)
        quick.result(PATIENCE_S)

    assert on_disk(published)[0] == ("git/a", "v2")
