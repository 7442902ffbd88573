"""Taking records out: none of their bytes stays, whenever the process dies, and no other record is lost."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from docindex_dagster.memory.position import Offsets
from tests.memory.logs import another, files, message, texts, transcript, write
from tests.memory.processes import CHECKOUT


def test_what_is_not_wanted_and_what_is_forgotten_leaves_no_byte(log):
    write(log, "alpha", "beta", "gamma")
    write(another(log), "delta", session="t")
    log.forget("session", "t")

    result = log.rewrite(lambda entry: getattr(entry.record, "text", "") != "beta")

    assert (result.retained, result.removed, result.flaws) == (3, 2, ())  # the tombstone stays
    assert texts(log) == ["alpha", "gamma"]
    assert [text for text in (b"alpha", b"beta", b"gamma", b"delta") if text in files(log)] == [b"alpha", b"gamma"]


def test_a_tombstone_that_stays_covers_nothing_that_is_written_later(log):
    write(log, "old")
    log.forget("session", "s")
    log.rewrite(lambda _: True)
    write(log, "new")

    assert texts(log) == ["new"]
    assert transcript(log).tombstones[0].names(message("any"))


def test_messages_keep_their_times_order_and_repeats(log):
    write(log, "a", "b", "a")
    write(another(log), "c")
    before = [(each.message, each.repeats) for each in transcript(log).messages()]
    log.rewrite(lambda _: True)

    assert [(each.message, each.repeats) for each in transcript(log).messages()] == before


def test_a_rewrite_joins_segments(log):
    for text in "abcdef":
        write(another(log), text)
    assert len(log.cut().ends) == 6
    log.rewrite(lambda _: True)

    assert len(log.cut().ends) == 1


def test_a_writer_goes_on_in_the_new_epoch(log):
    write(log, "a")
    another(log).rewrite(lambda _: True)
    write(log, "b")
    another(log).rewrite(lambda _: False)
    another(log).rewrite(lambda _: True)
    write(log, "c")

    assert texts(log) == ["c"]


def test_damage_goes_with_a_rewrite_and_is_reported(log):
    write(log, "alpha", "beta")
    [file] = log.home.log.rglob("*.seg")
    data = bytearray(file.read_bytes())
    data[data.index(b"alpha")] ^= 1
    file.write_bytes(data)

    result = log.rewrite(lambda _: True)

    assert [flaw.is_torn for flaw in result.flaws] == [False]
    assert (texts(log), another(log).read().flaws) == (["beta"], ())
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
    folded = log.cut()
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
    """How often what was found, in a home in memory where there is such: most of a step is syncing to a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as home:
        command = [sys.executable, "-m", "tests.memory.steps", work, home]
        done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_process_that_dies_at_any_step_of_a_rewrite_leaves_the_old_or_the_new():
    found = killed_at_each_step("rewrite")

    assert found.keys() == {"first,last"}  # what is forgotten is never seen, in the old one by its tombstone
    assert found["first,last"] > 100


def test_a_process_that_dies_at_any_step_of_a_write_leaves_it_whole_or_not_at_all():
    found = killed_at_each_step("append")

    assert found.keys() == {"nothing", "new"}


def test_a_process_that_dies_at_any_step_of_a_removal_leaves_whole_segments():
    found = killed_at_each_step("remove")

    assert found.keys() == {"first,last", "last", "nothing"}


@pytest.mark.parametrize("suffix", [".00000001.tmp", "00000000"])
def test_what_a_killed_rewrite_left_is_removed_by_the_next(log, suffix):
    write(log, "secret")
    log.rewrite(lambda _: True)
    rubbish = log.home.log / suffix
    rubbish.mkdir()
    (rubbish / "any.seg").write_bytes(b"secret rubbish")
    assert texts(log) == ["secret"]
    log.remove(Offsets())

    assert [folder.name for folder in log.home.log.iterdir()] == ["00000001"]
