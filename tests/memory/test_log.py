"""The log: any process reads each written message once and in order."""

import os
import shutil
import stat
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from docindex_dagster.core import locks
from docindex_dagster.core.errors import LogError
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import Anchor, Offsets, Tombstone, compose, current_messages
from docindex_dagster.memory.segments import Segments
from tests.memory.logs import DOMAIN, another, message, texts, write, written


def segments(log: Log) -> list[str]:
    return list(Segments(log.home).sizes())


def test_what_was_appended_is_read_with_its_place_and_time(log):
    before = time.time_ns() // 1000
    anchor = Anchor("git/x", "a.py", "f", "00ff")
    entries = log.append([compose(DOMAIN, "s", "hello", role="tool", tool="shell", anchors=[anchor])])

    read = another(log).read()

    assert list(read.entries) == entries
    assert read.flaws == ()
    [found] = [entry.record for entry in read.entries]
    assert (found.role, found.tool, found.text, found.anchors) == ("tool", "shell", "hello", (anchor,))
    assert before <= found.at <= time.time_ns() // 1000


def test_a_reader_goes_on_where_it_was(log):
    reader = another(log)
    assert reader.read() == reader.read(Offsets())
    write(log, "one")
    first = reader.read()
    assert reader.read(first.offsets).entries == ()
    write(log, "two", "three")
    second = reader.read(first.offsets)

    assert [entry.record.text for entry in (*first.entries, *second.entries)] == ["one", "two", "three"]
    assert reader.read(second.offsets).offsets == second.offsets


def test_nothing_is_made_before_something_is_written(log, layout):
    assert log.read().entries == ()
    assert log.append([]) == []
    assert log.cut() == Offsets()
    assert log.remove(Offsets()) == []
    assert not layout.home.exists()


def test_records_that_were_appended_together_lie_together(log):
    positions = [entry.position for entry in log.append([message(text) for text in "abc"])]

    assert [position.start for position in positions[1:]] == [position.end for position in positions[:-1]]


def test_each_process_has_a_segment_and_readers_see_one_order(log):
    other = another(log)
    for number in range(4):
        write(log, f"a{number}")
        write(other, f"b{number}")

    assert len(segments(log)) == 2
    assert texts(log) == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


def test_a_large_segment_is_followed_by_another(layout):
    home = open_log(layout, DOMAIN).home
    log = Log(home, segment_bytes=1000)
    write(log, *(f"{number} " * 50 for number in range(20)))

    assert 5 <= len(segments(log)) <= 20
    assert texts(log) == [f"{number} " * 50 for number in range(20)]


def test_a_closed_log_begins_a_segment(log):
    write(log, "one")
    log.close()
    log.close()
    write(log, "two")

    assert len(segments(log)) == 2
    assert texts(log) == ["one", "two"]


def test_a_message_that_comes_again_counts_once(log):
    write(log, "yes", "no")
    write(another(log), "yes", "yes")
    first = log.read().entries[0].record

    found = written(log)

    assert [(each.message.text, each.repeats) for each in found] == [("yes", 2), ("no", 0)]
    assert found[0].message == first


def test_a_clients_message_that_comes_again_with_another_text_is_the_first(log):
    for text in ("draft", "final"):
        log.append([compose(DOMAIN, "s", text, message_id="m1")])

    assert texts(log) == ["draft"]


def test_tool_results_with_the_same_first_characters_are_two(log):
    head = "tests/test_wire.py::test_roundtrip[one-two-three-four-five-six-seven] "
    write(log, f"{head}120 passed", f"{head}17 FAILED")

    assert texts(log) == [f"{head}120 passed", f"{head}17 FAILED"]


def test_a_clock_that_goes_back_loses_and_reorders_nothing(log, monkeypatch):
    now = time.time_ns()
    clock = iter([now, now - 3600 * 10**9, now - 7200 * 10**9, now - 7200 * 10**9])
    monkeypatch.setattr("docindex_dagster.memory.log.time.time_ns", lambda: next(clock, now))
    reader = another(log)
    offsets = Offsets()
    seen = []
    for text in "abc":
        write(log, text)
        read = reader.read(offsets)
        seen += [entry.record for entry in read.entries]
        offsets = read.offsets

    assert [record.text for record in seen] == texts(log) == ["a", "b", "c"]
    assert [record.at for record in seen] == [seen[0].at, seen[0].at + 1, seen[0].at + 2]


