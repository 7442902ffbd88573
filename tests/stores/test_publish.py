"""Publication updates all three stores or none, and writes only what changed."""

import json
import os
import runpy
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.chunking.rows import with_row_hashes
from docindex_dagster.core import schemas, tables
from docindex_dagster.core.errors import DamagedStoreError, StoreError, VerificationError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.graph import build, extraction
from docindex_dagster.graph.build import build_graph
from docindex_dagster.graph.source_graph import NODES_TABLE, TRIPLES_TABLE
from docindex_dagster.status import catalog
from docindex_dagster.stores import (
    analysis,
    cleanup,
    generation,
    graph_files,
    lance_table,
    staging,
    takeover,
    tantivy_index,
)
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import Generation, read_generation, replace_generation
from docindex_dagster.stores.publish import Publication, publish, withdraw
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.rows import SourceRows
from tests.conftest import MODEL, chunks_of, extracted, publish_rows, references_of, vectors_of

KEY = "library/sample"
FILES = {"a.py": ["alpha reads a file", "beta writes a file"], "b.py": ["gamma sorts numbers"]}


def publish_files(
    layout: Layout, files: dict[str, list[str]], source: str = KEY, *, force: bool = False
) -> Publication:
    chunks = chunks_of(files, source)
    tables.write(layout.table("chunks", source), chunks)
    vectors = vectors_of(chunks)
    tables.write(layout.table("embeddings", source), vectors)
    return publish_rows(layout, source, chunks, vectors, force=force)


def state(layout: Layout) -> dict[str, tuple[int, int]]:
    """Return every store file with its size and modification time."""
    files = (path for path in layout.stores.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def held_everywhere(layout: Layout, source: str = KEY) -> pa.Table:
    """Return the rows of a source in Tantivy, after asserting that LanceDB has the same rows."""
    reader = open_reader(layout)
    in_tantivy = tantivy_index.held(reader.searcher, reader.index.schema, [source])
    in_lance = lance_table.held(reader.table, [source])
    assert set(in_lance["chunk_id"].to_pylist()) == set(in_tantivy["chunk_id"].to_pylist())
    return in_tantivy


def test_published_rows_are_in_all_three_stores(layout):
    publication = publish_files(layout, FILES)

    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""
    graph = open_reader(layout).graph
    edges = {(graph.ids[row["subject"]], row["predicate"], graph.ids[row["object"]]) for row in graph.edges.to_pylist()}
    assert (f"{KEY}!a.py", "defines", f"{KEY}!a.py::alpha") in edges
    assert (f"{KEY}!b.py", "imports", "external:os") in edges
    assert publication.lance.added == 3
    assert list(examine(layout)) == []


def test_publishing_the_same_again_touches_no_file(layout):
    publish_files(layout, FILES)
    before = state(layout)

    publication = publish_files(layout, FILES)

    assert not publication.is_new
    assert state(layout) == before


def test_only_the_rows_of_an_edited_file_are_written(layout):
    publish_files(layout, FILES)

    publication = publish_files(layout, {**FILES, "b.py": ["gamma sorts letters", "delta is new"]})

    for change in (publication.lance, publication.tantivy):
        assert (change.added, change.changed, change.reused, change.removed) == (1, 1, 2, 0)
    assert held_everywhere(layout).num_rows == 4


def test_rows_of_a_deleted_file_go_away(layout):
    publish_files(layout, FILES)

    publication = publish_files(layout, {"a.py": FILES["a.py"]})

    assert publication.lance.removed == publication.tantivy.removed == 1
    assert disagreement(held_everywhere(layout), chunks_of({"a.py": FILES["a.py"]})) == ""
    assert f"{KEY}!b.py" not in open_reader(layout).graph.numbers


def test_a_source_does_not_disturb_another(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"a.py": ["other text"]}, "git/other")

    withdraw(layout, "git/other")

    assert held_everywhere(layout, "git/other").num_rows == 0
    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""
    assert list(read_generation(layout).sources) == [KEY]


def test_withdrawing_a_source_that_was_never_published_changes_nothing(layout):
    assert withdraw(layout, KEY) is None
    assert not layout.current.exists()


