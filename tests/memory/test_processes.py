"""Processes that write, read and cut one log: each sees acknowledged messages immediately, exactly once."""

import os
import random
import select
import threading
import time
from collections import Counter
from itertools import count
from typing import Any

import pytest

from docindex_dagster.memory.log import Log
from tests.memory.logs import another, texts, written
from tests.memory.processes import kill, run, start

_WRITERS = 4
_READERS = 2
_MESSAGES = 100


@pytest.fixture
def say(capsys):
    """Print a line even if the test passes: figures, and how to repeat a run."""

    def write_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)  # noqa: T201

    return write_line


def test_four_write_and_two_read(log, layout):
    readers = [start("watch", layout) for _ in range(_READERS)]
    writers = [start("write", layout, name, str(_MESSAGES)) for name in "abcd"]

    def forward(writer: Any) -> None:
        for line in writer.stdout:
            for reader in readers:
                os.write(reader.stdin.fileno(), line.encode())  # writes the complete line

    threads = [threading.Thread(target=forward, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [Counter(reader.communicate()[0].split()) for reader in readers]
    for writer in writers:
        writer.communicate()

    assert answers == [{"seen": _WRITERS * _MESSAGES}] * _READERS
    assert sorted(texts(log)) == sorted(f"{name}-{number}" for name in "abcd" for number in range(_MESSAGES))
    assert {each.repeats for each in written(log)} == {0}
    for name in "abcd":
        of_one = [text for text in texts(log) if text.startswith(name)]
        assert of_one == [f"{name}-{number}" for number in range(_MESSAGES)]


def test_a_cut_loses_nothing_of_processes_that_write_meanwhile(log, layout):
    writers = [start("write", layout, name, str(_MESSAGES)) for name in "abc"]
    cuts = 0
    while any(writer.poll() is None for writer in writers):
        (log if cuts % 2 else another(log)).cut()
        cuts += 1
        time.sleep(0.005)  # gives writers a chance to take the lock
    for writer in writers:
        assert len(writer.communicate()[0].split()) == _MESSAGES

    assert cuts > 3
    assert sorted(texts(log)) == sorted(f"{name}-{number}" for name in "abc" for number in range(_MESSAGES))
    assert {each.repeats for each in written(log)} == {0}


def test_a_forked_process_has_a_segment_of_its_own(log, layout):
    run("fork", layout)

    assert len(log.cut().ends) == 2
    assert texts(log) == ["before", "of the child", "of the parent"]


def killed(log: Log, layout: Any, chance: random.Random, number: int) -> tuple[set[str], int]:
    """Kill writers and a cutting process at a random moment; return the acknowledged texts and the number of kills."""
    writers = [start("write", layout, f"{number}{name}", "100000") for name in "ab"]
    cutting = [start("cut", layout)] if chance.randrange(2) else []
    acknowledged: set[str] = set()
    for writer in writers:
        acknowledged.add(writer.stdout.readline().strip())
    until = time.monotonic() + chance.uniform(0, 0.1)
    while (left := until - time.monotonic()) > 0:  # a full pipe would block the writers
        outputs: list[Any] = [each.stdout for each in (*writers, *cutting)]
        for ready in select.select(outputs, [], [], left)[0]:
            acknowledged |= {ready.readline().strip()} - {"cut"}
    for process in chance.sample([*writers, *cutting], len(writers) + len(cutting)):
        acknowledged.update(line for line in kill(process) if line != "cut")
    return acknowledged, len(writers) + len(cutting)


def check(log: Log, acknowledged: set[str], where: str) -> None:
    """Assert that each acknowledged text exists once, plus at most one more per writer."""
    found = written(log)
    counted = Counter(each.message.text for each in found)
    assert acknowledged - counted.keys() == set(), where
    assert set(counted.values()) <= {1}, where
    assert {each.repeats for each in found} <= {0}, where
    others = Counter(text.partition("-")[0] for text in counted.keys() - acknowledged)
    assert set(others.values()) <= {1}, where


def kills(log: Log, layout: Any, wanted: int, number: int) -> int:
    chance = random.Random(number)
    acknowledged: set[str] = set()
    done = 0
    for turn in count():
        more, processes = killed(log, layout, chance, turn)
        acknowledged |= more
        done += processes
        check(log, acknowledged, f"seed {number}, turn {turn}")
        if turn % 5 == 4:  # keeps the log, and so each turn, small
            log.remove(log.cut())
            acknowledged = set()
        if done >= wanted:
            return done
    raise AssertionError


def test_what_killed_writers_acknowledged_is_there_once(log, layout):
    assert kills(log, layout, 8, number=1) >= 8


@pytest.mark.kill
def test_hundreds_of_killed_writers(log, layout, say):
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 300)
    say(f"to repeat: make test-kill DOCINDEX_TEST_SEED={number} DOCINDEX_TEST_KILLS={wanted}")
    say(f"{kills(log, layout, wanted, number)} processes killed that wrote or cut the log of a domain")
