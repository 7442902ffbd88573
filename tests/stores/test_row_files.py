"""Row files: only changes are written, and the content always matches the table."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.core import tables
from docindex_dagster.core.files import atomic_write, stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.matches import find_matches
from docindex_dagster.search.text_scan import Pattern, find_matching_chunks
from docindex_dagster.stores import cleanup, row_files
from docindex_dagster.stores.difference import difference
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation, replace_generation
from docindex_dagster.stores.prune import erase_stores
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"
SECRET = "xkqzvwjhpfmbtrgd"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A home where every source is large enough for incremental writes."""
    monkeypatch.setattr(row_files, "_SMALL", 0)
    return Layout(tmp_path / "home")


def files_of(number: int = 60, **edited: str) -> dict[str, list[str]]:
    return {f"f{at:02}.py": [f"alpha{at} one", f"beta{at} two"] for at in range(number)} | {
        f"{name}.py": [text] for name, text in edited.items()
    }


def publish_files(layout: Layout, files: dict[str, list[str]]) -> PublishedSource:
    chunks = chunks_of(files)
    return publish_rows(layout, KEY, chunks, vectors_of(chunks)).source


def rows_of(layout: Layout, source: PublishedSource) -> dict[str, tuple[str, list[float]]]:
    """Return the texts and vectors of the files."""
    generation = Generation(1, "static", "", 0, "", {KEY: source})
    parts = row_files.open_parts(layout, generation, {}, lambda _: pytest.fail("the table is asked"))
    rows = [row for table in row_files.tables_of(parts.of_source(KEY)) for row in table.to_pylist()]
    assert len({row["chunk_id"] for row in rows}) == len(rows)
    return {row["chunk_id"]: (row["text"], row["vector"]) for row in rows}


def made_of(files: dict[str, list[str]]) -> dict[str, tuple[str, list[float]]]:
    chunks = chunks_of(files)
    values = zip(chunks["text"].to_pylist(), vectors_of(chunks)["vector"].to_pylist(), strict=True)
    return dict(zip(chunks["chunk_id"].to_pylist(), values, strict=True))


def found(reader: Reader, text: str) -> tuple[list[tuple[str, float]], int]:
    pool = Pool(reader, Filters(), 10)
    pattern = Pattern(text, is_regex=False)
    return find_matching_chunks(pool, pattern), find_matches(pool, pattern).total


def test_an_edit_of_a_file_writes_what_changed(layout):
    first = publish_files(layout, files_of())
    second = publish_files(layout, files_of(f07="gamma is new"))
    assert (len(first.rows), len(second.rows)) == (1, 2)
    assert second.rows[0] == first.rows[0]
    sizes = [(layout.rows / name).stat().st_size for name in second.rows]
    assert sizes[1] < sizes[0] / 3
    assert rows_of(layout, second) == made_of(files_of(f07="gamma is new"))


def test_a_small_source_is_written_as_a_whole(layout, monkeypatch):
    monkeypatch.undo()
    publish_files(layout, files_of())
    assert len(publish_files(layout, files_of(f07="gamma is new")).rows) == 1


def test_the_same_rows_write_nothing(layout):
    first = publish_files(layout, files_of())
    stamps = {file: stamp(file) for file in layout.rows.iterdir()}
    assert publish_files(layout, files_of()).rows == first.rows
    assert {file: stamp(file) for file in layout.rows.iterdir()} == stamps


def test_where_much_changed_all_is_written(layout):
    publish_files(layout, files_of())
    edited = files_of() | {f"f{at:02}.py": [f"gamma{at} is new"] for at in range(30)}
    source = publish_files(layout, edited)
    assert len(source.rows) == 1
    assert rows_of(layout, source) == made_of(edited)


_CONTENTS = st.dictionaries(st.integers(0, 30), st.integers(0, 5), max_size=31)


