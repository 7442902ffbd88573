"""Atomic file replacement, and error messages for a full disk."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from threading import Event, Thread

import pytest

from docindex_dagster.core.errors import FullDiskError
from docindex_dagster.core.files import atomic_write, remove_tree, reporting_full_disk, sync


def test_what_a_killed_process_left_behind_goes_away_with_the_next_write(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    abandoned = tmp_path / f".rows[1].parquet.{dead.pid}.tmp"
    of_the_living = tmp_path / f".rows[1].parquet.{os.getppid()}.tmp"
    of_another_file = tmp_path / f".rows1.parquet.{dead.pid}.tmp"
    for file in (abandoned, of_the_living, of_another_file):
        file.write_text("half")

    with atomic_write(tmp_path / "rows[1].parquet") as temporary:
        temporary.write_text("whole")

    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"rows[1].parquet", of_the_living.name, of_another_file.name}


def test_a_file_that_is_replaced_keeps_its_permissions_and_meanwhile_nobody_else_reads_the_new_one(tmp_path):
    file = tmp_path / "docindex.toml"
    file.touch()
    file.chmod(0o644)

    with atomic_write(file) as temporary:
        temporary.write_text("a key")
        assert temporary.stat().st_mode & 0o777 == 0o600

    assert file.stat().st_mode & 0o777 == 0o644


def test_a_new_file_has_the_permissions_that_are_asked_for(tmp_path):
    for name, mode in (("open", 0o666), ("own", 0o600)):
        with atomic_write(tmp_path / name, mode) as temporary:
            temporary.write_text("new")

    os.umask(mask := os.umask(0))
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600


def test_a_link_that_stands_where_the_new_file_would_is_not_written_through(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".settings.json.guessed.{os.getpid()}.tmp").symlink_to(precious)

    with pytest.raises(FileExistsError), atomic_write(tmp_path / "settings.json") as temporary:
        temporary.write_text("theirs")
    assert precious.read_text() == "mine"


def test_the_name_of_the_new_file_cannot_be_foreseen(tmp_path):
    names = set()
    for _ in range(2):
        with atomic_write(tmp_path / "settings.json") as temporary:
            names.add(temporary.name)
    assert len(names) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_root_replaces_stays_its_owners(tmp_path):
    file = tmp_path / "docindex.toml"
    file.touch(mode=0o640)
    os.chown(file, 1234, 2345)

    with atomic_write(file) as temporary:
        temporary.write_text("new")

    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (1234, 2345, 0o640)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("lance error: LanceError(IO): No space left on device (os error 28), writer.rs:191:9"),
        ValueError("An IO error occurred: 'No space left on device (os error 28)'"),
    ],
)
def test_a_full_disk_is_one_line_whatever_library_meets_it(tmp_path, error):
    with pytest.raises(FullDiskError) as raised, reporting_full_disk(tmp_path):
        raise error

    assert str(raised.value).startswith(f"the disk that holds {tmp_path} is full")


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), ValueError("disk I/O error")])
def test_other_errors_stay_what_they_are(tmp_path, error):
    with pytest.raises(type(error)) as raised, reporting_full_disk(tmp_path):
        raise error

    assert raised.value is error


def test_a_folder_is_removed_though_a_thread_still_writes_into_it(tmp_path):
    folder = tmp_path / "index"
    for _ in range(50):
        folder.mkdir()
        written = Event()
        thread = Thread(target=write_until_gone, args=(folder, written))
        thread.start()
        written.wait()

        remove_tree(folder)

        thread.join()
        assert not folder.exists()


def write_until_gone(folder, written) -> None:
    """Write files until the folder is removed, like a thread of a library."""
    with suppress(FileNotFoundError):
        for number in range(300):
            (folder / f"{number}.idx").touch()
            written.set()


@pytest.mark.parametrize("count", [1, 20])
def test_all_files_are_synced_and_one_that_cannot_be_is_reported(tmp_path, monkeypatch, count):
    files = [tmp_path / str(number) for number in range(count)]
    for file in files:
        file.write_text("text")
    synced: set[int] = set()
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)

    sync(iter(files))
    assert synced == {file.stat().st_ino for file in files}

    with pytest.raises(FileNotFoundError):
        sync([*files, tmp_path / "gone"])