def test_a_vector_that_is_not_finite_is_refused(layout):
    publish_files(layout, FILES)
    before = layout.current.read_bytes()
    chunks = chunks_of({"a.py": ["changed text"]})
    bad = vectors_of(chunks)
    values = pa.array([float("nan")] * MODEL.dimension, pa.float16())
    vector = pa.FixedSizeListArray.from_arrays(values, type=bad.schema.field("vector").type)
    bad = bad.set_column(3, bad.schema.field("vector"), vector)

    with pytest.raises(VerificationError, match="vectors_are_finite"):
        publish_rows(layout, KEY, chunks, bad)

    assert layout.current.read_bytes() == before
    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""


def test_vectors_of_other_chunks_are_refused(layout):
    with pytest.raises(VerificationError, match="one_vector_a_chunk"):
        publish_rows(layout, KEY, chunks_of(FILES), vectors_of(chunks_of({"a.py": ["alpha"]})))

    assert not layout.current.exists()


@pytest.mark.parametrize("store", [lance_table, tantivy_index])
def test_a_row_that_a_store_lost_while_writing_stops_the_publication(layout, monkeypatch, store):
    publish_files(layout, FILES)
    before = layout.current.read_bytes()
    write = store.reconcile

    def write_all_but_one(target, source, chunks, *more):
        cut = (each.slice(1) if isinstance(each, pa.Table) else each for each in more)
        return write(target, source, chunks.slice(1), *cut)

    monkeypatch.setattr(store, "reconcile", write_all_but_one)
    with pytest.raises(VerificationError, match="1 rows missing"):
        publish_files(layout, {**FILES, "c.py": ["epsilon is new"]})
    monkeypatch.undo()

    assert layout.current.read_bytes() == before
    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""
    publish_files(layout, {**FILES, "c.py": ["epsilon is new"]})
    assert held_everywhere(layout).num_rows == 4


def test_a_writer_that_died_before_going_live_is_undone_by_the_next(layout, monkeypatch):
    publish_files(layout, FILES)

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    monkeypatch.setattr(staging, "write_generation", die)
    monkeypatch.setattr(cleanup, "remove_old_generations", lambda _: None)
    with pytest.raises(Killed):
        publish_files(layout, {"x.py": ["half done"]})
    monkeypatch.undo()

    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""
    publish_files(layout, {"c.py": ["zeta comes after"]})
    assert disagreement(held_everywhere(layout), chunks_of({"c.py": ["zeta comes after"]})) == ""
    assert list(examine(layout)) == []


def test_a_graph_that_cannot_be_extracted_costs_a_warning_not_the_publication(layout, monkeypatch):
    def fail_on_rows(chunks, *more):
        if chunks.num_rows:
            raise RuntimeError("unheard-of symbol")
        return real(chunks, *more)

    real = build_graph
    monkeypatch.setattr(build, "build_graph", fail_on_rows)

    publication = publish_files(layout, FILES)

    assert "unheard-of symbol" in publication.graph_problem
    assert [catalog.index_limitations(entry) for entry in catalog.entries(layout)] == [["its graph is incomplete"]]
    assert held_everywhere(layout).num_rows == 3


def test_files_that_were_cut_as_text_are_counted_also_where_an_earlier_docindex_did_not(layout):
    chunks = chunks_of(FILES)
    reasons = [None if path == "a.py" else "time-out" for path in chunks["path"].to_pylist()]
    at = chunks.schema.get_field_index("fallback")
    chunks = with_row_hashes(chunks.set_column(at, chunks.schema.field(at), pa.array(reasons, pa.string())))
    rows = SourceRows(KEY, chunks, vectors_of(chunks), extracted(layout, KEY, chunks))

    publish(layout, rows, MODEL)
    counted = read_generation(layout)
    replace_generation(layout, counted.with_source(KEY, replace(counted.sources[KEY], fallbacks=0)))
    publish(layout, rows, MODEL)

    assert counted.sources[KEY].fallbacks == 1
    assert read_generation(layout) == counted