@given(versions=st.lists(_CONTENTS, min_size=1, max_size=14))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_publications_the_files_have_the_rows_of_the_last(tmp_path_factory, monkeypatch, versions):
    monkeypatch.setattr(row_files, "_SMALL", 0)
    monkeypatch.setattr(row_files, "_MAX_LATER", 3)
    layout = Layout(tmp_path_factory.mktemp("texts"))
    names: tuple[str, ...] = ()
    held = chunks_of({}).select(["chunk_id", "row_hash"])
    for number, version in enumerate(versions):
        files = {f"f{at:02}.py": [f"x{at} {text}", f"y{at}"][: 1 + text % 2] for at, text in version.items()}
        chunks = chunks_of(files)
        before = row_files.Before(names, difference(held, chunks)) if number else None
        rows = chunks.append_column("vector", vectors_of(chunks)["vector"])
        names = row_files.write(layout, KEY, str(number), rows, before)
        held = chunks.select(["chunk_id", "row_hash"])
        assert len(names) <= 1 + 3
        source = _entry(names, chunks.num_rows)
        assert rows_of(layout, source) == made_of(files)
        put_together = replace(source, rows=row_files.merge_row_files(layout, KEY, source))
        assert rows_of(layout, put_together) == made_of(files)


def _entry(names: tuple[str, ...], chunks: int) -> PublishedSource:
    return PublishedSource("v", None, None, 0, chunks, 0, 0, 0, {}, "", rows=names)


def test_many_edits_leave_few_files_and_none_that_nothing_needs(layout):
    for at in range(14):
        source = publish_files(layout, files_of(f07=f"gamma{at} is new"))
        assert len(source.rows) <= 10
    current, before = read_generation(layout), read_generation(layout, previous=True)
    assert current is not None
    assert before is not None
    assert {file.name for file in layout.rows.iterdir()} == row_files.names(current) | row_files.names(before)
    assert rows_of(layout, source) == made_of(files_of(f07="gamma13 is new"))


def test_a_rollback_goes_back_to_the_files_of_before(layout):
    publish_files(layout, files_of())
    publish_files(layout, files_of(f07="gamma is new"))
    roll_back(layout)
    assert found(open_reader(layout), "gamma") == ([], 0)
    assert found(open_reader(layout), "alpha7 ")[1] == 1


def test_of_a_source_that_is_withdrawn_no_file_stays(layout):
    publish_files(layout, files_of())
    withdraw(layout, KEY)
    cleanup.compact(layout, keep_previous=False)
    assert list(layout.rows.iterdir()) == []


def damage(path: Path, kind: str) -> None:
    if kind == "missing":
        path.unlink()
    elif kind == "incomplete":
        rows = tables.read_arrow(path).combine_chunks()
        with atomic_write(path) as temporary:
            tables.write_arrow(temporary, rows.slice(1).to_batches(), rows.schema)
    else:
        path.write_bytes(path.read_bytes()[:-30] if kind == "cut" else b"no Arrow")


KINDS_OF_DAMAGE = pytest.mark.parametrize("kind", ["missing", "cut", "another file"])


@KINDS_OF_DAMAGE
def test_where_a_file_cannot_be_read_the_table_is_asked(layout, kind):
    publish_files(layout, files_of())
    source = publish_files(layout, files_of(f07="gamma is new"))
    expected = [found(open_reader(layout), text) for text in ("gamma", "beta7", "alpha7 ")]
    assert [total for _, total in expected] == [1, 0, 0]
    damage(layout.rows / source.rows[-1], kind)
    reader = open_reader(layout)
    assert [found(reader, text) for text in ("gamma", "beta7", "alpha7 ")] == expected
    mended = publish_files(layout, files_of(f07="gamma is newer"))
    assert len(mended.rows) == 1
    assert rows_of(layout, mended) == made_of(files_of(f07="gamma is newer"))


@KINDS_OF_DAMAGE
def test_the_doctor_reports_a_damaged_file_and_a_publication_of_the_same_rows_writes_it_anew(layout, kind):
    source = publish_files(layout, files_of())
    damage(layout.rows / source.rows[0], kind)
    (finding,) = examine(layout, has_tables=False)
    assert (finding.source, finding.store) == (KEY, "row files")
    assert "missing or damaged" in finding.problem
    mended = publish_files(layout, files_of())
    assert rows_of(layout, mended) == made_of(files_of())
    assert list(examine(layout, has_tables=False)) == []


