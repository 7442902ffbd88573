"""`docindex prune --erase` removes every byte of a deleted text that was indexed by accident."""

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from docindex_dagster.chunking.summaries import SummaryCache
from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, ErasureError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.embedding.cache import VectorCache, VectorSpill
from docindex_dagster.search.live_index import LatestReader
from docindex_dagster.stores import lance_table, takeover, tantivy_index
from docindex_dagster.stores import prune as prune_module
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.prune import prune
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of
from tests.traces import hiding_places, traces

KEY, OTHER = "library/sample", "git/other"
SECRET = "xkqzvwjhpfmbtrgd"  # contains no word, so compression cannot hide it
FILES = {f"{number}.py": [f"alpha{number} reads a file"] for number in range(30)}  # one deletion compacts nothing
WITH_SECRET = {**FILES, f"{SECRET}.py": [f"{SECRET} = 'hunter2'"]}


def publish_files(layout: Layout, files: dict[str, list[str]], key: str = KEY) -> None:
    chunks = chunks_of(files, key)
    vectors = vectors_of(chunks)
    tables.write(layout.table("chunks", key), chunks)
    tables.write(layout.table("embeddings", key), vectors)
    publish_rows(layout, key, chunks, vectors)


def ids_of_secret(key: str = KEY) -> list[str]:
    chunks = chunks_of(WITH_SECRET, key)
    gone = chunks.filter(pc.equal(chunks["symbol_name"], SECRET))
    return [gone[column][0].as_py() for column in ("chunk_id", "row_hash", "embed_text_hash")]


@pytest.fixture(scope="module")
def removed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("erasure"))
    publish_files(layout, {"b.py": ["omega never changes"]}, OTHER)
    publish_files(layout, WITH_SECRET)
    publish_files(layout, FILES)
    return layout.home


@pytest.fixture
def removed(layout: Layout, removed_once: Path) -> Layout:
    """A home in which a file with a secret was indexed and then removed."""
    shutil.copytree(removed_once, layout.home)
    return layout


def test_of_a_removed_file_nothing_is_left(removed):
    home = removed.home
    stores = {Path(place).parts[1] for place in traces(home, SECRET) if place.startswith("stores/")}
    assert stores == {"lance", "tantivy", "graph", "rows"}
    assert hiding_places(home) != []
    rows = vectors_of(chunks_of(WITH_SECRET)).select(["embed_text_hash", "model", "vector"])
    VectorCache(removed, KEY).add(rows)
    VectorSpill(removed, KEY).add(rows)
    with SummaryCache(removed, KEY).adding() as add:
        add("key", f"Defines {SECRET}.")

    prune(removed, {KEY, OTHER}, erase=True)

    assert traces(home, SECRET, *ids_of_secret()) == set()
    assert hiding_places(home) == []
    assert list(examine(removed)) == []
    assert open_reader(removed).table.count_rows() == len(FILES) + 1


def test_of_a_removed_source_nothing_is_left(layout):
    publish_files(layout, FILES)
    publish_files(layout, WITH_SECRET, OTHER)
    withdraw(layout, OTHER)

    prune(layout, {KEY}, erase=True)

    assert traces(layout.home, SECRET, OTHER, *ids_of_secret(OTHER)) == set()
    assert hiding_places(layout.home) == []
    assert list(examine(layout)) == []


def test_there_is_no_way_back(removed):
    prune(removed, {KEY, OTHER}, erase=True)

    with pytest.raises(StoreError, match="no previous generation"):
        roll_back(removed)
    publish_files(removed, {**FILES, "new.py": ["delta is new"]})
    assert roll_back(removed).sources[KEY].chunks == len(FILES)
    assert list(examine(removed)) == []


