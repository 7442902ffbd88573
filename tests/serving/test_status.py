"""Tests that the `status` tool reports the same states as `docindex status`."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.operations.status import CheckedSource
from docindex_dagster.render import markdown
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.tools import Tools
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.status.source_status import Runs, SourceState, State

FAILED = Runs("failed", "run", None, "run", "no space left")
ENTRY = CatalogEntry("git/a", 100, 7, 1, 0, 0, {"go": 7}, "v", None, "2026-11-21T03:04:05+00:00", 0, fallbacks=1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "a").mkdir()
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "a"\n')
    return load_settings(tmp_path)


def test_a_source_whose_run_failed_is_failed_with_the_reason(settings):
    assert Tools(Live(settings), lambda _: {"library/a": FAILED}).status() == "- library/a: failed; no space left"


def test_a_record_of_runs_that_cannot_be_read_is_reported_and_so_is_the_rest(settings):
    def broken(_: Settings) -> Mapping[str, Runs]:
        raise SettingsError("dagster.yaml is not YAML")

    note, _, line = Tools(Live(settings), broken).status().splitlines()

    assert note == "Note: cannot read the outcomes of runs: dagster.yaml is not YAML"
    assert line.startswith("- library/a: not indexed; ")


def test_what_is_cut_as_text_is_reported_however_little():
    answer = markdown.of_sources(
        [CheckedSource(SourceState("git/a", ENTRY, Runs(), State.OK), None, was_left=False)], [], 0, 2000
    )

    assert answer == "- git/a: ok; 1 of 100 files is cut as text; 100 files, 7 chunks, go; content from 2026-11-21"