def test_one_generation_before_the_published_one_is_kept(layout):
    for text in ("one", "two", "three", "four"):
        publish_files(layout, {"a.py": [text]})

    kept = {read_generation(layout).tantivy, read_generation(layout, previous=True).tantivy}
    assert {folder.name for folder in layout.tantivy.iterdir()} == kept
    assert len(kept) == 2


def test_rolling_back_is_a_file_replacement_and_the_next_run_goes_on_from_there(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"a.py": ["regretted"]})

    previous_file(layout).replace(layout.current)

    assert disagreement(held_everywhere(layout), chunks_of(FILES)) == ""
    publish_files(layout, {"a.py": ["better"]})
    assert disagreement(held_everywhere(layout), chunks_of({"a.py": ["better"]})) == ""


@pytest.mark.parametrize("change", ["rollback", "publication"])
def test_who_is_killed_before_current_is_replaced_loses_no_way_back(layout, monkeypatch, change):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    publish_files(layout, FILES)
    publish_files(layout, {"a.py": ["regretted"]})
    first, second = read_generation(layout, previous=True), read_generation(layout)
    with monkeypatch.context() as patch:
        patch.setattr(generation, "_write", die)
        with pytest.raises(Killed):
            roll_back(layout) if change == "rollback" else publish_files(layout, {"a.py": ["better"]})

    assert read_generation(layout) == second
    assert read_generation(layout, previous=True) == first
    assert roll_back(layout).number == first.number
    assert roll_back(layout).number == second.number
    assert [file.name for file in layout.all_previous] == [read_generation(layout).previous]


def test_a_reader_goes_on_with_its_generation_while_others_are_published(layout):
    publish_files(layout, FILES)
    reader = open_reader(layout)
    assert reader.table.count_rows() == 3

    for text in ("one", "two", "three"):
        publish_files(layout, {"a.py": [text]})

    assert tantivy_index.held(reader.searcher, reader.index.schema, [KEY]).num_rows == 3
    assert lance_table.held(reader.table, [KEY]).num_rows == 3
    assert f"{KEY}!b.py" in reader.graph.numbers  # this part of the graph had not been read


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_generation_that_is_cleared_away_while_it_is_opened_is_whole_or_the_next_one(layout, monkeypatch, moment):
    publish_files(layout, FILES)
    opening = tantivy_index.open_index

    def publish_meanwhile(folder: Path) -> object:
        monkeypatch.undo()
        index = opening(folder) if moment == "after" else None
        for text in ("one", "two"):
            publish_files(layout, {"a.py": [text]})
        return index or opening(folder)

    monkeypatch.setattr(tantivy_index, "open_index", publish_meanwhile)

    reader = open_reader(layout)

    assert reader.generation.number == (1 if moment == "after" else 3)
    assert (f"{KEY}!b.py" in reader.graph.numbers) == (moment == "after")


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_damaged_graph_costs_nothing_but_answers_from_it(layout, damage):
    publish_files(layout, FILES)
    damage(next(layout.graph.glob("*.triples.parquet")))

    reader = open_reader(layout)

    assert reader.searcher.num_docs == 3
    with pytest.raises(DamagedStoreError, match=f"the graph of {KEY} is missing.*`docindex doctor --repair`"):
        reader.graph  # noqa: B018 it is read now


def test_the_doctor_names_the_store_that_lost_its_rows_and_a_full_run_mends_it(layout):
    publish_files(layout, FILES)
    folder = layout.tantivy / read_generation(layout).tantivy
    shutil.rmtree(folder)
    index = tantivy_index.create(folder)
    tantivy_index.reconcile(index, [KEY], chunks_of({"a.py": FILES["a.py"]}))

    findings = list(examine(layout))

    assert {(finding.source, finding.store) for finding in findings} == {(KEY, "Tantivy")}
    publish_files(layout, FILES, force=True)
    assert list(examine(layout)) == []


@pytest.mark.parametrize("place", ["../precious", "absolute"])
def test_a_full_text_index_that_names_files_elsewhere_deletes_none(layout, tmp_path, place):
    publish_files(layout, FILES)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = layout.tantivy / read_generation(layout).tantivy
    name = str(precious) if place == "absolute" else os.path.relpath(precious, folder)
    managed = json.loads((folder / ".managed.json").read_text())
    (folder / ".managed.json").write_text(json.dumps([*managed, name]))

    with suppress(DamagedStoreError):
        publish_files(layout, {**FILES, "new.py": FILES["a.py"]})

    assert precious.exists()


