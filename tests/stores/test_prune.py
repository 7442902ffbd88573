"""Pruning removes unused files and keeps those that a search or a rollback needs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docindex_dagster.chunking.summaries import SummaryCache
from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.prune import orphans, prune
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"


def publish_text(layout: Layout, text: str, key: str = KEY) -> None:
    chunks = chunks_of({"a.py": [text], "b.py": ["omega never changes"]}, key)
    vectors = vectors_of(chunks)
    tables.write(layout.table("chunks", key), chunks)
    tables.write(layout.table("embeddings", key), vectors)
    publish_rows(layout, key, chunks, vectors)


def found(layout: Layout, query: str) -> list[str]:
    return [hit.text for hit in search(open_reader(layout), query, NotImplemented, mode=Mode.BM25, top_k=1)]


def versions(layout: Layout) -> int:
    return len(open_reader(layout).table.list_versions())


def test_old_versions_go_and_what_is_published_stays_right(layout):
    for number in range(12):
        publish_text(layout, f"alpha{number} reads a file")
    time.sleep(1.1)  # pruning also keeps versions within a second of a kept one
    for number in (10, 11):
        publish_text(layout, f"alpha{number} reads a file")
    before, kept = folder_bytes(layout.lance), versions(layout)

    assert prune(layout, {KEY}) == []

    assert versions(layout) < kept
    assert folder_bytes(layout.lance) < before
    assert list(examine(layout)) == []
    assert found(layout, "alpha11") == ["alpha11 reads a file"]


def test_the_generation_before_can_still_be_rolled_back_to(layout):
    for number in range(4):
        publish_text(layout, f"alpha{number} reads a file")

    prune(layout, {KEY})
    roll_back(layout)

    assert found(layout, "alpha2") == ["alpha2 reads a file"]
    assert open_reader(layout).table.count_rows() == 2
    publish_text(layout, "alpha9 reads a file")
    assert list(examine(layout)) == []


def test_the_generation_before_goes_too_when_it_is_not_wanted(layout):
    for number in range(4):
        publish_text(layout, f"alpha{number} reads a file")

    prune(layout, {KEY}, keep_previous=False)

    assert layout.all_previous == []
    assert len(list(layout.tantivy.iterdir())) == 1
    assert found(layout, "alpha3") == ["alpha3 reads a file"]
    assert list(examine(layout)) == []
    publish_text(layout, "alpha9 reads a file")
    assert list(examine(layout)) == []


def test_the_generation_before_stays_while_the_published_one_is_damaged(layout):
    for number in range(3):
        publish_text(layout, f"alpha{number} reads a file")
    kept = read_generation(layout, previous=True).tantivy
    for file in (layout.tantivy / read_generation(layout).tantivy).glob("*.fieldnorm"):
        file.unlink()
        file.touch()

    with pytest.raises(DamagedStoreError, match="doctor --repair"):
        prune(layout, {KEY}, keep_previous=False)

    assert read_generation(layout, previous=True).tantivy == kept
    roll_back(layout)
    assert found(layout, "alpha1") == ["alpha1 reads a file"]


def write_summaries(layout: Layout, key: str) -> Path:
    with SummaryCache(layout, key).adding() as add:
        add("key", "A summary.")
    return layout.summaries(key)


def test_what_belongs_to_sources_that_are_gone_goes(layout):
    publish_text(layout, "alpha reads a file")
    publish_text(layout, "beta writes a file", "git/gone")
    for left in (layout.cached_vectors("git/gone"), layout.repository("git/gone"), layout.checkout("git/gone@dev")):
        left.mkdir(parents=True)
        (left / "data").write_text("left over")
    write_summaries(layout, "git/gone")

    removed = {orphan.path for orphan in prune(layout, {KEY})}

    assert removed == {
        layout.table("chunks", "git/gone"),
        layout.table("embeddings", "git/gone"),
        layout.table("concepts", "git/gone"),
        layout.table("graph_nodes", "git/gone"),
        layout.table("graph_triples", "git/gone"),
        layout.cached_vectors("git/gone"),
        layout.summaries("git/gone"),
        layout.repository("git/gone"),
        layout.checkout("git/gone@dev"),
    }
    assert not any(path.exists() for path in removed)
    assert layout.table("chunks", KEY).exists()


def test_the_files_of_every_declared_or_indexed_source_stay(layout):
    publish_text(layout, "alpha reads a file", "git/repo")
    kept = [layout.cached_vectors("git/repo"), layout.repository("git/repo"), layout.checkout("git/repo@a/b")]
    for folder in kept:
        folder.mkdir(parents=True)
    kept += [write_summaries(layout, key) for key in ("git/repo", "git/repo@a/b")]

    assert prune(layout, {"git/repo", "git/repo@a/b"}) == []

    assert all(folder.exists() for folder in kept)


def test_temporary_files_go_once_their_writer_is_gone(layout):
    publish_text(layout, "alpha reads a file")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    table = layout.table("chunks", KEY)
    dead, living = (table.with_name(f".{table.name}.{pid}.tmp") for pid in (ended.pid, os.getpid()))
    dead.write_bytes(b"half")
    living.write_bytes(b"half")

    assert [orphan.path for orphan in orphans(layout, {KEY})] == [dead]
    prune(layout, {KEY})

    assert not dead.exists()
    assert living.exists()


def folder(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "data").write_text("left over")
    return place


@pytest.mark.parametrize("keys", [set(), {"git/repo"}], ids=["undeclared", "declared"])
def test_a_clone_that_is_being_made_stays_and_one_that_never_was_finished_goes(layout, keys):
    clone = folder(layout.repositories / "repo.git.ab_12cd.new")

    with exclusive_if_free(layout.repository_lock("git/repo@dev"), "a fetch"):
        assert [(orphan.path, orphan.is_busy) for orphan in prune(layout, keys)] == [(clone, True)]
        assert (clone / "data").exists()

    assert [(orphan.path, orphan.is_busy) for orphan in prune(layout, keys)] == [(clone, False)]
    assert not clone.exists()


def test_a_checkout_named_like_an_unfinished_clone_is_a_checkout(layout):
    checkout = folder(layout.checkout("git/repo.git.ab.new"))

    assert prune(layout, {"git/repo.git.ab.new"}) == []
    assert [orphan.path for orphan in prune(layout, set())] == [checkout]


def test_what_a_run_works_with_stays_though_its_source_is_not_declared_any_more(layout):
    publish_text(layout, "alpha reads a file")
    key = "git/repo@dev/1"
    table = layout.table("chunks", key)
    tables.write(table, chunks_of({"a.py": ["beta writes a file"]}, key))
    of_the_run = {
        table,
        *map(folder, (layout.cached_vectors("git/repo"), layout.repository(key), layout.checkout(key))),
    }
    other = folder(layout.checkout("git/repo"))

    with exclusive_if_free(layout.source_lock(key), "a run"):
        found = prune(layout, {KEY})

    assert {orphan.path for orphan in found if orphan.is_busy} == of_the_run
    assert all(path.exists() for path in of_the_run)
    assert not other.exists()
    assert {orphan.path for orphan in prune(layout, {KEY})} == of_the_run


def test_the_lock_of_a_source_that_stays_is_not_touched(layout):
    """Its modification time records when the source was last checked."""
    with exclusive_if_free(layout.source_lock("git/repo"), "a run"):
        pass
    os.utime(layout.source_lock("git/repo"), (1, 1))
    folder(layout.repositories / "repo.git.ab_12cd.new")
    folder(layout.checkout("git/repo@dev"))

    assert len(prune(layout, {"git/repo"})) == 2

    assert layout.source_lock("git/repo").stat().st_mtime == 1


def test_a_source_that_is_declared_while_a_prune_waits_keeps_its_files(tmp_path):
    layout = Layout(tmp_path / ".docindex")
    (tmp_path / "docindex.toml").write_text("")
    mine, gone = folder(layout.checkout("git/mine")), folder(layout.checkout("git/gone"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCINDEX_")}
    environment["DOCINDEX_TRUST"] = "1"
    command = [sys.executable, "-m", "docindex_dagster.cli", "prune"]

    with exclusive_if_free(layout.publication_lock, "another run"):
        pruning = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        assert "waiting for another run" in pruning.stderr.readline()
        (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "git"\nurl = "https://example.org/mine"\n')
    _, errors = pruning.communicate(timeout=60)

    assert (pruning.returncode, errors) == (0, "")
    assert mine.exists()
    assert not gone.exists()


def test_pruning_an_empty_home_does_nothing(layout):
    assert prune(layout, set()) == []
