"""Detection of result files that changed since indexing."""

import os
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader


@pytest.fixture
def settings(tmp_path) -> Settings:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pump.md").write_text("# Pumps\n\nHow a pump fills a tank.\n")
    (docs / "valve.md").write_text("# Valves\n\nHow a valve of a pump opens.\n")
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    settings = load_settings(tmp_path)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return settings


def stale(settings: Settings) -> dict[str, bool | None]:
    hits = hits_of(settings, open_reader(Layout(settings.home)), Request("pump"))
    return {hit.path: hit.stale for hit in hits}


def test_nothing_is_stale_right_after_indexing(settings):
    assert stale(settings) == {"pump.md": False, "valve.md": False}


def test_a_touched_file_is_not_stale_since_its_content_is_the_same(settings, tmp_path):
    os.utime(tmp_path / "docs" / "pump.md", (0, 0))

    assert stale(settings)["pump.md"] is False


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("# Pumps\n\nHow a pump fills a tonk.\n"),
        Path.unlink,
        lambda file: (file.unlink(), file.symlink_to("/etc/hostname")),
        lambda file: (file.unlink(), file.mkdir()),
    ],
    ids=["edited", "deleted", "a link now", "a folder now"],
)
def test_a_file_that_is_not_what_was_indexed_is_stale_and_the_others_are_not(settings, tmp_path, change):
    change(tmp_path / "docs" / "pump.md")

    assert stale(settings) == {"pump.md": True, "valve.md": False}


def test_without_the_folder_or_the_declaration_nobody_can_tell(settings, tmp_path):
    (tmp_path / "docs").rename(tmp_path / "away")
    assert stale(settings) == {"pump.md": None, "valve.md": None}

    (tmp_path / "away").rename(tmp_path / "docs")
    (tmp_path / "docindex.toml").write_text("")
    assert stale(load_settings(tmp_path)) == {"pump.md": None, "valve.md": None}