def test_a_generation_that_is_to_take_over_is_given_up(removed):
    removed.next.write_bytes(removed.previous(read_generation(removed).previous).read_bytes())

    prune(removed, {KEY, OTHER}, erase=True)

    assert not removed.next.exists()


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (tantivy_index, "fill"),
        (prune_module, "replace_generation"),
        (takeover, "drop"),
        (lance_table, "drop_other_versions"),
    ],
)
def test_stopped_anywhere_it_leaves_a_whole_index_and_the_next_one_goes_on(removed, monkeypatch, module, step):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, stop)
    with pytest.raises(KeyboardInterrupt):
        prune(removed, {KEY, OTHER}, erase=True)
    monkeypatch.undo()
    assert list(examine(removed)) == []

    prune(removed, {KEY, OTHER}, erase=True)

    assert traces(removed.home, SECRET, *ids_of_secret()) == set()
    assert hiding_places(removed.home) == []
    assert list(examine(removed)) == []


def test_what_a_killed_writer_left_before_it_had_a_name_goes_as_well(removed):
    [data] = removed.lance.glob("*/data")
    left = data / ".tmpHiaqNW"  # LanceDB's naming scheme
    left.write_text(SECRET)

    prune(removed, {KEY, OTHER}, erase=True)

    assert traces(removed.home, SECRET) == set()
    assert not left.exists()


def test_what_was_copied_badly_is_not_published(removed, monkeypatch):
    before = removed.current.read_bytes()
    chunks = lance_table.chunks
    monkeypatch.setattr(lance_table, "chunks", lambda table: (rows.slice(1) for rows in chunks(table)))

    with pytest.raises(DamagedStoreError):
        prune(removed, {KEY, OTHER}, erase=True)

    assert removed.current.read_bytes() == before
    assert list(examine(removed)) == []
    assert roll_back(removed).sources[KEY].chunks == len(WITH_SECRET)


def test_a_program_that_searches_goes_on_with_the_erased_index(removed):
    latest = LatestReader(removed)
    assert latest.reader().table.count_rows() == len(FILES) + 1

    prune(removed, {KEY, OTHER}, erase=True)

    reader = latest.reader()
    assert reader.table.count_rows() == reader.searcher.num_docs == len(FILES) + 1


def test_what_a_run_uses_is_reported_to_be_left(removed):
    VectorSpill(removed, KEY).add(vectors_of(chunks_of(FILES)).select(["embed_text_hash", "model", "vector"]))

    with exclusive_if_free(removed.source_lock(KEY), "a run"):
        found = prune(removed, {KEY, OTHER}, erase=True)

    assert [(orphan.path, orphan.is_busy) for orphan in found] == [(removed.spilled_vectors(KEY), True)]


@pytest.mark.parametrize("left", [f"{SECRET} = 'hunter2'", SECRET, ids_of_secret()[0]])
def test_a_file_that_still_holds_erased_text_is_an_error_until_it_is_gone(removed, left):
    stray = removed.home / "copy.txt"
    stray.write_text(f"by hand: {left}")

    for _ in range(2):  # the second erasure finds no other trace of the text
        with pytest.raises(ErasureError, match=r"copy\.txt still contains erased text"):
            prune(removed, {KEY, OTHER}, erase=True)

    stray.unlink()
    prune(removed, {KEY, OTHER}, erase=True)
    assert not removed.erased.exists()


def test_an_erasure_after_one_that_was_stopped_searches_for_the_same_texts(removed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(prune_module, "_candidates", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prune(removed, {KEY, OTHER}, erase=True)
    (removed.home / "copy.txt").write_text(SECRET)

    with pytest.raises(ErasureError, match=r"copy\.txt"):
        prune(removed, {KEY, OTHER}, erase=True)


def test_a_text_that_another_file_still_holds_is_not_erased(removed):
    publish_files(removed, {"b.py": [f"omega quotes {SECRET} = 'hunter2'"]}, OTHER)

    prune(removed, {KEY, OTHER}, erase=True)

    assert {Path(place).parts[1] for place in traces(removed.home, SECRET) if place.startswith("stores/")} >= {"rows"}
    assert traces(removed.home, *ids_of_secret()) == set()


def test_an_erased_text_may_quote_what_the_stores_write_themselves(removed):
    [meta] = (removed.tantivy / read_generation(removed).tantivy).glob("meta.json")
    publish_files(removed, {**FILES, "quote.py": [f"meta {meta.read_text()}"]})
    publish_files(removed, FILES)

    prune(removed, {KEY, OTHER}, erase=True)

    assert not removed.erased.exists()