def test_the_time_of_a_message_that_has_one_stays(log):
    log.append([replace(message("of old"), at=5), message("of now")])

    assert texts(log) == ["of old", "of now"]
    assert log.read().entries[0].record.at == 5


@pytest.mark.parametrize("text", ["", "\0", "\u2028\n\r\t", "ümläut \U0001f600", "x" * (300 << 10), "\ufffd"])
def test_any_text_comes_back(log, text):
    write(log, text)

    assert texts(log) == [text]


def test_threads_share_a_log(log):
    def run(name: str) -> None:
        write(log, *(f"{name}{number:03d}" for number in range(50)), session=name)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(segments(log)) == 1
    times = [each.message.at for each in written(log)]
    assert len(set(times)) == len(times) == 400
    for name in "abcdefgh":
        assert [text for text in texts(log) if text[0] == name] == [f"{name}{number:03d}" for number in range(50)]


def test_threads_that_wait_together_share_a_sync(log, monkeypatch):
    write(log, "first")
    syncs = []
    started = threading.Event()
    others_wait = threading.Event()

    def slow_sync(descriptor: int) -> None:
        syncs.append(descriptor)
        if len(syncs) == 1:
            started.set()
            assert others_wait.wait(10)
        os.fsync(descriptor)

    monkeypatch.setattr("docindex_dagster.memory.log.sync_data", slow_sync)
    threads = [threading.Thread(target=write, args=(log, name)) for name in "abcdefgh"]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    while len(log._writer._state.waiting) < 7:
        time.sleep(0.001)
    others_wait.set()
    for thread in threads:
        thread.join()

    assert len(syncs) == 2
    assert sorted(texts(log)) == sorted([*"abcdefgh", "first"])


def test_a_tombstone_covers_what_was_written_before_it(log):
    write(log, "old", session="s")
    write(log, "other", session="t")
    assert log.forget("session", "s").record.covers == Offsets({segments(log)[0]: log.read().entries[1].position.end})
    write(log, "new", session="s")

    assert texts(log) == ["other", "new"]


def test_what_is_written_again_after_it_was_forgotten_is_there_again(log):
    write(log, "a", "b", "b")
    log.forget("message", message("b").id)
    assert texts(log) == ["a"]
    write(another(log), "b")

    assert [(each.message.text, each.repeats) for each in written(log)] == [("a", 0), ("b", 0)]


def test_a_whole_domain_can_be_forgotten(log):
    write(log, "a")
    write(another(log), "b")
    log.forget("domain")
    write(log, "c")

    assert texts(log) == ["c"]


def test_what_is_forgotten_is_hidden_although_the_clock_went_back(log, monkeypatch):
    write(log, "a")
    other = another(log)
    monkeypatch.setattr("docindex_dagster.memory.log.time.time_ns", lambda: 10**9)
    other.forget("session", "s")
    write(other, "b")

    assert texts(log) == ["b"]


def test_messages_are_the_same_in_whatever_order_a_log_is_read(log):
    write(log, "a", "b", "a")
    log.forget("message", message("b").id)
    write(another(log), "b", "c")
    entries = log.read().entries

    assert current_messages((), entries) == current_messages((), entries[::-1])
    assert texts(log) == ["a", "b", "c"]


def test_a_state_of_the_log_has_what_came_before_it_and_not_what_came_later(log):
    write(log, "a", "b")
    cut = log.cut()
    write(log, "c")
    write(another(log), "d")

    assert [entry.record.text for entry in log.read(until=cut).entries] == ["a", "b"]
    assert [entry.record.text for entry in log.read(cut).entries] == ["c", "d"]
    assert [cut.covers(entry.position) for entry in log.read().entries] == [True, True, False, False]


def test_a_state_of_the_log_is_taken_between_writes(log):
    write(log, "a")
    taken: list[Offsets] = []
    taking = threading.Thread(target=lambda: taken.append(log.cut()))
    with locks.shared(log.home.log_lock):  # as a write does
        taking.start()
        taking.join(0.1)
        assert taken == []
    taking.join()

    assert taken == [log.cut()]