@pytest.mark.parametrize("kind", ["missing", "cut", "another file", "incomplete"])
def test_a_file_that_was_damaged_when_it_was_read_is_read_again_once_it_is_whole(layout, kind):
    source = publish_files(layout, files_of())
    path = layout.rows / source.rows[0]
    whole = path.read_bytes()
    damage(path, kind)
    damaged = open_reader(layout).parts
    with atomic_write(path) as temporary:
        temporary.write_bytes(whole)
    generation = open_reader(layout).generation
    parts = row_files.open_parts(layout, generation, damaged.by_file, lambda _: pytest.fail("the table is asked"))
    assert sum(len(at) for _, at in parts.of_source(KEY)) == source.chunks
    assert f"{KEY}/{source.version}" not in parts.by_file  # the rows come from the table


def test_a_store_of_before_has_none_and_gets_them_with_the_next_publication(layout):
    publish_files(layout, files_of())
    current = read_generation(layout)
    assert current is not None
    replace_generation(layout, current.with_source(KEY, _without_rows(current.sources[KEY])))
    reader = open_reader(layout)
    assert found(reader, "alpha7 ")[1] == 1
    publish_files(layout, files_of(f07="gamma is new"))
    assert open_reader(layout).generation.sources[KEY].rows


def _without_rows(source: PublishedSource) -> PublishedSource:
    return replace(source, rows=())


def test_a_reader_goes_on_with_files_that_are_gone(layout):
    publish_files(layout, files_of())
    reader = open_reader(layout)
    for at in range(3):
        publish_files(layout, files_of(f07=f"gamma{at} is new"))
    assert found(reader, "alpha7 ")[1] == 1


def test_a_compaction_and_an_erasure_leave_nothing_of_what_is_gone(layout):
    publish_files(layout, files_of(f07=f"{SECRET} is here"))
    source = publish_files(layout, files_of())
    assert len(source.rows) == 2
    assert _holding(layout, SECRET)
    erase_stores(layout)
    assert not _holding(layout, SECRET)
    reader = open_reader(layout)
    assert rows_of(layout, reader.generation.sources[KEY]) == made_of(files_of())
    assert list(examine(layout, has_tables=False)) == []


def test_without_a_generation_to_go_back_to_a_compaction_leaves_one_file(layout):
    publish_files(layout, files_of(f07=f"{SECRET} is here"))
    publish_files(layout, files_of())
    cleanup.compact(layout, keep_previous=False)
    assert not _holding(layout, SECRET)
    assert len(list(layout.rows.iterdir())) == 1


def _holding(layout: Layout, text: str) -> list[str]:
    return [file.name for file in layout.rows.iterdir() if text.encode() in file.read_bytes()]


def test_the_doctor_finds_another_text_and_a_forced_publication_mends_it(layout):
    source = publish_files(layout, files_of())
    path = layout.rows / source.rows[0]
    path.write_bytes(path.read_bytes().replace(b"alpha7 one", b"alpha7 two"))
    (finding,) = examine(layout, has_tables=False)
    assert (finding.source, finding.store) == (KEY, "texts in row files")
    assert "the text of chunk" in finding.problem
    chunks = chunks_of(files_of())
    publish_rows(layout, KEY, chunks, vectors_of(chunks), force=True)
    assert list(examine(layout, has_tables=False)) == []


def test_a_writer_that_was_killed_leaves_nothing_that_stays(layout):
    publish_files(layout, files_of())
    (layout.rows / ".x.arrow.1.tmp").write_bytes(b"half")
    publish_files(layout, files_of(f07="gamma is new"))
    assert not list(layout.rows.glob(".*"))


def test_what_is_no_part_of_a_generation_is_not_found(layout):
    publish_files(layout, files_of())
    publish_files(layout, files_of(50))
    assert found(open_reader(layout), "alpha55") == ([], 0)
    assert pc.sum(pa.array([len(rows) for _, rows in open_reader(layout).parts.of_source(KEY)])).as_py() == 100
