"""The `chunks` table of a source: rows reused, files chunked again, and tables rejected."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from docindex_dagster.chunking import build as chunking
from docindex_dagster.chunking.build import ChunkingResult, build_chunks
from docindex_dagster.chunking.inputs import gather, stored_inputs_digest
from docindex_dagster.chunking.table_rules import verify_chunks
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.pipeline.stage import changes
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.conftest import chunks_of

SETTINGS = ChunkingSettings()
ROW = ("chunk_id", "row_hash")


@pytest.fixture
def source(tmp_path: Path, git) -> Source:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("def alpha():\n    return 1\n")
    (tmp_path / "b.md").write_text("# Beta\n\nSome words about beta that fill a line.\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return Source("git/x", "git", "x", tmp_path)


def build(source: Source, previous: pa.Table | None = None, settings: ChunkingSettings = SETTINGS) -> ChunkingResult:
    return build_chunks(source, gather(discover(source), settings), previous, settings)


def test_an_incremental_build_equals_a_build_from_nothing(source, git):
    before = build(source).table
    (source.path / "a.py").write_text("def alpha():\n    return 2\n\n\ndef gamma():\n    return 3\n")
    (source.path / "c.md").write_text("# Delta\n\nA new page with a line of words.\n")
    git(source.path, "rm", "-q", "b.md")

    incremental = build(source, before)

    assert incremental.table.equals(build(source).table)
    assert changes(incremental.table, before, *ROW)["removed"] == 1


def test_of_a_notebook_without_text_the_name_alone_is_indexed(source, git):
    (source.path / "empty.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n')
    git(source.path, "add", ".")

    table = build(source).table

    (row,) = [row for row in table.to_pylist() if row["path"] == "empty.ipynb"]
    assert (row["text"], row["start_byte"]) == ("empty", None)
    verify_chunks(table, discover(source).filter(pa.compute.is_null(discover(source)["skipped_reason"])))


@pytest.mark.parametrize("most", [0, 100])
def test_few_files_are_spliced_in_and_many_sorted_in_with_the_same_result(source, monkeypatch, most):
    monkeypatch.setattr(chunking, "_FEW_FILES", most)
    before = build(source).table
    (source.path / "a.py").write_text("def alpha():\n    return 2\n\n\ndef gamma():\n    return 3\n")
    for name in ("0.md", "az.md", "z.md"):
        (source.path / name).write_text(f"# {name}\n\nA new page with a line of words.\n")

    incremental = build(source, before)

    assert incremental.table.equals(build(source).table)
    assert incremental.table["path"].num_chunks == 1


def test_an_unchanged_source_gives_an_equal_table_and_cuts_nothing(source):
    before = build(source).table

    again = build(source, before)

    assert again.table.equals(before)
    assert again.table.schema.metadata == before.schema.metadata
    unchanged = {"added": 0, "changed": 0, "reused": before.num_rows, "removed": 0}
    assert changes(again.table, before, *ROW) == unchanged


def test_a_commit_takes_the_mark_of_uncommitted_work_away_without_another_embedding(source, git):
    (source.path / "a.py").write_text("def alpha():\n    return 2\n")
    dirty = build(source).table
    git(source.path, "commit", "-qam", "second")
    head = git(source.path, "rev-parse", "HEAD").strip()

    clean = build(source, dirty)

    marks = dict(zip(dirty["path"].to_pylist(), dirty["is_uncommitted"].to_pylist(), strict=True))
    assert marks == {"a.py": True, "b.md": False}
    assert not any(clean.table["is_uncommitted"].to_pylist())
    assert clean.table["commit"][0].as_py() == head
    assert clean.table["embed_text_hash"].equals(dirty["embed_text_hash"])
    assert changes(clean.table, dirty, *ROW)["changed"] == 1
    assert clean.table.equals(build(source).table)


def test_other_settings_cut_every_file_again(source):
    before = build(source).table
    smaller = ChunkingSettings(target_tokens=16, min_tokens=4, overlap_tokens=2)

    assert build(source, before, smaller).table.equals(build(source, None, smaller).table)


def test_a_table_of_another_schema_is_not_reused(source):
    before = build(source).table.drop_columns(["summary"])

    assert build(source, before).table.equals(build(source).table)


def rows(*changes: dict[str, Any]) -> pa.Table:
    base = chunks_of({"a.py": ["alpha reads", "beta writes"]})
    listed = [{**row, **change} for row, change in zip(base.to_pylist(), changes, strict=True)]
    return pa.Table.from_pylist(listed, base.schema)


FILES = pa.table({"path": ["a.py"]})


@pytest.mark.parametrize(
    ("chunks", "files", "rule"),
    [
        (rows({"chunk_id": "same"}, {"chunk_id": "same"}), FILES, "ids_are_unique"),
        (rows({}, {}), pa.table({"path": ["a.py", "lost.py"]}), "files_are_covered"),
        (rows({"start_line": 5, "end_line": 4}, {}), FILES, "spans_are_in_their_file"),
        (rows({"start_byte": 0, "end_byte": 3}, {}), FILES, "spans_are_in_their_file"),
        (rows({"chunk_index": 7}, {}), FILES, "spans_are_in_their_file"),
    ],
)
def test_rows_that_break_a_rule_are_refused_by_its_name(chunks, files, rule):
    with pytest.raises(VerificationError) as caught:
        verify_chunks(chunks, files)

    assert set(caught.value.failures) == {rule}


def test_a_file_that_could_not_be_read_is_excused():
    verify_chunks(rows({}, {}), pa.table({"path": ["a.py", "unreadable.py"]}), ["unreadable.py"])


CHANGED = {
    "binary.md": "binary: NUL bytes or control characters",
    "emptied.md": "empty: no text",
    "fifo.md": "unreadable: not a regular file",
    "folder.md": "unreadable: not a regular file",
    "grown.md": "unreadable: grew past max_file_bytes while it was read",
    "key.md": "secret: private key",
    "removed.md": "unreadable: No such file or directory",
}


def test_a_file_that_changes_into_what_is_not_indexed_is_left_out_alone_and_looked_at_again(source):
    before = build(source).table
    for name in CHANGED:
        (source.path / name).write_text(f"# Page {name}\n\nA line of words.\n")
    inputs = gather(discover(source), SETTINGS)
    for name in ("removed.md", "folder.md", "fifo.md"):
        (source.path / name).unlink()
    (source.path / "folder.md").mkdir()
    os.mkfifo(source.path / "fifo.md")
    (source.path / "emptied.md").write_text(" \n")
    (source.path / "binary.md").write_bytes(b"a\0b")
    (source.path / "key.md").write_text("-----BEGIN PRIVATE KEY-----\n")
    os.truncate(source.path / "grown.md", source.max_file_bytes + 1)

    result = build_chunks(source, inputs, before, SETTINGS)

    assert dict(result.left_out) == CHANGED
    assert result.table.equals(before)
    assert stored_inputs_digest(result.table) is None
    assert stored_inputs_digest(build(source, result.table).table) is not None


def test_a_file_that_was_edited_before_it_was_cut_is_looked_at_again(source):
    """If the first text came back, it would otherwise count as already indexed."""
    inputs = gather(discover(source), SETTINGS)
    (source.path / "b.md").write_text("# Gamma\n\nOther words that fill a line.\n")

    result = build_chunks(source, inputs, None, SETTINGS)

    assert "Gamma" in result.table["text"][1].as_py()
    assert stored_inputs_digest(result.table) is None
