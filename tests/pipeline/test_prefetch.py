"""A run whose files were found and cut before it began makes what it would have made without."""

import os
from pathlib import Path

import pytest

from docindex_dagster.chunking import pool
from docindex_dagster.chunking import prefetch as cutting_ahead
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.pipeline import prefetch
from docindex_dagster.runner.run import index
from docindex_dagster.sources import discover, registry
from docindex_dagster.sources.content import Content, examine
from docindex_dagster.sources.model import Source
from tests.models import TinyEmbedder

LONG_AGO_S = 1_600_000_000
CODE = "def first():\n    return 1\n"


@pytest.fixture
def settings(tmp_path) -> Settings:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text("# Guide\n\nHow marmots dig.\n")
    (tmp_path / "notes" / "sums.py").write_text(CODE)
    for file in (tmp_path / "notes").iterdir():  # one that was written just now is read again
        os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "notes"\n')
    return load_settings(tmp_path)


@pytest.fixture
def source(settings) -> Source:
    return next(iter(registry.sources(settings).values()))


@pytest.fixture
def cuts(monkeypatch) -> list[str]:
    """The paths that were cut."""
    cuts: list[str] = []
    cut = pool.chunk_in_workers

    def noted(jobs, options, **how):
        cuts.extend(job.path for job in jobs)
        return cut(jobs, options, **how)

    monkeypatch.setattr(cutting_ahead, "chunk_in_workers", noted)
    return cuts


def texts(settings: Settings, source: Source) -> dict[str, str]:
    """Index, and give the texts of the chunks by their files."""
    index(settings, source, TinyEmbedder())
    chunks = tables.read(Layout(settings.home).table("chunks", source.key))
    return dict(zip(chunks["path"].to_pylist(), chunks["text"].to_pylist(), strict=True))


def test_each_file_is_cut_once(settings, source, cuts):
    prefetch.begin(settings, source)

    assert texts(settings, source)["sums.py"] == CODE
    assert sorted(cuts) == ["guide.md", "sums.py"]


def test_each_file_is_read_once_to_find_out_what_it_is(settings, source, monkeypatch):
    read: list[bytes] = []

    def noted(path: bytes, data: bytes, *, skips_secrets: bool) -> Content:
        read.append(path)
        return examine(path, data, skips_secrets=skips_secrets)

    monkeypatch.setattr(discover, "examine", noted)
    prefetch.begin(settings, source)

    texts(settings, source)

    assert sorted(read) == [b"guide.md", b"sums.py"]


def test_only_what_changed_since_the_last_run_is_cut(settings, source, cuts):
    texts(settings, source)
    cuts.clear()
    Path(source.path, "sums.py").write_text(CODE * 2)
    prefetch.begin(settings, source)

    assert texts(settings, source)["sums.py"] == CODE * 2
    assert cuts == ["sums.py"]


def test_a_file_that_changes_after_it_was_cut_is_cut_again(settings, source):
    prefetch.begin(settings, source)
    assert prefetch.files(source.key).num_rows == 2  # which waits for them; now they are not known to the run
    Path(source.path, "sums.py").write_text(CODE * 2)

    assert texts(settings, source)["sums.py"] == CODE * 2


def test_a_file_that_changes_after_it_was_found_is_found_again(settings, source):
    prefetch.begin(settings, source)
    found = prefetch._found[source.key]
    found.result()
    Path(source.path, "sums.py").write_text(CODE * 2)
    Path(source.path, "new.py").write_text(CODE)
    Path(source.path, "guide.md").unlink()

    assert texts(settings, source) == {"sums.py": CODE * 2, "new.py": CODE}


def test_a_source_that_cannot_be_read_is_reported_by_its_run(settings, source):
    Path(source.path).rename(settings.root / "moved")
    prefetch.begin(settings, source)

    with pytest.raises(Exception, match="notes"):
        texts(settings, source)


def test_what_is_dropped_is_forgotten(settings, source):
    prefetch.begin(settings, source)

    prefetch.drop(source.key)

    assert prefetch.files(source.key) is None
