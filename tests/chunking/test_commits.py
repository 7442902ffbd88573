"""Commits as chunks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from docindex_dagster.chunking.build import ChunkingResult, build_chunks
from docindex_dagster.chunking.commits import changed_files
from docindex_dagster.chunking.embedding_text import embed_texts
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.chunking.table_rules import verify_chunks
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.pipeline.stage import changes
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.graph.built import build_graph

CODE = "class Pump:\n    def prime(self):\n        return {}\n"


@pytest.fixture
def source(tmp_path: Path, git) -> Source:
    git(tmp_path, "init", "-q")
    for number in range(3):
        (tmp_path / "pump.py").write_text(CODE.format(number))
        git(tmp_path, "add", ".")
        git(
            tmp_path, "commit", "-qm", f"Pump {number} litres\n\nThe tank holds no more.", "--date=2024-05-06T07:08:09Z"
        )
    return Source("git/x", "git", "x", tmp_path)


def commits(source: Source, git, limit: int = 500) -> pa.Table:
    return read_commits(source, git(source.path, "rev-parse", "HEAD").strip(), None, limit)


def build(source: Source, git, previous: pa.Table | None = None, limit: int = 500) -> ChunkingResult:
    inputs = gather(discover(source), ChunkingSettings(), commits(source, git, limit))
    return build_chunks(source, inputs, previous, ChunkingSettings())


def messages(table: pa.Table) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["source_type"] == "commit"]


def test_a_commit_is_one_chunk_with_its_message_and_files(source, git):
    table = build(source, git).table
    head = git(source.path, "rev-parse", "HEAD").strip()

    (row,) = (row for row in messages(table) if row["commit"] == head)

    assert table.schema.equals(CHUNKS)
    assert row["path"] == f".git/commit/{head}"
    assert row["text"] == "Pump 2 litres\n\nThe tank holds no more.\n\nM pump.py +1 -1: def prime(self):"
    assert (row["chunk_type"], row["section"], row["language"]) == ("message", "Pump 2 litres", None)
    assert (row["start_line"], row["end_line"], row["start_byte"]) == (1, 5, None)
    assert row["heading_path"] == ["2024-05-06", "Ada"]


def test_the_embedded_text_begins_with_a_short_hash_the_date_and_the_author(source, git):
    table = build(source, git).table
    row = messages(table)[0]
    text = embed_texts(table)[table["path"].to_pylist().index(row["path"])].as_py()

    assert text.startswith(f"commit {row['commit'][:12]} 2024-05-06 > Ada\nPump")


def test_an_incremental_build_with_a_longer_history_equals_a_full_one(source, git):
    before = build(source, git).table
    git(source.path, "commit", "-q", "--allow-empty", "-m", "new")

    after = build(source, git, before)

    assert after.table.equals(build(source, git).table)
    found = changes(after.table, before, "chunk_id", "row_hash")
    assert (found["added"], found["changed"], found["removed"]) == (1, 0, 0)


def test_commits_that_leave_the_window_leave_the_table(source, git):
    before = build(source, git).table

    after = build(source, git, before, limit=1)

    assert len(messages(after.table)) == 1
    found = changes(after.table, before, "chunk_id", "row_hash")
    assert (found["added"], found["removed"]) == (0, 2)


def test_functions_of_a_file_that_the_rules_keep_out_are_not_recorded(source, git):
    before = build(source, git).table
    assert "def prime" in repr(messages(before))
    (source.path / ".docindexignore").write_text("pump.py\n")

    ignored = build(source, git, before).table
    excluded = build(replace(source, exclude=("*.py",)), git, before).table

    for table in (ignored, excluded):
        assert "pump.py +1 -1" in repr(messages(table))
        assert "def prime" not in repr(messages(table))


def test_a_long_commit_is_cut_and_says_how_much_is_left_out(source, git):
    for number in range(150):
        (source.path / f"{'long' * 10}{number}.md").write_text("words\n")
    git(source.path, "add", ".")
    git(source.path, "commit", "-qm", "word " * 3000)

    text = max((row["text"] for row in messages(build(source, git).table)), key=len)

    assert len(text) < 6100
    shown = sum(line.startswith("A long") for line in text.splitlines())
    assert text.splitlines()[-1] == f"… {150 - shown} more files"


def test_the_changed_files_are_read_back_from_the_text(source, git):
    (source.path / "pump.py").rename(source.path / "old pump.py")
    (source.path / "tank: new.md").write_text("A tank\n")
    (source.path / "logo.png").write_bytes(b"\x89PNG\0\1")
    git(source.path, "add", "-A")
    git(source.path, "commit", "-qm", "Rename the pump\n\nAnd more: it was old.")
    row = next(row for row in messages(build(source, git).table) if "Rename" in row["text"])

    assert sorted(changed_files(row["text"])) == ["logo.png", "old pump.py", "tank: new.md"]


def test_a_commit_without_a_message_or_files_has_a_text(source, git):
    git(source.path, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")

    assert any(row["text"] == "no message" for row in messages(build(source, git).table))


def test_a_commit_without_a_chunk_breaks_a_rule(source, git):
    table = build(source, git).table
    paths = pa.table({"path": [row["path"] for row in messages(table)]})
    verify_chunks(table, paths)

    with pytest.raises(VerificationError) as caught:
        verify_chunks(table.slice(1), paths)

    assert set(caught.value.failures) == {"files_are_covered"}


def test_commits_are_no_part_of_the_graph(source, git):
    table = build(source, git).table

    assert not any(name.startswith(".git") for name in build_graph(table).nodes["node"].to_pylist())
