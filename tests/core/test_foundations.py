"""Foundations: atomic files, stamped tables, locks between processes, paths."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.cli import serve
from docindex_dagster.core import tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout, file_name, key_of
from docindex_dagster.core.locks import exclusive, exclusive_if_free, hold_until_exit

TABLE = pa.table({"name": ["a", "b"], "size": [1, 2]})


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()

    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_table_of_the_same_version_is_not_written_again(tmp_path):
    stamped = tables.stamp(TABLE, tables.data_version(TABLE))

    assert tables.write(tmp_path / "t.parquet", stamped)
    assert not tables.write(tmp_path / "t.parquet", stamped)
    assert tables.read(tmp_path / "t.parquet").equals(TABLE)


def test_a_table_with_other_metadata_is_written_and_one_of_another_time_is_not(tmp_path):
    def stamped(**about: str) -> pa.Table:
        metadata = {f"docindex.{name}": value for name, value in about.items()}
        return tables.stamp(TABLE.replace_schema_metadata(metadata), "1")

    path = tmp_path / "t.parquet"
    assert tables.write(path, stamped(head="a", started_ns="1"))
    assert not tables.write(path, stamped(head="a", started_ns="2"))
    assert tables.write(path, stamped(head="b", started_ns="2"))
    assert tables.metadata_value(path, b"docindex.head") == "b"


def test_a_version_follows_from_content_alone(tmp_path):
    tables.write(tmp_path / "t.parquet", TABLE)
    assert tables.data_version(tables.read(tmp_path / "t.parquet")) == tables.data_version(TABLE)
    pieces = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])

    assert tables.data_version(pieces) == tables.data_version(TABLE.replace_schema_metadata({"made": "today"}))
    assert tables.data_version(TABLE.slice(1)) != tables.data_version(TABLE)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_table_reads_as_none_so_that_it_is_made_anew(tmp_path, content):
    (tmp_path / "t.parquet").write_bytes(content)

    assert tables.read(tmp_path / "t.parquet") is None
    assert tables.write(tmp_path / "t.parquet", tables.stamp(TABLE, "1"))


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_have_different_hashes(left, right):
    assert (digest_parts(*left) == digest_parts(*right)) == (left == right)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=2, max_size=2, unique=True))
def test_every_source_key_has_a_file_of_its_own_below_its_folder(keys):
    layout = Layout(Path("/home"))

    first, second = (layout.table("chunks", key) for key in keys)

    assert first != second
    assert first.parent == Path("/home/tables/chunks")
    assert "/" not in file_name(keys[0])
    assert all(key_of(file_name(key)) in {key, None} for key in keys)


@pytest.mark.parametrize("key", ["git/a@main", "library/a b", "git/100%2F~é", "library/..."])
def test_a_file_name_says_of_which_key_it_is(key):
    assert key_of(file_name(key)) == key


@pytest.mark.parametrize("key", ["git/" + "a" * 200, "..."])
def test_a_file_name_with_a_hash_does_not_say_of_which_key_it_is(key):
    assert key_of(file_name(key)) is None


def _hold(path: Path, held: "multiprocessing.synchronize.Event") -> None:
    with exclusive(path, "the first", on_wait=lambda _: None):
        held.set()
        time.sleep(60)


def test_a_lock_says_whom_it_waits_for_and_is_free_when_its_holder_is_killed(tmp_path):
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path / "lock", held))
    holder.start()
    assert held.wait(30)
    waited_for: list[str] = []

    def kill_the_holder(owner: str) -> None:
        waited_for.append(owner)
        holder.kill()

    with exclusive(tmp_path / "lock", "the second", on_wait=kill_the_holder):
        assert waited_for == ["the first"]
    holder.join()


HOLDER = """
import os, sys
from pathlib import Path
from docindex_dagster.core.locks import hold_until_exit
assert hold_until_exit(Path(sys.argv[1]), "http://127.0.0.1:3000") is None
os.execv(sys.executable, [sys.executable, "-c", "print(flush=True); input()"])
"""


def test_a_lock_for_life_outlasts_the_program_that_took_it_and_ends_with_its_process(tmp_path):
    lock = tmp_path / "ui.lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()

        assert hold_until_exit(lock, "another") == "http://127.0.0.1:3000"

        other.communicate(b"\n")

    with exclusive_if_free(lock, "another") as is_mine:
        assert is_mine


def test_a_second_ui_on_the_same_instance_is_refused_and_says_where_the_first_is(tmp_path, monkeypatch):
    (tmp_path / "docindex.toml").touch()
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)

    with (
        exclusive(tmp_path / ".docindex/dagster/ui.lock", "http://127.0.0.1:3000", on_wait=print),
        pytest.raises(SourceError, match=r"already running.*open http://127\.0\.0\.1:3000"),
    ):
        serve.ui(port=1, host="127.0.0.1")
