"""Tests that a full disk at any point of a run gives a one-line error, keeps searches working and needs no repair.

The index is on a small in-memory file system.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.core.errors import FullDiskError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.stores.prune import prune
from docindex_dagster.stores.reader import open_reader
from tests.disks import leave_free, mounted
from tests.incremental.contents import difference, leftovers, problems, stores_of
from tests.incremental.processes import CHECKOUT, anew, contents_of, docindex, index_by_command
from tests.incremental.projects import Project
from tests.stores.test_publish import FILES, KEY, publish_files

_DISK_BYTES = 48 << 20
# From too little space for the first table to enough for all files but the last.
_FREE_KIB = (0, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 180, 200, 220, 240, 280, 320, 400)
_FREE_KIB_FOR_COMMANDS = (200,)
_SOME_KIB = _FREE_KIB[::4]
every_fourth = pytest.mark.parametrize(
    "free_kib",
    [_SOME_KIB, pytest.param((0, *sorted({*_FREE_KIB}.difference(_SOME_KIB))), marks=pytest.mark.slow)],
    ids=["some", "the others"],
)


@pytest.fixture
def disk(folder: Path) -> Iterator[Path]:
    """Mount an empty file system of 48 MiB."""
    with mounted(folder, _DISK_BYTES) as disk:
        yield disk


@pytest.fixture
def project(folder: Path, disk: Path) -> Project:
    """Return an indexed and then edited project; only its index and Dagster's databases are on the small disk."""
    made = Project.create(folder / "project", 1, files=15)
    made.layout.home.symlink_to(disk / "home")
    (disk / "home").mkdir()
    return made


def leave_inodes(disk: Path, number: int) -> None:
    """Limit the disk to this many more files."""
    state = os.statvfs(disk)
    limit = state.f_files - state.f_ffree + number
    subprocess.run(["mount", "-o", f"remount,size={_DISK_BYTES},nr_inodes={limit}", disk], check=True)


@every_fourth
def test_a_full_disk_is_reported_in_a_line_and_costs_nothing(project, disk, free_kib):
    git, _ = project.sources
    for source in project.sources:
        index(project.settings, source, StaticEmbedder())
    project.edit(0.5)
    before = stores_of(project.layout)
    failed_in = set()
    for kib in free_kib:
        leave_free(disk, kib)
        try:
            index(project.settings, git, StaticEmbedder())
        except FullDiskError as error:
            message = str(error)
        else:
            break
        assert "\n" not in message
        assert str(project.layout.home) in message
        failed_in.add(message.partition(" is full")[0].rpartition("/")[2])
        assert difference(stores_of(project.layout), before) == ""
        assert len(search(open_reader(project.layout), "open the pump", StaticEmbedder)) == 10
        assert leftovers(project.layout) == []

    assert {"discovered_files", "stores"} <= failed_in  # the other tables are written in parallel with the stores
    (disk / "filler").unlink()
    for source in project.sources:
        index(project.settings, source, StaticEmbedder())
    assert difference(contents_of(project), anew(project, "library")) == ""
    assert problems(project.layout) == []
    assert leftovers(project.layout) == []


@every_fourth
def test_a_first_run_on_a_full_disk_is_repaired_by_the_next(project, disk, free_kib):
    git, _ = project.sources
    for kib in free_kib:
        leave_free(disk, kib)
        try:
            index(project.settings, git, StaticEmbedder())
        except FullDiskError as error:
            assert "\n" not in str(error)  # noqa: PT017 the run succeeds once there is enough
            assert not project.layout.current.exists()
    (disk / "filler").unlink()

    for source in project.sources:
        index(project.settings, source, StaticEmbedder())

    assert difference(contents_of(project), anew(project, "library")) == ""
    assert leftovers(project.layout) == []


def test_a_disk_that_can_hold_no_more_files_is_full(disk):
    layout = Layout(disk / "home")
    publish_files(layout, FILES)
    before = stores_of(layout)
    leave_inodes(disk, 0)
    with pytest.raises(FullDiskError):
        prune(layout, [KEY])
    for inodes in range(0, 100, 3):
        leave_inodes(disk, inodes)
        try:
            publish_files(layout, {**FILES, "c.py": ["delta is new"]})
        except FullDiskError as error:
            assert "it has no free inodes" in str(error)  # noqa: PT017 it succeeds once there are enough
            assert difference(stores_of(layout), before) == ""
        else:
            break
    assert inodes > 0
    assert open_reader(layout).searcher.num_docs == 4


def test_dagsters_record_on_a_disk_that_can_hold_no_more_files(disk):
    leave_inodes(disk, 0)
    with pytest.raises(FullDiskError, match="it has no free inodes"), reporting_full_disk(disk):
        sqlite3.connect(disk / "runs.db").execute("CREATE TABLE runs (id)")


@pytest.mark.slow
def test_commands_say_that_the_disk_is_full(project, disk):
    index_by_command(project)
    project.edit(0.5)
    before = stores_of(project.layout)
    for kib in _FREE_KIB_FOR_COMMANDS:
        leave_free(disk, kib)
        done = docindex(project, "index", "git/code")
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert len(errors) == 1, done.stderr
        assert "is full" in errors[0]
        assert difference(stores_of(project.layout), before) == ""
    assert docindex(project, "search", "open the pump").returncode == 0

    (disk / "filler").unlink()
    index_by_command(project)
    assert difference(contents_of(project), anew(project, "command")) == ""
    assert leftovers(project.layout) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no namespace")
def test_all_this_in_a_namespace_of_an_ordinary_user():
    namespace = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system gives users no namespace of their own")
    command = [*namespace, sys.executable, "-m", "pytest", __file__, "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
