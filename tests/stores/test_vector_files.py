"""Vector files, optional copies that let a search run without opening LanceDB."""

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
from docindex_dagster.search.live_index import LatestReader
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.stores import matrix
from docindex_dagster.stores.cleanup import compact
from docindex_dagster.stores.doctor import check
from docindex_dagster.stores.parts import SIGNS
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

PUMPS = {"lib/pump.py": ["fill fills the tank", "drain empties the tank"], "lib/valve.py": ["shut closes the valve"]}
MORE = {**PUMPS, "lib/relay.py": ["switch starts the motor"]}


def publish_files(layout: Layout, files: dict[str, list[str]], source: str = "library/pumps", **options) -> None:
    chunks = chunks_of(files, source)
    publish_rows(layout, source, chunks, vectors_of(chunks), **options)


def files_of(layout: Layout) -> list[Path]:
    return sorted(layout.rows.glob("*"))


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

    with pytest.raises(DamagedStoreError, match="library/pumps: vectors in row files: "):
        check(published, open_reader(published).generation)

    publish_files(published, PUMPS, force=True)
    check(published, open_reader(published).generation)
    assert hits(published) == expected


def test_signs_of_other_vectors_are_found_by_the_doctor(layout, monkeypatch):
    monkeypatch.setattr(matrix, "_MAX_BYTES", 0)
    publish_files(layout, PUMPS)
    check(layout, open_reader(layout).generation)
    (file,) = files_of(layout)
    with pa.ipc.open_file(str(file)) as opened:
        table = opened.read_all()
    turned = table.set_column(table.schema.get_field_index("signs"), "signs", table["signs"].take(pa.array([1, 2, 0])))
    file.unlink()
    with pa.ipc.new_file(str(file), turned.schema) as out:
        out.write_table(turned)

    with pytest.raises(DamagedStoreError, match="library/pumps: vectors in row files: sign bits"):
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


@pytest.mark.parametrize("lost", [0, 1])
def test_more_than_fits_into_memory_is_sifted_by_signs(layout, monkeypatch, lost):
    publish_files(layout, PUMPS)
    expected = found_in(layout)
    monkeypatch.setattr(matrix, "_MAX_BYTES", 0)
    publish_files(layout, MORE)
    publish_files(layout, PUMPS, "library/others")
    publish_files(layout, PUMPS)
    for file in files_of(layout)[:lost]:
        file.unlink()

    reader = open_reader(layout)
    assert found_in(layout) == expected
    assert [SIGNS in part.batch.schema.names for part, _ in reader.parts.held].count(False) == lost
    check(layout, reader.generation)


def test_what_lies_in_its_file_is_not_copied_into_memory(published):
    part = next(part for part, _ in open_reader(published).parts.held)

    held = pa.total_allocated_bytes()
    again = next(part for part, _ in open_reader(published).parts.held)

    assert again.stored.shape == part.stored.shape
    assert pa.total_allocated_bytes() - held < again.stored.nbytes


def test_a_program_that_goes_on_reads_only_what_was_published_since(layout):
    publish_files(layout, PUMPS)
    publish_files(layout, PUMPS, "library/others")
    candidate = LatestReader(layout)
    before = candidate.reader().parts.by_file
    publish_files(layout, MORE)

    after = candidate.reader().parts.by_file

    assert len(after) == 2
    kept = [part for name, parts in after.items() if before.get(name) is parts for part in parts]
    assert [part.batch["source"][0].as_py() for part in kept] == ["library/others"]
    assert candidate.reader() is candidate.reader()


def test_a_program_that_was_idle_while_its_generation_was_cleared_away_goes_on(layout):
    publish_files(layout, PUMPS)
    candidate = LatestReader(layout)
    candidate.reader()  # its vectors are not read yet
    publish_files(layout, MORE)
    publish_files(layout, PUMPS, "library/others")
    for file in files_of(layout):
        file.unlink()
    compact(layout, keep_previous=False)

    assert candidate.reader().parts.held
    assert candidate.reader(reopen=True).parts.held
