"""Opening a published generation: needs only read access, and reports what prevents it."""

import fcntl
import shutil
import subprocess
import sys

import pytest

from docindex_dagster.core.errors import AccessError, DamagedStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import open_reader
from tests.privileges import as_ordinary_user
from tests.stores.test_publish import FILES, publish_files, state


def test_opening_leaves_no_file(layout, tmp_path):
    publish_files(layout, FILES)
    # A Tantivy thread may still take the lock in the home that published.
    copied = Layout(shutil.copytree(layout.home, tmp_path / "copied"))
    for lock in copied.tantivy.rglob("*.lock"):
        lock.unlink()
    before = state(copied)

    for _ in range(20):  # gives a Tantivy thread time to reopen the index
        assert open_reader(copied).searcher.num_docs == 3

    assert state(copied) == before


def test_a_lock_that_another_process_holds_keeps_no_reader_waiting(layout):
    publish_files(layout, FILES)
    (lock,) = layout.tantivy.rglob(".tantivy-meta.lock")
    program = "import sys, pathlib; from docindex_dagster.core.layout import Layout; "
    program += "from docindex_dagster.stores.reader import open_reader; open_reader(Layout(pathlib.Path(sys.argv[1])))"

    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-c", program, layout.home], check=True, timeout=60)


@pytest.mark.parametrize("pattern", ["CURRENT", "tantivy/*/*.store", "tantivy/*/meta.json", "graph/*"])
def test_what_may_not_be_read_is_denied_and_not_damaged(layout, pattern):
    publish_files(layout, FILES)
    denied = next(layout.stores.glob(pattern))
    mode = denied.stat().st_mode
    denied.chmod(0)
    with as_ordinary_user(), pytest.raises(AccessError, match="Permission denied"):
        open_reader(layout).table.count_rows()
    denied.chmod(mode)


def test_a_lock_that_keeps_a_writer_out_is_no_damage(layout):
    index = tantivy_index.create(layout.tantivy / "1")
    writer = index.writer()

    with pytest.raises(AccessError, match="another process holds a lock"), reading_stores():
        index.writer()
    del writer


def test_a_damaged_file_is_named_where_it_lies(layout):
    publish_files(layout, FILES)
    (lost,) = layout.tantivy.rglob("*.store")
    lost.unlink()

    with pytest.raises(DamagedStoreError, match=str(lost)):
        open_reader(layout)
