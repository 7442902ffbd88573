"""Extracted references of code files: where they are reused from, and which files are parsed for them."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.callgraph.ir import CallSite, Name
from docindex_dagster.callgraph.table import REFERENCES, References, as_table
from docindex_dagster.chunking import references, worker
from docindex_dagster.chunking.build import ChunkingResult, ReferencesResult, build_chunks, build_references
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.inputs import gather, references_fingerprint
from docindex_dagster.chunking.pool import chunk_in_workers
from docindex_dagster.chunking.rows import FileJob
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.chunking.test_masking import TEXT, TOKEN
from tests.chunking.test_pool import OPTIONS, CrashesWorker
from tests.chunking.test_pool import job as plain_job

SETTINGS = ChunkingSettings()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "a.py").write_text("from b import beta\n\n\ndef alpha():\n    return beta()\n")
    (tmp_path / "b.py").write_text("def beta():\n    return 1\n")
    (tmp_path / "c.md").write_text("# Gamma\n\nSome words about gamma that fill a line.\n")
    (tmp_path / "empty.py").write_text("\n")
    return Source("library/x", "library", "x", tmp_path)


def cut(source: Source, settings: ChunkingSettings = SETTINGS) -> ChunkingResult:
    return build_chunks(source, gather(discover(source), settings), None, settings, wants_references=True)


def build(
    source: Source, chunks: pa.Table, fresh: pa.Table | None = None, previous: pa.Table | None = None
) -> ReferencesResult:
    return build_references(source, discover(source), chunks, fresh=fresh, previous=previous, settings=SETTINGS)


def counts(found: ReferencesResult) -> tuple[int, int, int]:
    return found.taken, found.reused, found.parsed


def job(folder: Path, name: str, chunker: str = "code") -> FileJob:
    return replace(plain_job(folder, name), wants_references=True, chunker=chunker)


def test_workers_extract_what_files_say_as_they_cut_them(source):
    made = cut(source)

    irs = References(made.references)
    assert [one.callee for one in irs["a.py"].calls] == [Name("beta")]
    assert [one.name for one in irs["b.py"].definitions] == ["beta"]
    assert "c.md" not in irs
    assert build_chunks(source, gather(discover(source), SETTINGS), None, SETTINGS).references.num_rows == 0


def test_a_statement_stands_at_its_byte_of_the_file(source):
    (call,) = References(cut(source).references)["a.py"].calls

    assert call == CallSite("call", "alpha", Name("beta"), (), 5, (source.path / "a.py").read_text().index("beta()"))


def test_what_was_just_extracted_is_taken_then_what_there_was_and_the_rest_is_parsed(source):
    made = cut(source)
    fresh = as_table(made.references, references_fingerprint(discover(source)))
    from_cutting = build(source, made.table, fresh=fresh)
    half = from_cutting.table.slice(0, 1)

    parsed = build(source, made.table)

    assert counts(from_cutting) == (2, 0, 0)
    assert counts(build(source, made.table, previous=from_cutting.table)) == (0, 2, 0)
    assert counts(build(source, made.table, previous=half)) == (0, 1, 1)
    assert counts(parsed) == (0, 0, 2)
    assert parsed.table.equals(from_cutting.table)
    assert parsed.table.schema.metadata == from_cutting.table.schema.metadata
    assert parsed.table["path"].to_pylist() == ["a.py", "b.py"]


def test_a_file_that_was_edited_is_extracted_again(source):
    before = build(source, cut(source).table).table
    (source.path / "b.py").write_text("def delta():\n    return 1\n")

    after = build(source, cut(source).table, previous=before)

    assert counts(after) == (0, 1, 1)
    assert [one.name for one in References(after.table)["b.py"].definitions] == ["delta"]


def test_a_table_of_another_extraction_gives_nothing(source):
    made = cut(source)
    before = build(source, made.table).table
    other = before.replace_schema_metadata({b"docindex.references": b"another"})

    assert counts(build(source, made.table, previous=other)) == (0, 0, 2)
    assert counts(build(source, made.table, fresh=before.drop_columns(["content"]))) == (0, 0, 2)


def test_a_file_that_changes_before_it_is_parsed_has_no_references_until_the_next_run(source):
    made = cut(source)
    files = discover(source)
    (source.path / "b.py").write_text("def changed():\n    return 1\n")
    (source.path / "a.py").unlink()

    found = build_references(source, files, made.table, fresh=None, previous=None, settings=SETTINGS)

    assert found.table["problem"].to_pylist() == ["changed: the file has changed meanwhile"] * 2
    assert counts(build(source, cut(source).table, previous=found.table)) == (0, 0, 1)


def test_code_that_is_cut_by_another_chunker_is_parsed_by_its_language(tmp_path):
    (cut_as_code, cut_by_lines) = (
        worker.chunk_files([job(tmp_path, "a.py", chunker=chunker)], OPTIONS) for chunker in ("code", "lines")
    )

    assert cut_by_lines.references.equals(cut_as_code.references)
    assert not cut_by_lines.rows.equals(cut_as_code.rows)


def test_one_parse_serves_both(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("it is parsed again")

    monkeypatch.setattr(references, "parse_code", fail)

    assert worker.chunk_files([job(tmp_path, "a.py")], OPTIONS).references["problem"].to_pylist() == [None]


def test_an_error_costs_a_file_its_references_and_no_chunk(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise KeyError("pump")

    monkeypatch.setattr(references, "extract", fail)

    found = worker.chunk_files([job(tmp_path, "a.py")], OPTIONS)

    assert found.references["problem"].to_pylist() == ["KeyError: 'pump'"]
    assert found.rows["fallback"].to_pylist() == [None]
    assert found.rows["symbols"][0].is_valid


def test_a_file_too_large_for_its_structure_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "_MAX_PARSED", 10)

    found = worker.chunk_files([job(tmp_path, "a.py")], OPTIONS)

    assert found.references["problem"][0].as_py().startswith("too-large: ")
    assert len(References(found.references)) == 0


def test_a_file_that_crashes_its_worker_has_no_references_and_the_others_have_theirs(tmp_path):
    jobs = [job(tmp_path, "a.py"), replace(job(tmp_path, "b.py"), root=CrashesWorker(tmp_path)), job(tmp_path, "c.py")]
    alone = [replace(one, wants_chunks=False) for one in jobs]

    found = [result for _, result in chunk_in_workers(alone, OPTIONS, workers=1, timeout_s=60)]

    rows = pa.concat_tables([each.references for each in found]).sort_by("path")
    assert rows["problem"].to_pylist() == [None, "crash: the parser died with exit code 139", None]
    assert sum(each.rows.num_rows for each in found) == 0


def test_a_masked_secret_is_not_in_what_a_file_says(tmp_path):
    (tmp_path / "app.py").write_text(TEXT + f"login.{TOKEN}()\n")
    source = Source("library/x", "library", "x", tmp_path)

    made = cut(source)

    assert len(References(made.references)["app.py"].calls) == 1
    assert TOKEN not in repr(made.references.to_pylist())
    assert TOKEN not in repr(build(source, made.table).table.to_pylist())


def test_files_in_languages_without_symbols_have_no_row():
    options = ChunkOptions(Sizes(), code_chars=1500)
    assert worker.chunk_files([], options).references.equals(REFERENCES.empty_table())