def damage(path: Path) -> None:
    """Overwrite the middle of each file, as a bad disk would."""
    for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
        data = bytearray(file.read_bytes())
        data[len(data) // 4 : len(data) // 4 * 3] = b"\xa5" * (len(data) // 4 * 3 - len(data) // 4)
        file.unlink()  # keeps the content behind other generations' hard links
        file.write_bytes(data)


def cut(folder: Path) -> None:
    """Truncate each term file, as a full disk would."""
    for file in folder.rglob("*.term"):
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data[: len(data) // 3])


DAMAGES: dict[str, Callable[[Layout], None]] = {
    "CURRENT": lambda layout: damage(layout.current),
    "PREVIOUS": lambda layout: damage(previous_file(layout)),
    "no Tantivy folder": lambda layout: shutil.rmtree(layout.tantivy),
    "Tantivy files": lambda layout: damage(layout.tantivy),
    "no LanceDB": lambda layout: shutil.rmtree(layout.lance),
    "cut Tantivy files": lambda layout: cut(layout.tantivy),
    "LanceDB data": lambda layout: damage(next(layout.lance.iterdir()) / "data"),
    "graph": lambda layout: damage(layout.graph),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_whatever_is_damaged_a_full_run_builds_all_sources_anew(layout, what):
    publish_files(layout, {"a.py": ["first"]})
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    DAMAGES[what](layout)
    if what != "PREVIOUS":
        assert list(examine(layout))

    publish_files(layout, FILES, force=True)

    # Only a run of a source repairs that source's graph.
    publish_files(layout, {"o.py": ["other text"]}, "git/other", force=True)
    assert list(examine(layout)) == []
    assert list(read_generation(layout).sources) == ["git/other", KEY]
    assert held_everywhere(layout, "git/other").num_rows == 1


def previous_file(layout: Layout) -> Path:
    return layout.previous(read_generation(layout).previous)


def made_by_another_version(layout: Layout) -> None:
    current = json.loads(layout.current.read_text())
    layout.current.write_text(json.dumps({**current, "schema_version": 3, "a_field_of_then": 1}))


def test_an_index_of_another_schema_version_is_rebuilt_with_every_source(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    made_by_another_version(layout)
    assert [finding.problem for finding in examine(layout)] == ["another version of docindex built it"]

    publication = publish_files(layout, FILES)

    assert publication.warnings == ("the index was rebuilt for this version of docindex, and searches now use it",)
    assert list(read_generation(layout).sources) == ["git/other", KEY]
    assert list(examine(layout)) == []


def test_an_index_of_another_schema_version_answers_until_every_source_is_rebuilt(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    made_by_another_version(layout)
    before = layout.current.read_bytes()
    chunks = tables.read(layout.table("chunks", "git/other"))
    tables.write(layout.table("chunks", "git/other"), chunks.drop_columns(["summary"]))  # the source must be run again

    publication = publish_files(layout, FILES)

    reported = "the index is migrating to the format of this docindex version: 1 of 2 sources are done"
    assert publication.warnings == (f"{reported}. Searches use the old index until then",)
    assert layout.current.read_bytes() == before
    assert open_reader(layout).searcher.num_docs == 4
    assert str(takeover.migration_progress(layout, MODEL.name)) == reported

    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    assert list(read_generation(layout).sources) == ["git/other", KEY]
    assert list(examine(layout)) == []


def test_an_index_that_this_version_cannot_read_says_what_to_do(layout, monkeypatch):
    publish_files(layout, FILES)
    made_by_another_version(layout)
    monkeypatch.setattr(tantivy_index, "FIELDS", (*tantivy_index.FIELDS, ("new", "text", {})))

    with pytest.raises(StoreError, match=r"another version of docindex .* without new\. Run `docindex index`"):
        open_reader(layout)


def test_a_column_that_an_earlier_version_did_not_have_is_null(layout, monkeypatch):
    publish_files(layout, FILES)
    made_by_another_version(layout)
    monkeypatch.setattr(tantivy_index, "_NULLS", {**tantivy_index._NULLS, "new": None})
    monkeypatch.setattr(tantivy_index, "CHUNKS", CHUNKS.append(pa.field("new", pa.string())))

    reader = open_reader(layout)
    (row,) = tantivy_index.matching(reader.searcher, reader.index.schema, "path", "b.py", 9)

    assert (row["text"], row["new"]) == ("gamma sorts numbers", None)


@pytest.mark.parametrize("change", ["columns", "fields", "terms"])
def test_the_version_follows_from_the_schemas(change, monkeypatch):
    def version() -> str:
        return str(runpy.run_path(generation.__file__)["SCHEMA_VERSION"])

    before = version()
    if change == "columns":
        monkeypatch.setattr(schemas, "CHUNKS", CHUNKS.append(pa.field("new", pa.string())))
    elif change == "fields":
        monkeypatch.setattr(tantivy_index, "FIELDS", tantivy_index.FIELDS[:-1])
    else:
        monkeypatch.setattr(analysis, "TERMS_VERSION", "other")

    assert version() != before
    monkeypatch.undo()
    assert version() == before == generation.SCHEMA_VERSION


def test_a_rebuild_keeps_the_date_and_revision_of_content_that_is_the_same(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    before = read_generation(layout).sources["git/other"]
    shutil.rmtree(layout.tantivy)

    publish_files(layout, FILES, force=True)

    assert read_generation(layout).sources["git/other"] == before


def test_a_rebuild_commits_many_sources_at_once(layout):
    names = [f"library/s{number}" for number in range(8)]
    for name in names:
        publish_files(layout, {"a.py": [f"the text of {name}"]}, name)
    before = read_generation(layout).table_version
    layout.current.write_text("damaged")

    publish_files(layout, FILES)

    assert list(read_generation(layout).sources) == sorted([KEY, *names])
    assert list(examine(layout)) == []
    # One version each for the table, its index, all other sources, and this source.
    assert read_generation(layout).table_version - before < len(names)


def test_a_graph_that_is_not_of_the_chunks_is_not_published(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    of_sample = extracted(layout, KEY, chunks_of(FILES))
    other = extracted(layout, "git/other", chunks_of({"o.py": ["other text"]}, "git/other"))
    for asset in (NODES_TABLE, TRIPLES_TABLE):
        layout.table(asset, "git/other").unlink()
    extraction.write(layout, "git/other", replace(other, graph=of_sample.graph))
    layout.current.write_text("damaged")

    publication = publish_files(layout, FILES)

    assert list(publication.generation.sources) == [KEY]
    assert any("cannot reuse git/other" in warning for warning in publication.warnings)
    chunks = chunks_of(FILES)
    with pytest.raises(VerificationError, match=r"the graph does not match these chunks: .* edges without their chunk"):
        publish(
            layout, SourceRows(KEY, chunks.slice(1), vectors_of(chunks.slice(1)), extracted(layout, KEY, chunks)), MODEL
        )


def test_a_rebuild_extracts_no_graph_again(layout, monkeypatch):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    before = read_generation(layout).sources["git/other"]
    layout.current.write_text("damaged")
    chunks = chunks_of(FILES)
    made = extracted(layout, KEY, chunks)
    monkeypatch.setattr(extraction, "extract", pytest.fail)

    publish(layout, SourceRows(KEY, chunks, vectors_of(chunks), made), MODEL)

    assert read_generation(layout).sources["git/other"].graph == before.graph


def test_a_source_that_cannot_be_taken_over_is_reported(layout):
    publish_files(layout, FILES)
    publish_files(layout, {"o.py": ["other text"]}, "git/other")
    publish_files(layout, {"p.py": ["old table"]}, "git/old")
    damage(layout.table("embeddings", "git/other"))
    old = layout.table("chunks", "git/old")
    tables.write(old, tables.stamp(tables.read(old).drop_columns(["symbols"]), "old"))
    damage(layout.current)

    publication = publish_files(layout, FILES)

    assert list(publication.generation.sources) == [KEY]
    assert any("cannot reuse git/other" in warning for warning in publication.warnings)
    assert any("git%2Fold" in warning for warning in publication.warnings)


def test_the_files_of_a_graph_are_copies_of_its_tables(layout):
    publication = publish_files(layout, FILES)

    assert publication.source.graph
    for table, name in (
        (NODES_TABLE, publication.source.graph.nodes),
        (TRIPLES_TABLE, publication.source.graph.triples),
    ):
        assert (layout.graph / name).read_bytes() == layout.table(table, KEY).read_bytes()
        assert (layout.graph / name).stat().st_nlink == 1  # damage to one file leaves the other intact


@pytest.mark.parametrize("force", [True, False])
def test_a_graph_whose_tables_are_of_other_rows_is_written_from_memory(layout, force):
    chunks, others = chunks_of(FILES), chunks_of({"c.py": ["delta is new"]})
    made = extracted(layout, KEY, chunks)
    extracted(layout, KEY, others)  # the source's tables now belong to other chunks

    publication = publish(layout, SourceRows(KEY, chunks, vectors_of(chunks), made), MODEL, force=force)

    assert publication.source.graph
    graph = graph_files.read(graph_files.mapped(layout, publication.generation), publication.source.graph)
    assert graph.triples.replace_schema_metadata(None).equals(build_graph(chunks, references_of(chunks)).triples)


MORE = {**FILES, "c.py": ["delta is new"]}
LOST = {
    "a row that changed": lambda table: table.delete("path = 'c.py'"),
    "another row of the source": lambda table: table.delete("path = 'b.py'"),
    "the new text of a row": lambda table: table.update("path = 'c.py'", {"row_hash": "0" * 32}),
    "the number of a row": lambda table: table.add(table.search().where("path = 'b.py'").limit(1).to_arrow()),
}


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST)
def test_what_lancedb_loses_as_it_writes_is_not_published(layout, monkeypatch, lose):
    publish_files(layout, FILES)
    before = read_generation(layout)
    reconcile = lance_table.reconcile

    def losing(table, *rest):
        change = reconcile(table, *rest)
        lose(table)
        return change

    monkeypatch.setattr(lance_table, "reconcile", losing)

    assert_is_refused(layout, "LanceDB", before)
    monkeypatch.undo()
    assert_is_published(layout)


def assert_is_refused(layout: Layout, store: str, before: Generation | None) -> None:
    """Assert that `store` blocks the publication of MORE and that searches still see the previous generation."""
    with pytest.raises(VerificationError, match=store):
        publish_files(layout, MORE)
    assert read_generation(layout) == before


def assert_is_published(layout: Layout) -> None:
    publish_files(layout, MORE)
    assert disagreement(held_everywhere(layout), chunks_of(MORE)) == ""


@pytest.mark.parametrize("path", ["b.py", "c.py"])
def test_what_tantivy_loses_as_it_writes_is_not_published(layout, monkeypatch, path):
    publish_files(layout, FILES)
    before = read_generation(layout)
    reconcile = tantivy_index.reconcile

    def losing(index, *rest):
        change = reconcile(index, *rest)
        writer = index.writer()
        writer.delete_documents_by_term("path", path)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return change

    monkeypatch.setattr(tantivy_index, "reconcile", losing)

    assert_is_refused(layout, "Tantivy", before)
    monkeypatch.undo()
    assert_is_published(layout)


@pytest.mark.parametrize("planted", [KEY, "git/ghost"])
def test_rows_held_twice_or_of_no_source_are_found_and_a_full_run_removes_them(layout, planted):
    publish_files(layout, FILES)
    reader = open_reader(layout)
    table = lance_table.open_for_writing(
        layout, reader.generation.table, MODEL.dimension, reader.generation.table_version
    )
    rows = chunks_of({"a.py": FILES["a.py"][:1]}, planted)
    table.add(rows.append_column("vector", vectors_of(rows)["vector"]))
    current = json.loads(layout.current.read_text())
    layout.current.write_text(json.dumps({**current, "table_version": table.version}))
    assert list(examine(layout))

    publish_files(layout, FILES, force=True)

    assert list(examine(layout)) == []


def test_after_a_rollback_the_index_is_whole_though_the_tables_are_newer(layout):
    publish_files(layout, FILES)
    publish_files(layout, FILES | {"c.py": ["zeta comes after"]})

    roll_back(layout)

    assert list(examine(layout)) == []


def empty_norms(layout: Layout, *, previous: bool = False) -> None:
    """Delete a file of one generation's index; the other generation keeps its hard links."""
    for file in (layout.tantivy / read_generation(layout, previous=previous).tantivy).glob("*.fieldnorm"):
        file.unlink()
        file.touch()


def lose_rows(layout: Layout) -> None:
    """Replace the previous generation's index with another valid index."""
    folder = layout.tantivy / read_generation(layout, previous=True).tantivy
    shutil.rmtree(folder)
    tantivy_index.create(folder)


@pytest.mark.parametrize("lose", [lambda layout: empty_norms(layout, previous=True), lose_rows])
def test_nobody_rolls_back_to_a_generation_that_is_damaged(layout, lose):
    publish_files(layout, {"a.py": ["first"]})
    publish_files(layout, FILES)
    before = layout.current.read_bytes()
    lose(layout)

    with pytest.raises(StoreError, match="cannot roll back to generation 1"):
        roll_back(layout)

    assert layout.current.read_bytes() == before


def test_a_repair_leaves_the_whole_generation_before_to_roll_back_to(layout):
    publish_files(layout, {"a.py": ["first"]})
    publish_files(layout, FILES)
    empty_norms(layout)

    publish_files(layout, FILES, force=True)

    assert list(examine(layout)) == []
    assert roll_back(layout).number == 1
    assert held_everywhere(layout).num_rows == 1


LOSSES: dict[str, Callable[[Layout], None]] = {
    "a file of Tantivy": empty_norms,
    "Tantivy": lambda layout: shutil.rmtree(layout.tantivy),
    "the versions of LanceDB": lambda layout: shutil.rmtree(next(layout.lance.iterdir()) / "_versions"),
    "LanceDB": lambda layout: shutil.rmtree(layout.lance),
    "a file of the graph": lambda layout: next(layout.graph.glob("*.triples.parquet")).unlink(),
}


@pytest.mark.parametrize("what", LOSSES)
def test_publishing_the_same_again_notices_that_nothing_would_be_found(layout, what):
    publish_files(layout, FILES)
    LOSSES[what](layout)

    with pytest.raises(DamagedStoreError, match="run `docindex doctor --repair`"):
        publish_files(layout, FILES)


def test_a_full_run_over_the_same_rows_publishes_nothing(layout):
    publish_files(layout, FILES)
    before = layout.current.read_bytes()

    assert not publish_files(layout, FILES, force=True).is_new

    assert layout.current.read_bytes() == before


def test_vectors_that_changed_are_replaced_though_the_text_is_the_same(layout):
    publish_files(layout, FILES)
    chunks = chunks_of(FILES)
    turned = vectors_of(chunks).set_column(3, "vector", vectors_of(chunks)["vector"].take([2, 0, 1]))
    turned = turned.cast(vectors_of(chunks).schema).replace_schema_metadata(None)  # its stamp no longer matches

    publication = publish_rows(layout, KEY, chunks, turned)

    assert publication.lance.changed == 3
    reader = open_reader(layout)
    assert disagreement(lance_table.held(reader.table, [KEY]), lance_table.expected(chunks, turned)) == ""


def test_a_class_contains_its_methods_also_when_they_share_a_chunk():
    (row,) = chunks_of({"a.py": ["Outer"]}).to_pylist()
    symbols = [
        {"name": "Outer", "kind": "class", "qualified_name": "Outer", "parent": None, "start_line": 1, "end_line": 4},
        {
            "name": "run",
            "kind": "method",
            "qualified_name": "Outer.run",
            "parent": "Outer",
            "start_line": 2,
            "end_line": 3,
        },
    ]
    chunks = pa.Table.from_pylist([{**row, "symbols": symbols}], chunks_of({"a.py": ["Outer"]}).schema)

    triples = build_graph(chunks, references_of(chunks)).triples.to_pylist()

    edges = {(item["subject"], item["predicate"], item["object"]) for item in triples}
    assert ("a.py::Outer", "contains", "a.py::Outer.run") in edges