def test_a_read_begins_anew_when_a_removal_comes_between(log, monkeypatch):
    write(log, "a")
    cut = log.cut()
    write(log, "b")
    read = Segments.read

    def after_a_removal(*arguments: Any) -> bytes:
        monkeypatch.setattr(Segments, "read", read)
        another(log).remove(cut)
        return read(*arguments)

    monkeypatch.setattr(Segments, "read", after_a_removal)

    assert [entry.record.text for entry in log.read().entries] == ["b"]


def damage(log: Log, text: str) -> None:
    """Flip a bit of a text in a segment."""
    [file] = log.home.log.rglob("*.seg")
    data = bytearray(file.read_bytes())
    data[data.index(text.encode())] ^= 1
    file.write_bytes(data)


def test_damage_is_reported_by_its_place_and_costs_one_message(log):
    write(log, "alpha", "beta", "gamma")
    place = log.read().entries[1].position
    damage(log, "beta")

    read = another(log).read()

    assert [entry.record.text for entry in read.entries] == ["alpha", "gamma"]
    assert [(flaw.position, flaw.is_torn) for flaw in read.flaws] == [(place, False)]
    assert log.read(read.offsets).flaws == ()


def test_a_torn_write_is_ignored_and_reported(log):
    write(log, "alpha", "beta")
    [file] = log.home.log.rglob("*.seg")
    os.truncate(file, file.stat().st_size - 3)

    read = another(log).read()

    assert [entry.record.text for entry in read.entries] == ["alpha"]
    assert [flaw.is_torn for flaw in read.flaws] == [True]
    assert read.offsets.end(segments(log)[0]) == read.entries[0].position.end


def test_files_are_private(log, layout):
    write(log, "alpha")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (layout.home, *layout.home.rglob("*")) if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in layout.home.rglob("*") if path.is_file()} == {0o600}


def test_the_group_of_a_home_reads_what_lies_in_it(log, layout):
    layout.home.mkdir(mode=0o750)
    layout.home.chmod(0o750)
    before = os.umask(0o027)
    try:
        write(log, "alpha")
    finally:
        os.umask(before)

    [file] = log.home.log.rglob("*.seg")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in list(file.parents)[:4]} == {0o750}


def test_symbolic_links_are_not_followed(log, layout, tmp_path):
    write(log, "alpha")
    [file] = log.home.log.rglob("*.seg")
    elsewhere = open_log(Layout(tmp_path / "elsewhere"), DOMAIN)
    write(elsewhere, "foreign")
    [foreign] = elsewhere.home.log.rglob("*.seg")
    (file.parent / foreign.name).symlink_to(foreign)
    (log.home.log / "00000007").symlink_to(foreign.parent)
    (log.home.log / "notes.txt").write_text("no segment")

    assert texts(log) == ["alpha"]
    with pytest.raises(OSError, match="symbolic links"):
        Segments(log.home).read(f"00000000/{foreign.name}", 0, 1)
    log.remove(log.cut())
    assert texts(log) == []
    assert texts(elsewhere) == ["foreign"]
    write(elsewhere, "more")  # the cut has not sealed its segment


@pytest.mark.parametrize("what", ["home", "log"])
def test_a_log_that_is_a_symbolic_link_is_refused(layout, tmp_path, what):
    elsewhere = open_log(Layout(tmp_path / "elsewhere"), DOMAIN)
    write(elsewhere, "foreign")
    shutil.rmtree(elsewhere.home.log_lock.parent)
    log = open_log(layout, DOMAIN)
    link = {"home": log.home.home, "log": log.home.log}
    link[what].parent.mkdir(parents=True)
    link[what].symlink_to(getattr(elsewhere.home, what))

    with pytest.raises(LogError, match="symbolic link"):
        log.read()
    with pytest.raises(LogError, match="symbolic link"):
        write(log, "mine")
    assert texts(elsewhere) == ["foreign"]
    assert [path.name for path in elsewhere.home.home.iterdir()] == ["log"]


def test_a_tombstone_is_written_even_where_nothing_is(log):
    assert isinstance(log.forget("session", "s").record, Tombstone)
    assert log.read().entries[0].record.covers == Offsets()
