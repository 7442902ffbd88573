"""Maintenance compacts and indexes alongside publications: it blocks and loses none, and changes no answer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.stores import cleanup, lance_table, maintenance
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import Generation, read_generation, read_next, replace_next
from docindex_dagster.stores.prune import erase_stores, prune
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of
from tests.traces import traces

KEY, OTHER, NEW = "library/pumps", "git/valves", "library/relays"
FILES = {f"{number}.py": [f"alpha{number} reads a file", f"beta{number} writes"] for number in range(20)}
SECRET = "xkqzvwjhpfmbtrgd"
Change = Callable[[Layout], Any]


def publish_files(layout: Layout, files: dict[str, list[str]], key: str = KEY, **options) -> None:
    chunks = chunks_of(files, key)
    vectors = vectors_of(chunks)
    tables.write(layout.table("chunks", key), chunks)
    tables.write(layout.table("embeddings", key), vectors)
    publish_rows(layout, key, chunks, vectors, **options)


def edit(layout: Layout, *numbers: int) -> None:
    for number in numbers:
        publish_files(layout, {**FILES, "edited.py": [f"gamma{number} sorts"]})


def edit_and_prune(layout: Layout) -> None:
    edit(layout, 77)
    prune(layout, [KEY, OTHER], keep_previous=False)


def published(layout: Layout) -> Generation:
    generation = read_generation(layout)
    assert generation is not None
    return generation


def table_of(layout: Layout) -> Any:
    return open_reader(layout).table


def fragments(layout: Layout) -> int:
    return int(table_of(layout).stats()["fragment_stats"]["num_fragments"])


def rows_of(layout: Layout) -> list[dict[str, Any]]:
    return sorted(table_of(layout).to_arrow().to_pylist(), key=lambda row: row["chunk_id"])


def tables_in(layout: Layout) -> set[str]:
    return {folder.stem for folder in layout.lance.iterdir()}


def end_grace(layout: Layout) -> None:
    for file in layout.lance.glob(f"*/{lance_table._REPLACED}"):
        os.utime(file, (0, 0))


@pytest.fixture(scope="module", autouse=True)
def _due_early() -> Iterator[None]:
    """Make maintenance due after only a few publications."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "_MAX_VERSIONS", 8)
        yield


@pytest.fixture(scope="module")
def due_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("maintenance"))
    publish_files(layout, FILES, OTHER)
    edit(layout, *range(maintenance._MAX_VERSIONS))
    return layout.home


