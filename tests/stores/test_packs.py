"""Packs of many small sources' files: opened as one file, with nothing lost, duplicated or left behind."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.links import links
from docindex_dagster.search.engine import search
from docindex_dagster.search.live_index import LatestReader
from docindex_dagster.search.model import Mode
from docindex_dagster.stores import lance_table, link_files, maintenance, matrix, packs, prune
from docindex_dagster.stores.doctor import check, examine, roll_back
from docindex_dagster.stores.generation import Generation, read_generation
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import check_published, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of
from tests.traces import hiding_places, traces

KEYS = [f"library/{name}" for name in ("pumps", "valves", "relays", "tanks", "pipes", "gears")]
SECRET = "xkqzvwjhpfmbtrgd"


def publish_files(layout: Layout, key: str, files: dict[str, list[str]], **options: Any) -> None:
    chunks = chunks_of(files, key)
    vectors = vectors_of(chunks)
    tables.write(layout.table("chunks", key), chunks)
    tables.write(layout.table("embeddings", key), vectors)
    publish_rows(layout, key, chunks, vectors, **options)


def files_of(key: str, text: str = "fills the tank") -> dict[str, list[str]]:
    name = key.rpartition("/")[2]
    return {f"{name}.py": [f"fill_{name} {text}", f"drain_{name} empties it"]}


def published(layout: Layout) -> Generation:
    generation = read_generation(layout)
    assert generation is not None
    return generation


def hits(layout: Layout, mode: Mode = Mode.VECTOR) -> list[tuple[str, float]]:
    found = search(open_reader(layout), "empty the valves of the tank", StaticEmbedder, mode=mode, top_k=20)
    return [(hit.chunk_id, round(hit.score, 6)) for hit in found]


def edges(layout: Layout) -> list[Any]:
    graph = open_reader(layout).graph
    return sorted(
        (graph.ids[row["subject"]], row["predicate"], graph.ids[row["object"]]) for row in graph.edges.to_pylist()
    )


@pytest.fixture(autouse=True, scope="module")
def _due_early() -> Iterator[None]:
    """Make packing due at this test's number of sources."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "_MAX_LOOSE", len(KEYS))
        yield


@pytest.fixture(scope="module")
def loose_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("loose"))
    for key in KEYS:
        publish_files(layout, key, files_of(key))
    return layout.home


