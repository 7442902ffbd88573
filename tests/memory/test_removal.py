"""Removing folded messages from a log: none of their bytes stay, even after a crash, and nothing else is lost."""

import json
import os
import stat
import subprocess
import sys
import tempfile

import pytest

from docindex_dagster.memory.message import Offsets
from docindex_dagster.memory.segments import Segments
from tests.memory.logs import another, files, message, texts, write, written
from tests.memory.processes import CHECKOUT


def test_of_what_is_removed_no_byte_is_left(log):
    write(log, "alpha", "beta")
    write(another(log), "gamma")
    cut = log.cut()
    write(log, "delta")

    assert log.remove(cut) == list(cut.ends)
    assert texts(log) == ["delta"]
    assert [text for text in (b"alpha", b"beta", b"gamma", b"delta") if text in files(log)] == [b"delta"]


def test_a_writer_goes_on_in_another_segment_after_a_cut(log):
    write(log, "a", "b")
    cut = log.cut()
    write(log, "c", "a")

    after = log.cut()

    assert {name: after.ends[name] for name in cut.ends} == cut.ends
    assert len(after.ends) == 2
    assert [(each.message.text, each.repeats) for each in written(log)] == [("a", 1), ("b", 0), ("c", 0)]


def test_a_cut_leaves_segments_read_only(log):
    write(log, "a")
    log.cut()
    [file] = log.home.log.rglob("*.seg")

    assert stat.S_IMODE(file.stat().st_mode) == 0o400


def test_a_tombstone_that_stays_covers_nothing_that_is_written_later(log):
    write(log, "old")
    cut = log.cut()
    log.forget("session", "s")
    log.remove(cut)
    write(log, "new")

    assert texts(log) == ["new"]
    assert log.read().entries[0].record.names(message("any"))


def test_damage_goes_with_its_segment(log):
    write(log, "alpha", "beta")
    [file] = log.home.log.rglob("*.seg")
    data = bytearray(file.read_bytes())
    data[data.index(b"alpha")] ^= 1
    file.write_bytes(data)
    log.remove(log.cut())

    assert (texts(log), another(log).read().flaws) == ([], ())
    assert b"lpha" not in files(log)


def test_segments_that_are_folded_can_be_removed(log):
    write(log, "a")
    folded = log.cut()
    write(another(log), "b")

    assert log.remove(folded) == list(folded.ends)
    assert texts(log) == ["b"]
    write(log, "c")  # its segment is gone
    assert texts(log) == ["b", "c"]


def test_a_segment_that_is_folded_in_part_stays(log):
    write(log, "a")
    folded = Offsets(Segments(log.home).sizes())  # the cut of older versions
    write(log, "b")

    assert log.remove(folded) == []
    assert log.remove(Offsets()) == []
    assert [entry.record.text for entry in log.read(folded).entries] == ["b"]


def test_a_segment_with_a_torn_end_can_be_removed(log):
    write(log, "a")
    [file] = log.home.log.rglob("*.seg")
    with file.open("ab") as segment:
        segment.write(b"\xff\xfe\x01")
    log.close()

    assert len(log.remove(log.cut())) == 1


def killed_at_each_step(work):
    """Count the results per step, in an in-memory home if available, since most of a step is syncing to disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as home:
        command = [sys.executable, "-m", "tests.memory.steps", work, home]
        done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_process_that_dies_at_any_step_of_a_cut_loses_nothing():
    assert killed_at_each_step("cut").keys() == {"first,last"}


def test_a_process_that_dies_at_any_step_of_a_write_leaves_it_whole_or_not_at_all():
    assert killed_at_each_step("append").keys() == {"nothing", "new"}


def test_a_process_that_dies_at_any_step_of_a_removal_leaves_whole_segments():
    assert killed_at_each_step("remove").keys() == {"first,last", "last", "nothing"}


@pytest.mark.parametrize("rubbish", [".00000003.tmp", "00000000"])
def test_what_an_older_version_took_out_is_not_read_and_goes_with_a_removal(log, rubbish):
    write(log, "kept")
    log.close()
    (log.home.log / "00000000").rename(log.home.log / "00000002")  # the numbering of rewrites in older versions
    left = log.home.log / rubbish
    left.mkdir()
    [file] = (log.home.log / "00000002").iterdir()
    (left / file.name).write_bytes(file.read_bytes().replace(b"kept", b"gone"))
    assert texts(log) == ["kept"]
    write(log, "new")
    log.remove(Offsets())

    assert texts(log) == ["kept", "new"]
    assert [folder.name for folder in log.home.log.iterdir()] == ["00000002"]
