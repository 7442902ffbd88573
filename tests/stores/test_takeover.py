"""A model change: the new index is built next to the old one and takes over once it holds every source."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.live_index import LatestReader
from docindex_dagster.search.model import Mode
from docindex_dagster.stores import cleanup, lance_table, maintenance, row_files, staging, takeover
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import read_generation, read_next
from docindex_dagster.stores.prune import orphans, prune
from docindex_dagster.stores.publish import Publication, publish, withdraw
from docindex_dagster.stores.reader import open_for_model, open_reader
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model
from tests.conftest import chunks_of, extracted, publish_rows
from tests.models import TinyEmbedder

TEXTS = {"library/a": "alpha reads a file", "library/b": "beta sorts numbers", "git/c": "gamma opens a socket"}
FIRST, *OTHERS = TEXTS
LAST = OTHERS[-1]
OLD, NEW, THIRD = StaticEmbedder(), TinyEmbedder(), TinyEmbedder("third", 16)


def embed_and_write(layout: Layout, key: str, embedder: Embedder, text: str) -> SourceRows:
    """Write what a run leaves behind if it dies before it publishes."""
    chunks = chunks_of({"a.py": [text]}, key)
    vectors = build_embeddings(chunks, None, embedder, key).table
    tables.write(layout.table("chunks", key), chunks)
    tables.write(layout.table("embeddings", key), vectors)
    return SourceRows(key, chunks, vectors, extracted(layout, key, chunks))


def index(layout: Layout, key: str, embedder: Embedder, text: str | None = None, *, force: bool = False) -> Publication:
    rows = embed_and_write(layout, key, embedder, text or TEXTS[key])
    return publish(layout, rows, Model.of(embedder), force=force)


def index_all(layout: Layout, embedder: Embedder) -> None:
    for key in TEXTS:
        index(layout, key, embedder)


def found(layout: Layout, embedder: Embedder, mode: Mode) -> dict[str, str]:
    """Return the source of the first hit for each text."""
    reader = open_reader(layout)
    return {text: search(reader, text, lambda: embedder, mode=mode, top_k=1)[0].source for text in TEXTS.values()}


def finds_all(layout: Layout, embedder: Embedder) -> bool:
    everything = {text: key for key, text in TEXTS.items()}
    return all(found(layout, embedder, mode) == everything for mode in (Mode.BM25, Mode.VECTOR, Mode.HYBRID))


def held(layout: Layout) -> list[str]:
    generation = read_generation(layout)
    return sorted(generation.sources) if generation else []


def coming(layout: Layout) -> list[str]:
    candidate = read_next(layout)
    return sorted(candidate.sources) if candidate else []


def tables_there(layout: Layout) -> set[str]:
    return {folder.name.removesuffix(".lance") for folder in layout.lance.iterdir()}


def stray_files(layout: Layout) -> set[str]:
    """Return the store files that no kept generation names."""
    kept = cleanup.kept(layout)
    needed = {name for generation in kept for name in generation.graph_files()} | {g.tantivy for g in kept}
    there = {path.name for folder in (layout.tantivy, layout.graph) for path in folder.iterdir()}
    rows = {path.name for path in layout.rows.iterdir()}
    return (there - needed) | (rows - {name for generation in kept for name in row_files.names(generation)})


@pytest.fixture(scope="module")
def old_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("old"))
    index_all(layout, OLD)
    return layout.home


@pytest.fixture(scope="module")
def half_once(old_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(shutil.copytree(old_once, tmp_path_factory.mktemp("half") / "home"))
    index(layout, FIRST, NEW)
    return layout.home


@pytest.fixture
def old(layout: Layout, old_once: Path) -> Layout:
    """An index of three sources with the old model."""
    shutil.copytree(old_once, layout.home)
    return layout


@pytest.fixture
def half(layout: Layout, half_once: Path) -> Layout:
    """The same index, with the first source also indexed by the new model."""
    shutil.copytree(half_once, layout.home)
    return layout


def test_searches_find_every_source_by_the_old_model_until_the_new_one_has_all(old):
    before = old.current.read_bytes()
    for done, key in enumerate(OTHERS, start=1):
        publication = index(old, key, NEW)
        assert str(publication.takeover).endswith(f"from {OLD.name} to tiny: {done} of 3 sources are done")
        assert publication.takeover.missing
        assert finds_all(old, OLD)
        assert old.current.read_bytes() == before

    publication = index(old, FIRST, NEW)

    assert publication.takeover is None
    assert not old.next.exists()
    assert read_generation(old).model == "tiny"
    assert finds_all(old, NEW)
    assert list(examine(old)) == []


def test_a_reader_that_follows_sees_the_takeover(half):
    candidate = LatestReader(half)
    assert candidate.reader().parts.held
    for key in OTHERS:
        index(half, key, NEW)

    hits = search(candidate.reader(), TEXTS[LAST], lambda: NEW, mode=Mode.VECTOR, top_k=1)

    assert hits[0].source == LAST


def test_what_next_holds_is_not_published_again_and_what_it_lacks_is_not_known(half):
    rows = embed_and_write(half, FIRST, NEW, TEXTS[FIRST])
    before = half.next.read_bytes()

    again = publish(half, rows, Model("tiny", 8))

    assert not again.is_new
    assert again.takeover.missing == tuple(sorted(OTHERS))
    assert half.next.read_bytes() == before


def test_a_source_is_taken_along_whose_tables_have_vectors_of_the_new_model(old):
    embed_and_write(old, LAST, NEW, TEXTS[LAST])

    publication = index(old, FIRST, NEW)

    assert coming(old) == sorted([FIRST, LAST])
    assert publication.takeover.missing == ("library/b",)
    assert publication.warnings == (f"{publication.takeover}. Searches use {OLD.name} until then",)


def test_edits_meanwhile_are_in_the_new_index(half):
    index(half, FIRST, NEW, "omega is what alpha became")
    for key in OTHERS:
        index(half, key, NEW)

    assert search(open_reader(half), "omega", lambda: NEW, mode=Mode.BM25, top_k=1)[0].source == FIRST
    assert list(examine(half)) == []


def test_a_source_that_is_new_comes_with_the_takeover(half):
    chunks = chunks_of({"a.py": ["delta is new"]}, "library/new")
    publish_rows(half, "library/new", chunks, build_embeddings(chunks, None, NEW, "").table, Model("tiny", 8))
    assert "library/new" not in held(half)

    for key in OTHERS:
        index(half, key, NEW)

    assert held(half) == sorted([*TEXTS, "library/new"])


@pytest.mark.parametrize("name", ["replace_next", "write_generation"])
def test_a_writer_that_died_before_next_or_the_takeover_was_named_is_undone_by_the_next(half, monkeypatch, name):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    if name == "write_generation":
        index(half, OTHERS[0], NEW)
    key, before = (LAST if name == "write_generation" else OTHERS[0]), coming(half)
    monkeypatch.setattr(takeover, name, die)
    monkeypatch.setattr(cleanup, "remove_old_generations", lambda _: None)
    with pytest.raises(Killed):
        index(half, key, NEW)
    monkeypatch.undo()

    assert coming(half) == before
    assert finds_all(half, OLD)
    for left in OTHERS:
        index(half, left, NEW)
    assert finds_all(half, NEW)
    assert list(examine(half)) == []
    assert stray_files(half) == set()


def test_a_writer_that_died_between_the_takeover_and_the_removal_of_next_left_nothing_to_mind(half, monkeypatch):
    index(half, OTHERS[0], NEW)
    monkeypatch.setattr(takeover, "drop", lambda _: None)
    index(half, LAST, NEW)
    monkeypatch.undo()
    assert half.next.exists()
    assert takeover.pending(half) is None
    assert takeover.migration_progress(half, "tiny") is None

    publication = index(half, LAST, NEW)

    assert publication.warnings == ()
    assert not half.next.exists()
    assert finds_all(half, NEW)


def test_withdrawing_a_source_takes_it_out_of_both(half):
    withdraw(half, FIRST)

    assert held(half) == sorted(OTHERS)
    assert coming(half) == []
    assert half.next.exists()
    for key in OTHERS:
        index(half, key, NEW)
    assert held(half) == sorted(OTHERS)
    assert read_generation(half).model == "tiny"
    assert list(examine(half)) == []


def test_withdrawing_the_last_source_that_is_missing_takes_over(half):
    index(half, OTHERS[0], NEW)

    assert withdraw(half, LAST).model == "tiny"

    assert held(half) == sorted([FIRST, OTHERS[0]])
    assert not half.next.exists()
    assert found(half, NEW, Mode.VECTOR)[TEXTS[FIRST]] == FIRST
    assert list(examine(half)) == []
    assert roll_back(half).model == OLD.name


def test_withdrawing_all_sources_leaves_a_new_model_free_to_begin(half):
    for key in TEXTS:
        withdraw(half, key)
    assert held(half) == []

    index(half, FIRST, THIRD)

    assert (held(half), read_generation(half).model) == ([FIRST], "third")


def test_changing_back_drops_next_and_publications_go_to_current(half):
    publication = index(half, LAST, OLD, "gamma changed its mind")

    assert publication.takeover is None
    assert publication.warnings == (f"the pending index of tiny was discarded: the model is now {OLD.name}",)
    assert not half.next.exists()
    assert read_generation(half).model == OLD.name
    assert held(half) == sorted(TEXTS)
    assert tables_there(half) == {lance_table.table_name(OLD.name)}
    assert stray_files(half) == set()
    assert search(open_reader(half), "mind", lambda: OLD, mode=Mode.BM25, top_k=1)[0].source == LAST


def test_changing_back_without_any_change_of_a_source_drops_next_too(half):
    index(half, LAST, OLD)

    assert not half.next.exists()
    assert tables_there(half) == {lance_table.table_name(OLD.name)}
    assert stray_files(half) == set()


def test_a_third_model_replaces_the_one_that_was_to_take_over(half):
    publication = index(half, LAST, THIRD)

    assert "the pending index of tiny was discarded" in publication.warnings[0]
    assert (read_next(half).model, coming(half)) == ("third", [LAST])
    assert tables_there(half) == {lance_table.table_name(name) for name in (OLD.name, "third")}
    assert finds_all(half, OLD)
    index_all(half, THIRD)
    assert finds_all(half, THIRD)
    assert stray_files(half) == set()


def test_no_table_folder_or_file_stays_of_a_model_that_no_generation_names(old):
    index_all(old, NEW)
    assert tables_there(old) == {lance_table.table_name(name) for name in (OLD.name, "tiny")}  # a rollback needs it

    index(old, FIRST, NEW, "alpha was edited")

    assert tables_there(old) == {lance_table.table_name("tiny")}
    assert stray_files(old) == set()
    assert read_generation(old, previous=True).model == "tiny"


def test_clean_up_and_prune_spare_what_next_needs(half):
    time_of_next = half.next.read_bytes()

    cleanup.remove_old_generations(half)
    assert orphans(half, TEXTS) == []
    assert prune(half, TEXTS, keep_previous=False) == []

    assert half.next.read_bytes() == time_of_next
    assert list(examine(half)) == []
    for key in OTHERS:
        index(half, key, NEW)
    assert finds_all(half, NEW)


def test_no_two_generations_have_one_number(half):
    numbers = {read_generation(half).number, read_generation(half, previous=True).number, read_next(half).number}
    assert len(numbers) == 3
    shutil.rmtree(half.tantivy / read_next(half).tantivy)

    assert cleanup.next_number(half) > max(numbers)


def test_a_rollback_after_the_takeover_goes_back_to_the_old_model_and_the_next_run_takes_over_again(old):
    index_all(old, NEW)

    assert roll_back(old).model == OLD.name
    assert finds_all(old, OLD)

    publication = index(old, LAST, NEW, "gamma changed its mind")
    assert publication.takeover is None  # the other tables already had vectors of the new model
    assert read_generation(old).model == "tiny"
    assert held(old) == sorted(TEXTS)
    assert list(examine(old)) == []


def test_a_second_rollback_undoes_the_first(old):
    index_all(old, NEW)

    roll_back(old)
    assert roll_back(old).model == "tiny"

    assert finds_all(old, NEW)


def test_a_rollback_half_way_keeps_the_index_that_is_to_take_over(half):
    roll_back(half)

    assert coming(half) == [FIRST]
    assert list(examine(half)) == []
    for key in OTHERS:
        index(half, key, NEW)
    assert finds_all(half, NEW)


def test_after_a_rollback_to_fewer_sources_a_run_without_changes_takes_over(old):
    index(old, FIRST, NEW)
    index(old, OTHERS[0], NEW)
    roll_back(old)  # to the generation before the last source was added
    assert held(old) == sorted([FIRST, OTHERS[0]])

    publication = index(old, FIRST, NEW)

    assert publication.takeover is None
    assert read_generation(old).model == "tiny"
    assert list(examine(old)) == []


def test_the_former_model_can_come_back_beside_the_generation_that_a_rollback_needs(old):
    index_all(old, NEW)
    index(old, FIRST, OLD)  # also in the table that `PREVIOUS` names

    assert roll_back(old).model == OLD.name

    assert not old.next.exists()  # it used the model that searches use now
    assert finds_all(old, OLD)
    index(old, FIRST, OLD, "alpha was edited")
    assert list(examine(old)) == []


def test_maintaining_the_table_of_the_former_model_spares_the_one_that_a_rollback_needs(old, monkeypatch):
    monkeypatch.setattr(lance_table, "_GRACE", timedelta(0))
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 1)
    index_all(old, NEW)
    assert maintenance.bring_up_to_date(old)
    for text in ("one", "two"):
        index(old, FIRST, OLD, f"alpha {text}")
        assert maintenance.bring_up_to_date(old)
    assert len(list(old.lance.iterdir())) == 3  # those of `CURRENT`, `PREVIOUS` and `NEXT`

    assert roll_back(old).model == OLD.name
    assert finds_all(old, OLD)


UNREADABLE: dict[str, Callable[[Layout], object]] = {
    "NEXT": lambda layout: layout.next.write_text("{"),
    "Tantivy": lambda layout: shutil.rmtree(layout.tantivy / read_next(layout).tantivy),
    "LanceDB": lambda layout: shutil.rmtree(layout.lance / f"{read_next(layout).table}.lance"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_candidate_that_cannot_be_read_is_built_anew_with_a_warning(half, what):
    UNREADABLE[what](half)
    assert {"pending" in finding.store for finding in examine(half)} == {True}
    assert finds_all(half, OLD)

    publication = index(half, OTHERS[0], NEW)

    assert any("pending index was discarded" in text or "rebuilt" in text for text in publication.warnings)
    assert coming(half) == sorted([FIRST, OTHERS[0]])
    assert list(examine(half)) == []
    index(half, LAST, NEW)
    assert finds_all(half, NEW)


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_source_can_be_withdrawn_though_the_candidate_cannot_be_read(half, what):
    UNREADABLE[what](half)

    withdraw(half, FIRST)
    for asset in ("chunks", "embeddings"):
        half.table(asset, FIRST).unlink()

    assert held(half) == sorted(OTHERS)
    for key in OTHERS:
        assert read_generation(half).model == OLD.name
        index(half, key, NEW)
    assert (held(half), read_generation(half).model) == (sorted(OTHERS), "tiny")
    assert list(examine(half)) == []


def test_the_doctor_finds_both_indexes_whole_half_way(half):
    assert list(examine(half)) == []


def test_the_doctor_says_what_is_wrong_with_the_candidate_and_a_full_run_mends_it(half):
    [name] = read_next(half).sources[FIRST].rows
    table = tables.read_arrow(half.rows / name)
    turned = pa.array(-table["vector"].combine_chunks().values.to_numpy())
    turned = pa.FixedSizeListArray.from_arrays(turned, table.schema.field("vector").type.list_size)
    tables.write_arrow(
        half.rows / "turned",
        table.set_column(table.schema.get_field_index("vector"), "vector", turned).to_batches(),
        table.schema,
    )
    (half.rows / "turned").replace(half.rows / name)

    findings = list(examine(half))

    assert {(one.source, one.store) for one in findings} == {(FIRST, "vectors in row files (of the pending index)")}
    index(half, FIRST, NEW, force=True)
    assert list(examine(half)) == []


def test_each_model_has_the_generation_that_its_publications_go_on_from(half):
    assert sorted(open_for_model(half, "tiny").generation.sources) == [FIRST]
    assert sorted(open_for_model(half, OLD.name).generation.sources) == sorted(TEXTS)
    with pytest.raises(StoreError):
        open_for_model(half, "third")


def test_while_current_cannot_be_read_nothing_of_next_is_removed(half):
    half.current.write_text("{")

    cleanup.remove_old_generations(half)

    assert (half.tantivy / read_next(half).tantivy).is_dir()
    assert lance_table.table_name("tiny") in tables_there(half)
    assert staging.start_of(half, "tiny").rebuild_because
