"""No chunk contains a secret that discovery found."""

import random
import string
from dataclasses import replace

import pytest

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.chunking.rows import FileJob
from docindex_dagster.chunking.worker import chunk_files
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.pipeline.stage import changes
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.secrets import parse_masked

TOKEN = "ghp" + "_" + "".join(random.Random(3).choices(string.ascii_letters + string.digits, k=36))
TEXT = f'def connect():\n    """Connect."""\n    return login(token="{TOKEN}")\n'
OPTIONS = ChunkOptions(Sizes(512, 50, 2048, 128), code_chars=1500)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "app.py").write_text(TEXT)
    return Source(key="library/demo", kind="library", name="demo", path=tmp_path)


@pytest.fixture
def job(source):
    row = discover(source).to_pylist()[0]
    identity = (source.key, source.kind, row["path"], row["content_hash"], "code", "python", None, False, source.path)
    return FileJob(*identity, chunker="code", size=row["size"], masked=parse_masked(row["masked"]))


def texts(job, fallback=None):
    return [row["text"] for row in chunk_files([job], OPTIONS, fallback).rows.to_pylist()]


def test_a_chunk_has_asterisks_for_a_secret_and_spans_of_the_same_length(job):
    row = chunk_files([job], OPTIONS).rows.to_pylist()[0]
    assert row["text"] == TEXT.replace(TOKEN, "*" * len(TOKEN))
    assert row["end_byte"] - row["start_byte"] == len(TEXT)
    assert TOKEN not in repr(row)


def test_a_file_that_is_cut_by_lines_is_masked_as_well(job):
    assert TOKEN not in "".join(texts(job, fallback="crash: its parser"))


def test_a_file_that_changes_after_discovery_is_looked_at_again(job):
    (job.root / job.path).write_text("# a line before it\n" + TEXT)
    assert "".join(texts(job)) == "# a line before it\n" + TEXT.replace(TOKEN, "*" * len(TOKEN))


def test_a_change_of_the_setting_cuts_files_again_that_are_the_same(source):
    settings = ChunkingSettings()
    masked = gather(discover(source), settings)
    chunks = build_chunks(source, masked, None, settings).table
    open_source = replace(source, secrets="index")
    as_it_is = gather(discover(open_source), settings)
    assert as_it_is.made_from != masked.made_from
    assert TOKEN not in "".join(chunks["text"].to_pylist())
    assert TOKEN in "".join(build_chunks(open_source, as_it_is, chunks, settings).table["text"].to_pylist())
    again = build_chunks(source, masked, chunks, settings)
    found = changes(again.table, chunks, "chunk_id", "row_hash")
    assert (found["reused"], found["added"]) == (chunks.num_rows, 0)
