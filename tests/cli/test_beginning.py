"""With the files of a source is begun before its run, and what is not wanted is not begun."""

from pathlib import Path

import pytest

from docindex_dagster.chunking import pool
from docindex_dagster.cli.beginning import begun
from docindex_dagster.core import events
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.pipeline import prefetch

KEYS = ("library/a", "library/b", "library/c")


@pytest.fixture
def settings(tmp_path) -> Settings:
    declared = []
    for key in KEYS:
        folder = tmp_path / Path(key).name
        folder.mkdir()
        (folder / "page.md").write_text("# Page\n\nWords.\n")
        declared.append(f'[[source]]\nkind = "library"\npath = "{folder.name}"\n')
    (tmp_path / "docindex.toml").write_text("\n".join(declared))
    return load_settings(tmp_path)


@pytest.fixture
def began(monkeypatch) -> list[str]:
    """The sources that were begun with, in their order."""
    began: list[str] = []
    begin = prefetch.begin

    def noted(settings, source) -> None:
        began.append(source.key)
        begin(settings, source)

    monkeypatch.setattr(prefetch, "begin", noted)
    return began


def cut(key: str) -> None:
    events.emit(events.StageEnded(key, "discovered_files", 0.1))
    events.emit(events.StageEnded(key, "chunks", 0.1))
    events.emit(events.StageEnded(key, "embeddings", 0.1))


def test_each_source_is_begun_with_when_the_one_before_it_is_cut(settings, began):
    with begun(settings, dict.fromkeys(KEYS, ())):
        assert began == ["library/a"]
        cut("library/a")
        assert began == ["library/a", "library/b"]
        cut("library/c")
        assert began == ["library/a", "library/b"]


def test_what_no_run_took_is_forgotten(settings, began):
    with begun(settings, dict.fromkeys(KEYS, ())):
        cut("library/a")

    assert [prefetch.files(key) for key in began] == [None, None]


def test_for_single_files_a_worker_is_started(settings, began, monkeypatch):
    started: list[bool] = []
    monkeypatch.setattr(pool, "start_ahead", lambda: started.append(True))

    with begun(settings, {"library/a": {"page.md"}, "library/b": ()}):
        cut("library/a")

    assert (started, began) == ([True], ["library/b"])


def test_a_source_that_is_not_declared_is_left_to_its_run(settings, began):
    with begun(settings, {"library/gone": ()}):
        pass

    assert began == []