@pytest.fixture(scope="module")
def packed_once(loose_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(shutil.copytree(loose_once, tmp_path_factory.mktemp("packed") / "home"))
    assert maintenance.bring_up_to_date(layout)
    publish_files(layout, KEYS[0], files_of(KEYS[0], "fills two tanks"))
    publish_files(layout, KEYS[0], files_of(KEYS[0]))
    return layout.home


@pytest.fixture
def loose(layout: Layout, loose_once: Path) -> Layout:
    """Sources that are due to be packed."""
    shutil.copytree(loose_once, layout.home)
    return layout


@pytest.fixture
def packed(layout: Layout, packed_once: Path) -> Layout:
    """Sources in one pack; the previous generation no longer has separate files for them."""
    shutil.copytree(packed_once, layout.home)
    return layout


def test_packing_changes_no_answer_and_no_entry_but_for_the_pack(loose):
    link_files.bring_up_to_date(loose)
    before, expected = published(loose), [hits(loose), hits(loose, Mode.GRAPH), edges(loose)]
    assert maintenance.why_due(loose) == "6 small sources have files of their own"

    [done] = maintenance.maintain(loose)

    assert (done.packed, done.rows) == (6, 0)
    assert {source.pack for source in published(loose).sources.values()} == {*packs.sources_by_pack(published(loose))}
    assert len(packs.sources_by_pack(published(loose))) == 1
    assert [hits(loose), hits(loose, Mode.GRAPH), edges(loose)] == expected
    assert published(loose).graph_files() == before.graph_files()
    assert link_files.read(loose, published(loose)) is not None
    assert list(examine(loose)) == []
    assert not maintenance.why_due(loose)


def test_a_packed_source_is_opened_without_files_of_its_own_and_without_lancedb(packed):
    assert {file.name.partition(".")[0] for file in packed.packs.iterdir()} == set(
        packs.sources_by_pack(published(packed))
    )
    assert len(list(packed.rows.iterdir())) == 2  # from the source that was published twice more
    reader = open_reader(packed)

    assert len(reader.parts.held) == 2
    assert "table" not in vars(reader)


def test_what_is_published_again_is_found_once_and_as_it_is_now(packed):
    publish_files(packed, KEYS[1], files_of(KEYS[1], "closes the valves"))

    found = [chunk_id for chunk_id, _ in hits(packed)]
    assert len(found) == len(set(found)) == 2 * len(KEYS)
    assert [source.pack is None for source in published(packed).sources.values()].count(True) == 2
    assert list(examine(packed)) == []
    nearest = search(open_reader(packed), "closes the valves", StaticEmbedder, mode=Mode.VECTOR)[0]
    assert nearest.source == KEYS[1]


def test_what_is_gone_is_not_found(packed):
    withdraw(packed, KEYS[2])

    assert len(hits(packed)) == 2 * (len(KEYS) - 1)
    assert not any(KEYS[2] in edge[0] for edge in edges(packed))
    assert list(examine(packed)) == []


def test_a_rollback_finds_what_is_in_packs_and_what_is_not(packed):
    publish_files(packed, KEYS[1], files_of(KEYS[1], "closes the valves"))
    expected = hits(packed)
    roll_back(packed)
    assert list(examine(packed)) == []

    roll_back(packed)

    assert hits(packed) == expected
    check(packed, published(packed))


def test_publishing_the_same_again_leaves_it_in_its_pack(packed):
    before = published(packed)

    publish_files(packed, KEYS[3], files_of(KEYS[3]))

    assert published(packed).sources == before.sources


def test_a_pack_that_is_half_empty_is_written_anew_with_others(packed, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_LOOSE", 3)
    first = set(packs.sources_by_pack(published(packed)))
    for key in KEYS[1:3]:
        publish_files(packed, key, files_of(key, "is another"))
    assert maintenance.bring_up_to_date(packed)
    assert len(packs.sources_by_pack(published(packed))) == 1

    for key in KEYS[:2]:
        publish_files(packed, key, files_of(key, "is a third"))

    assert not first & packs.sources_by_pack(published(packed)).keys()
    assert not any(pack in file.name for pack in first for file in packed.packs.iterdir())
    assert list(examine(packed)) == []


def test_a_full_pack_stays_as_it_is(packed, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_LOOSE", 2)
    monkeypatch.setattr(packs, "_HALF_FULL", 4)
    publish_files(packed, KEYS[1], files_of(KEYS[1], "is another"))

    assert maintenance.bring_up_to_date(packed)

    assert sorted(len(keys) for keys in packs.sources_by_pack(published(packed)).values()) == [2, 4]


def test_a_source_whose_vectors_were_lost_before_is_searched_all_the_same(loose):
    expected = hits(loose)
    next(loose.rows.glob("*valves*")).unlink()

    maintenance.maintain(loose)

    assert hits(loose) == expected
    check(loose, published(loose))


def test_a_pack_holds_so_many_sources(loose, monkeypatch):
    monkeypatch.setattr(packs, "_MAX_SOURCES", 4)

    maintenance.maintain(loose)

    assert sorted(len(keys) for keys in packs.sources_by_pack(published(loose)).values()) == [2, 4]
    assert list(examine(loose)) == []
    assert len(hits(loose)) == 2 * len(KEYS)


def test_a_large_source_has_files_of_its_own(loose, monkeypatch):
    monkeypatch.setattr(packs, "_SMALL", 1)

    assert not maintenance.why_due(loose)


@pytest.mark.parametrize("change", [lambda layout: publish_files(layout, KEYS[1], files_of(KEYS[1], "is new"))])
def test_what_is_published_meanwhile_has_files_of_its_own(loose, monkeypatch, change: Callable[[Layout], object]):
    packing_ = maintenance.pack

    def pack(*rest: Any) -> dict[str, str]:
        done = packing_(*rest)
        change(loose)
        withdraw(loose, KEYS[2])
        return done

    monkeypatch.setattr(maintenance, "pack", pack)
    maintenance.maintain(loose)

    sources = published(loose).sources
    assert sources.keys() == set(KEYS) - {KEYS[2]}
    assert [key for key, source in sources.items() if source.pack is None] == [KEYS[1]]
    assert list(examine(loose)) == []


@pytest.mark.parametrize("step", ["write_graphs", "move", "sources_by_pack"])
def test_killed_anywhere_it_leaves_a_whole_index(loose, step):
    expected = hits(loose)
    code = (
        "import os, sys; from pathlib import Path; from docindex_dagster.core.layout import Layout;"
        "from docindex_dagster.stores import maintenance, packs, cleanup;"
        f"maintenance._MAX_LOOSE = {len(KEYS)}; done = packs.{step};"
        f"packs.{step} = lambda *rest: (done(*rest), os._exit(9)) if '{step}' != 'sources_by_pack' else done(*rest);"
        f"cleanup.remove_old_generations = lambda *_: os._exit(9);"
        "maintenance.maintain(Layout(Path(sys.argv[1])))"
    )
    assert subprocess.run([sys.executable, "-c", code, loose.home], check=False).returncode == 9
    assert hits(loose) == expected
    assert list(examine(loose)) == []

    maintenance.bring_up_to_date(loose)
    publish_files(loose, KEYS[0], files_of(KEYS[0], "is new"))

    assert len(list(loose.packs.iterdir())) == 2
    assert list(examine(loose)) == []


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:300])


@pytest.mark.parametrize("damage", [Path.unlink, cut, lambda file: file.write_bytes(b"\0" * 500)])
def test_without_its_vectors_a_pack_is_searched_all_the_same(packed, damage: Callable[[Path], object]):
    expected = hits(packed)
    [file] = packed.packs.glob("*.rows.arrow")
    damage(file)

    assert hits(packed) == expected
    check(packed, published(packed))


@pytest.mark.parametrize("damage", [Path.unlink, cut, lambda file: file.write_bytes(b"\0" * 500)])
def test_a_pack_of_graphs_that_is_damaged_is_reported_and_mended_by_full_runs(packed, damage: Callable[[Path], object]):
    expected = edges(packed)
    [file] = packed.packs.glob("*.graphs.arrow")
    damage(file)
    with pytest.raises(DamagedStoreError, match=r"graph file .* is missing"):
        check_published(packed)
    assert {finding.store for finding in examine(packed)} == {"graph"}

    for key in KEYS:
        publish_files(packed, key, files_of(key), force=True)

    assert list(examine(packed)) == []
    assert edges(packed) == expected


def test_vectors_of_a_pack_that_are_others_are_found_by_the_doctor(packed):
    [file] = packed.packs.glob("*.rows.arrow")
    with pa.ipc.open_file(str(file)) as opened:
        table = opened.read_all()
    turned = table["vector"].take(pa.array([*range(1, table.num_rows), 0]))
    turned = table.set_column(table.schema.get_field_index("vector"), table.schema.field("vector"), turned)
    file.unlink()
    with pa.ipc.new_file(str(file), turned.schema) as out:
        out.write_table(turned)

    assert {finding.store for finding in examine(packed)} == {"vectors in row files"}


def test_an_erasure_leaves_nothing_in_packs_of_what_is_gone(loose):
    publish_files(loose, KEYS[0], {f"{SECRET}.py": [f"{SECRET} = 'hunter2'"]})
    maintenance.maintain(loose)
    publish_files(loose, KEYS[0], files_of(KEYS[0]))
    withdraw(loose, KEYS[1])
    expected = hits(loose), edges(loose)

    prune.erase_stores(loose)

    assert {place for place in traces(loose.home, SECRET, KEYS[1]) if not place.startswith("tables/")} == set()
    assert hiding_places(loose.home) == []
    [pack] = packs.sources_by_pack(published(loose))
    assert packs.graphs(loose, pack).keys() == published(loose).graph_files() - published(loose).loose_graph_files()
    assert tables.read_arrow(packs.rows_file(loose.packs, pack)).num_rows == 2 * (len(KEYS) - 2)
    assert (hits(loose), edges(loose)) == expected
    assert list(examine(loose)) == []


def test_a_program_that_goes_on_reads_a_pack_once(packed):
    latest = LatestReader(packed)
    before = latest.reader().parts.by_file
    publish_files(packed, KEYS[1], files_of(KEYS[1], "closes the valves"))

    after = latest.reader().parts

    [pack] = packs.sources_by_pack(published(packed))
    [name] = [each for each in before if each.startswith(packs.rows_file(packed.packs, pack).name)]
    assert after.by_file[name] is before[name]
    assert [live.sum() for part, live in after.held if part in before[name]] == [2 * (len(KEYS) - 2)]


def test_a_graph_that_is_read_before_its_pack_is_removed_is_whole(packed):
    reader = open_reader(packed)
    expected = links(open_reader(packed).graph)
    for file in packed.packs.iterdir():
        file.unlink()

    assert links(reader.graph).targets.tolist() == expected.targets.tolist()


def test_rows_whose_files_are_lost_are_in_the_pack_with_their_signs(loose, monkeypatch):
    expected = hits(loose)
    for file in loose.rows.iterdir():
        file.unlink()

    maintenance.maintain(loose)

    monkeypatch.setattr(lance_table, "in_order", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(matrix, "_MAX_BYTES", 0)
    found = hits(loose)
    assert [chunk_id for chunk_id, _ in found] == [chunk_id for chunk_id, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)
    assert len(open_reader(loose).parts.held) == 1
    monkeypatch.undo()
    assert list(examine(loose)) == []