@pytest.fixture
def due(layout: Layout, due_once: Path) -> Layout:
    """Two sources, one of which was edited often enough to have many parts."""
    shutil.copytree(due_once, layout.home)
    return layout


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Return a function that runs a change once while the copy is compacted."""

    def arrange(change: Change) -> None:
        compacting = lance_table.drop_other_versions
        home: list[Layout] = []
        linked = lance_table.link_version

        def noting(layout: Layout, *rest: Any) -> Any:
            home.append(layout)
            return linked(layout, *rest)

        def compact(*rest: Any) -> None:
            compacting(*rest)
            monkeypatch.setattr(lance_table, "drop_other_versions", compacting)  # the change may compact too
            change(home[-1])

        monkeypatch.setattr(lance_table, "link_version", noting)
        monkeypatch.setattr(lance_table, "drop_other_versions", compact)

    return arrange


def test_a_publication_compacts_nothing(layout):
    publications = 2 * maintenance._MAX_VERSIONS
    for number in range(publications):
        publish_files(layout, {f"{one}.py": ["gamma sorts"] for one in range(number + 1)})

    assert fragments(layout) == publications
    assert [index.columns for index in table_of(layout).list_indices()] == [["source"]]
    assert list(examine(layout)) == []


def test_it_compacts_and_indexes_and_all_else_stays(due):
    rows, before = rows_of(due), published(due)

    [done] = maintenance.maintain(due)

    assert (done.generation, done.rows, done.brought_over) == (before.number, len(rows), 0)
    assert fragments(due) == 1
    assert table_of(due).index_stats("source_idx").num_unindexed_rows == 0
    assert rows_of(due) == rows
    after = published(due)
    assert after == replace(
        before,
        table=after.table,
        table_version=after.table_version,
        optimized_version=after.table_version,
        changed_rows=0,
    )
    assert list(examine(due)) == []
    assert not due.maintenance.exists()


def test_it_is_due_after_many_publications_and_not_again_after_it(layout):
    assert not maintenance.why_due(layout)
    edit(layout, -1)
    assert not maintenance.why_due(layout)

    for number in range(maintenance._MAX_VERSIONS):
        edit(layout, number)
    assert "versions of the table" in maintenance.why_due(layout)
    assert maintenance.bring_up_to_date(layout)

    assert not maintenance.why_due(layout)
    assert not maintenance.bring_up_to_date(layout)


def test_it_is_due_after_one_publication_of_many_rows(layout, monkeypatch):
    monkeypatch.setattr(maintenance, "_MIN_CHANGED_ROWS", 10)
    publish_files(layout, FILES)
    assert maintenance.bring_up_to_date(layout)
    edit(layout, 1)
    assert not maintenance.why_due(layout)

    publish_files(layout, {"1.py": FILES["1.py"]})

    assert maintenance.why_due(layout) == "40 of 2 rows changed since the last compaction"


def test_it_is_not_due_where_nothing_can_be_read(due):
    due.current.write_text("{")

    assert not maintenance.why_due(due)


CHANGES: dict[str, Change] = {
    "an edit": lambda layout: edit(layout, 77),
    "three edits": lambda layout: edit(layout, 77, 78, 79),
    "a new source": lambda layout: publish_files(layout, FILES, NEW),
    "a source that is gone": lambda layout: withdraw(layout, OTHER),
    "a rollback": roll_back,
    "a source that has no rows any more": lambda layout: publish_files(layout, {}, OTHER),
    "a prune": lambda layout: prune(layout, [KEY, OTHER]),
    "an edit and a prune": edit_and_prune,
}


@pytest.mark.parametrize("few", [0, 5_000], ids=["before the lock", "under it"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_published_meanwhile_is_brought_over(due, meanwhile, monkeypatch, change, few):
    monkeypatch.setattr(maintenance, "_FEW_ROWS", few)
    expected: list[Any] = []

    def happens(layout: Layout) -> None:
        with exclusive_if_free(layout.publication_lock, "a run") as is_free:
            assert is_free
            CHANGES[change](layout)
        expected.extend([rows_of(layout), read_generation(layout).sources])

    meanwhile(happens)
    table = read_generation(due).table

    [done] = maintenance.maintain(due)

    assert read_generation(due).table != table
    assert done.brought_over == (change != "a prune")
    assert [rows_of(due), read_generation(due).sources] == expected
    assert list(examine(due)) == []
    edit(due, 99)
    assert list(examine(due)) == []


def test_rows_that_were_brought_over_count_as_outside_of_the_indexes(due, meanwhile):
    meanwhile(lambda layout: publish_files(layout, FILES, NEW))

    maintenance.maintain(due)

    assert read_generation(due).changed_rows == 40


def give_up_by_force(layout: Layout) -> None:
    publish_files(layout, FILES, OTHER, force=True)


def give_up_by_erasure(layout: Layout) -> None:
    prune(layout, [KEY, OTHER], erase=True)


@pytest.mark.parametrize("change", [give_up_by_force, give_up_by_erasure])
def test_a_copy_of_rows_that_were_mended_or_erased_meanwhile_is_given_up(due, meanwhile, change):
    meanwhile(change)

    assert maintenance.maintain(due) == []

    assert len(tables_in(due)) == 1
    assert not due.maintenance.exists()
    assert list(examine(due)) == []


def test_after_an_erasure_meanwhile_nothing_is_left_either(layout, meanwhile):
    publish_files(layout, {**FILES, f"{SECRET}.py": [f"{SECRET} = 'hunter2'"]})
    edit(layout, *range(maintenance._MAX_VERSIONS))
    meanwhile(lambda layout: prune(layout, [KEY], erase=True))

    assert maintenance.maintain(layout) == []

    assert traces(layout.home, SECRET) == set()
    assert list(examine(layout)) == []


def test_an_erasure_spares_no_table_that_was_replaced(due):
    publish_files(due, {f"{SECRET}.py": [f"{SECRET} = 'hunter2'"]}, NEW)
    withdraw(due, NEW)
    maintenance.maintain(due)
    assert traces(due.lance, SECRET) != set()

    erase_stores(due)

    assert traces(due.lance, SECRET) == set()
    assert tables_in(due) == {published(due).table}


def test_what_erasing_finds_of_a_maintenance_under_way_is_busy(layout):
    layout.maintenance.mkdir(parents=True)

    with exclusive_if_free(layout.maintenance_lock, "maintenance"):
        [busy] = prune(layout, [], erase=True)
    [gone] = prune(layout, [], erase=True)

    assert (busy.path, busy.is_busy) == (layout.maintenance, True)
    assert (gone.is_busy, layout.maintenance.exists()) == (False, False)


STEPS = [
    (lance_table, "link_version"),
    (lance_table, "drop_other_versions"),
    (lance_table, "numbers"),
    (maintenance, "sync"),
    (lance_table, "move_into_place"),
    (cleanup, "remove_old_generations"),
]
KILLED_BY_DEFAULT = (STEPS[0], STEPS[-1])  # the process that dies costs a second; `make test-kill` kills the others


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize(("module", "step"), STEPS)
def test_stopped_anywhere_it_leaves_a_whole_index_and_the_next_one_does_it(due, monkeypatch, module, step, is_before):
    rows = rows_of(due)
    done = getattr(module, step)

    def stop(*rest: Any) -> None:
        if not is_before:
            done(*rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, stop)
    with pytest.raises(KeyboardInterrupt):
        maintenance.maintain(due)
    monkeypatch.undo()
    assert rows_of(due) == rows
    assert list(examine(due)) == []

    maintenance.bring_up_to_date(due)
    edit(due, 88)

    assert fragments(due) <= 3
    assert list(examine(due)) == []
    end_grace(due)
    edit(due, 89)
    edit(due, 90)
    assert tables_in(due) == {read_generation(due).table}


@pytest.mark.parametrize(
    ("module", "step"),
    [pytest.param(*step, marks=() if step in KILLED_BY_DEFAULT else pytest.mark.kill) for step in STEPS],
)
def test_killed_anywhere_it_leaves_a_whole_index(due, module, step):
    rows = rows_of(due)
    code = (
        "import os, sys; from pathlib import Path; from docindex_dagster.core.layout import Layout;"
        f"from docindex_dagster.stores import maintenance; import {module.__name__} as module;"
        f"maintenance._MAX_VERSIONS = {maintenance._MAX_VERSIONS};"
        f"done = module.{step}; module.{step} = lambda *rest: (done(*rest), os._exit(9));"
        "maintenance.maintain(Layout(Path(sys.argv[1])))"
    )
    assert subprocess.run([sys.executable, "-c", code, due.home], check=False).returncode == 9

    assert rows_of(due) == rows
    edit(due, 88)
    assert maintenance.bring_up_to_date(due) == (step != "remove_old_generations")
    assert list(examine(due)) == []
    prune(due, [KEY, OTHER])
    assert not due.maintenance.exists()


def test_a_copy_that_lacks_rows_is_not_put_in_place(due, monkeypatch):
    before = due.current.read_bytes()
    compacting = lance_table.drop_other_versions

    def losing(table: Any) -> None:
        table.delete("path = '1.py'")
        compacting(table)

    monkeypatch.setattr(lance_table, "drop_other_versions", losing)
    with pytest.raises(DamagedStoreError, match="expected 40 rows of git/valves, got 38"):
        maintenance.maintain(due)

    assert due.current.read_bytes() == before
    assert not maintenance.bring_up_to_date(due)
    assert list(examine(due)) == []


def test_a_rollback_goes_to_what_was_published_before_and_not_to_the_same_rows(due):
    edit(due, 55)
    before = read_generation(due, previous=True)
    maintenance.maintain(due)

    roll_back(due)
    assert read_generation(due).sources == before.sources
    assert list(examine(due)) == []
    roll_back(due)

    assert fragments(due) == 1
    assert list(examine(due)) == []
    edit(due, 56)
    assert list(examine(due)) == []


def test_after_a_rollback_past_it_it_is_done_again(due):
    maintenance.maintain(due)
    roll_back(due)
    edit(due, 57)

    assert maintenance.bring_up_to_date(due)

    assert fragments(due) == 1
    assert list(examine(due)) == []


def test_a_writer_that_dies_after_it_costs_nothing_of_it(due, monkeypatch):
    maintenance.maintain(due)
    with monkeypatch.context() as patch:
        patch.setattr(lance_table, "written_since", lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            edit(due, 66)

    edit(due, 67)

    assert fragments(due) == 2
    assert list(examine(due)) == []


def test_what_a_writer_that_died_left_is_not_published_by_it(due, monkeypatch):
    rows = rows_of(due)
    with monkeypatch.context() as patch:
        patch.setattr(lance_table, "written_since", lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            edit(due, 66)

    maintenance.maintain(due)

    assert rows_of(due) == rows
    assert list(examine(due)) == []


def test_a_rollback_to_the_table_before_is_brought_over(due, meanwhile, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 0)
    maintenance.maintain(due)
    tables, before = tables_in(due), read_generation(due, previous=True)
    assert len(tables) == 2
    meanwhile(roll_back)

    assert len(maintenance.maintain(due)) == 1

    assert published(due).table not in tables
    assert published(due).sources == before.sources
    assert list(examine(due)) == []


def test_the_table_that_was_replaced_last_stays_for_readers_and_no_other(due):
    reader = open_reader(due)
    maintenance.maintain(due)
    for number in range(3):
        edit(due, number)
    assert reader.table.count_rows() == 81  # the table is only opened now
    first = tables_in(due) - {read_generation(due).table}

    for number in range(maintenance._MAX_VERSIONS):
        edit(due, number)
    maintenance.maintain(due)
    edit(due, 1)
    edit(due, 2)

    assert len(tables_in(due)) == 2
    assert not first & tables_in(due)
    end_grace(due)
    edit(due, 3)
    assert tables_in(due) == {read_generation(due).table}


def test_a_table_goes_when_the_next_one_is_replaced_though_the_generation_before_needs_that_one(due):
    tables = []
    for _ in range(2):
        tables.append(published(due).table)
        edit(due, *range(maintenance._MAX_VERSIONS))
        maintenance.maintain(due)

    assert tables_in(due) == {tables[-1], published(due).table}
    assert read_generation(due, previous=True).table == tables[-1]


def test_the_index_that_is_to_take_over_is_maintained_as_well(due):
    maintenance.maintain(due)
    other = replace(published(due), model="another", optimized_version=-30)
    replace_next(due, other)
    table = read_generation(due).table

    [done] = maintenance.maintain(due)

    assert done.generation == other.number
    assert read_next(due).table.startswith("chunks-another-")
    assert read_generation(due).table == table
    assert not maintenance.why_due(due)


def test_one_at_a_time(due):
    with exclusive_if_free(due.maintenance_lock, "another"):
        assert maintenance.maintain(due) == []

    assert len(maintenance.maintain(due)) == 1


@pytest.mark.slow
def test_the_folder_stays_within_three_times_its_rows(layout):
    publish_files(layout, FILES, OTHER)
    largest = 0
    for number in range(3 * maintenance._MAX_VERSIONS):
        edit(layout, number)
        maintenance.bring_up_to_date(layout)
        largest = max(largest, len(list(layout.lance.glob("*.lance/data/*"))))

    assert largest < 3 * maintenance._MAX_VERSIONS


def test_the_copy_shares_the_files_of_the_table(due):
    generation = read_generation(due)

    lance_table.link_version(due, generation.table, generation.table_version, due.maintenance, "copy")

    for folder in ("data", "_indices"):
        of_table, of_copy = (
            {file.stat().st_ino for file in (parent / folder).rglob("*") if file.is_file()}
            for parent in (due.lance / f"{generation.table}.lance", due.maintenance / "copy.lance")
        )
        assert of_copy == of_table != set()
