"""The files that spare a search from opening LanceDB: copies that nothing depends on."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.live import LatestReader
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.stores import compaction, lance_table, maintenance, matrix, vector_files
from docindex_dagster.stores.clean_up import compact
from docindex_dagster.stores.doctor import check
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.sieve import Sieve
from tests.conftest import chunks_of, publish_rows, vectors_of

PUMPS = {"lib/pump.py": ["fill fills the tank", "drain empties the tank"], "lib/valve.py": ["shut closes the valve"]}
MORE = {**PUMPS, "lib/relay.py": ["switch starts the motor"]}


def publish_files(layout: Layout, files: dict[str, list[str]], source: str = "library/pumps", **options) -> None:
    chunks = chunks_of(files, source)
    publish_rows(layout, source, chunks, vectors_of(chunks), **options)


def files_of(layout: Layout) -> list[Path]:
    return sorted(layout.vectors.glob("*"))


def hits(layout: Layout) -> list[Hit]:
    return search(open_reader(layout), "close the valve of the tank", StaticEmbedder, mode=Mode.HYBRID)


@pytest.fixture
def published(layout: Layout) -> Layout:
    publish_files(layout, PUMPS)
    return layout


def test_a_search_of_published_sources_does_not_open_lancedb(published):
    reader = open_reader(published)

    assert len(search(reader, "close the valve", StaticEmbedder)) == 3
    assert "table" not in vars(reader)


def test_nothing_below_a_search_imports_lancedb(published):
    code = (
        "import sys; from pathlib import Path; from docindex_dagster.core.layout import Layout;"
        "from docindex_dagster.embedding.static import StaticEmbedder;"
        "from docindex_dagster.search.engine import search;"
        "from docindex_dagster.stores.reader import open_reader;"
        "found = search(open_reader(Layout(Path(sys.argv[1]))), 'close the valve', StaticEmbedder);"
        "print(len(found), 'lancedb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, published.home], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["3", "False"]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def of_another_shape(file: Path) -> None:
    table = pa.table({"chunk_id": ["x"]})
    with pa.ipc.new_file(str(file), table.schema) as out:
        out.write_table(table)


@pytest.mark.parametrize("damage", [Path.unlink, cut, lambda file: file.write_bytes(b"\0" * 500), of_another_shape])
def test_without_its_file_a_source_is_searched_all_the_same(published, damage: Callable[[Path], object]):
    expected = hits(published)
    (file,) = files_of(published)
    damage(file)

    assert hits(published) == expected
    check(published, open_reader(published).generation)


def test_a_file_with_other_vectors_is_found_by_the_doctor_and_mended_by_a_full_run(published):
    expected = hits(published)
    (file,) = files_of(published)
    with pa.ipc.open_file(str(file)) as opened:
        table = opened.read_all()
    turned = table.set_column(
        table.schema.get_field_index("vector"), table.schema.field("vector"), table["vector"].take(pa.array([1, 2, 0]))
    )
    file.unlink()
    with pa.ipc.new_file(str(file), turned.schema) as out:
        out.write_table(turned)

    with pytest.raises(DamagedStoreError, match="library/pumps: vector file: "):
        check(published, open_reader(published).generation)

    publish_files(published, PUMPS, force=True)
    check(published, open_reader(published).generation)
    assert hits(published) == expected


def test_signs_of_other_vectors_are_found_by_the_doctor(layout, monkeypatch):
    monkeypatch.setattr(matrix, "_MOST_BYTES", 0)
    publish_files(layout, PUMPS)
    check(layout, open_reader(layout).generation)
    (file,) = files_of(layout)
    with pa.ipc.open_file(str(file)) as opened:
        table = opened.read_all()
    turned = table.set_column(table.schema.get_field_index("signs"), "signs", table["signs"].take(pa.array([1, 2, 0])))
    file.unlink()
    with pa.ipc.new_file(str(file), turned.schema) as out:
        out.write_table(turned)

    with pytest.raises(DamagedStoreError, match="library/pumps: vector file: signs"):
        check(layout, open_reader(layout).generation)


def test_files_of_generations_that_are_gone_go_and_those_of_the_last_two_stay(layout):
    publish_files(layout, PUMPS)
    publish_files(layout, MORE)
    assert len(files_of(layout)) == 2

    publish_files(layout, PUMPS, "library/others")
    assert len(files_of(layout)) == 2

    withdraw(layout, "library/pumps")
    withdraw(layout, "library/others")
    assert len(files_of(layout)) == 1


def found_in(layout: Layout, source: str = "library/pumps") -> set[tuple[str, float]]:
    return {(hit.chunk_id, round(hit.signals[1].score or 0.0, 3)) for hit in hits(layout) if hit.source == source}


def test_more_than_fits_into_memory_is_sifted_by_signs(layout, monkeypatch):
    publish_files(layout, PUMPS)
    expected = found_in(layout)
    monkeypatch.setattr(matrix, "_MOST_BYTES", 0)
    publish_files(layout, MORE)
    publish_files(layout, PUMPS, "library/others")
    publish_files(layout, PUMPS)

    reader = open_reader(layout)
    assert isinstance(reader.matrix, Sieve)
    assert all(part.signed is not None for part in reader.matrix.parts.values())
    assert found_in(layout) == expected
    assert "table" not in vars(reader)
    check(layout, reader.generation)


def test_while_files_lack_signs_lancedb_is_asked_until_maintenance_has_written_them(layout, monkeypatch):
    publish_files(layout, PUMPS)
    publish_files(layout, PUMPS, "library/others")
    expected = found_in(layout)
    monkeypatch.setattr(matrix, "_MOST_BYTES", 0)
    file, gone = files_of(layout)
    gone.unlink()
    version = open_reader(layout).generation.table_version

    assert open_reader(layout).matrix is None
    assert found_in(layout) == expected

    monkeypatch.setattr(compaction, "_FEWEST_ROWS", 1)
    assert maintenance.maintain(layout)

    reader = open_reader(layout)
    assert isinstance(reader.matrix, Sieve)
    assert reader.generation.table_version >= version
    assert found_in(layout) == expected
    assert files_of(layout) == [file, gone]
    check(layout, reader.generation)


def test_the_signs_of_few_are_found_when_their_file_lacks_them(layout, monkeypatch):
    publish_files(layout, PUMPS)
    expected = found_in(layout)
    dimension = StaticEmbedder.dimension
    monkeypatch.setattr(matrix, "_MOST_BYTES", 4 * 4 * dimension)  # of three chunks, and not of six
    publish_files(layout, PUMPS, "library/others")

    reader = open_reader(layout)
    assert isinstance(reader.matrix, Sieve)
    assert [part.signed is None for part in reader.matrix.parts.values()] == [False, True]
    assert found_in(layout) == expected


def test_what_lies_in_its_file_is_not_copied_into_memory(published):
    part = next(iter(open_reader(published).matrix.parts.values()))

    held = pa.total_allocated_bytes()
    again = vector_files.read(
        published, "library/pumps", open_reader(published).generation.sources["library/pumps"].version
    )

    assert again.stored.shape == part.stored.shape
    assert pa.total_allocated_bytes() - held < again.stored.nbytes


def test_a_program_that_goes_on_reads_only_what_was_published_since(layout):
    publish_files(layout, PUMPS)
    publish_files(layout, PUMPS, "library/others")
    candidate = LatestReader(layout)
    before = candidate.reader().matrix.parts
    publish_files(layout, MORE)

    after = candidate.reader().matrix.parts

    assert {key for key, _ in after} == {"library/pumps", "library/others"}
    kept = [part for key, part in after.items() if before.get(key) is part]
    assert [part.rows["source"][0].as_py() for part in kept] == ["library/others"]
    assert candidate.reader() is candidate.reader()


def test_a_program_that_was_idle_while_its_generation_was_cleared_away_goes_on(layout):
    publish_files(layout, PUMPS)
    candidate = LatestReader(layout)
    candidate.reader()  # whose vectors nobody asked for
    publish_files(layout, MORE)
    publish_files(layout, PUMPS, "library/others")
    for file in files_of(layout):
        file.unlink()
    compact(layout, keep_previous=False)

    assert candidate.reader().matrix is not None
    assert candidate.reader(anew=True).matrix is not None


def test_where_the_vectors_do_not_fit_none_is_read(layout, monkeypatch):
    publish_files(layout, PUMPS)
    for file in files_of(layout):
        file.unlink()
    monkeypatch.setattr(matrix, "_MOST_BYTES", 0)
    monkeypatch.setattr(lance_table, "read_part", lambda *_: pytest.fail("it was read"))

    assert open_reader(layout).matrix is None
