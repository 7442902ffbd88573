"""Shared and exclusive locks."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from docindex_dagster.core import locks

_SHARING = """
import sys, time
from pathlib import Path
from docindex_dagster.core import locks
while True:
    with locks.shared(Path(sys.argv[1])):
        print("shared", flush=True)
        time.sleep(0.02)
"""


def nobody_waits(owner: str) -> None:
    pytest.fail(f"it waited for {owner}")


def sharing(lock: Path) -> "subprocess.Popen[str]":
    """Run a process that holds the shared lock almost all the time."""
    process = subprocess.Popen([sys.executable, "-c", _SHARING, lock], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "shared\n"
    return process


def ends(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_many_share_it(tmp_path):
    lock = tmp_path / "log.lock"

    with locks.shared(lock), locks.shared(lock), locks.shared(lock):
        pass


def test_one_alone_waits_until_none_shares_it_and_others_wait_for_it(tmp_path):
    lock = tmp_path / "log.lock"
    order: list[str] = []

    def be_alone() -> None:
        with locks.exclusive_of_shared(lock, "the rewrite", nobody_waits):
            order.append("alone")

    def share() -> None:
        with locks.shared(lock):
            order.append("shared after it")

    with locks.shared(lock):
        rewriting = threading.Thread(target=be_alone)
        rewriting.start()
        while locks.holder(lock.with_suffix(".gate")) is None:
            time.sleep(0.001)
        writing = threading.Thread(target=share)
        writing.start()
        time.sleep(0.05)
        order.append("shared before")
    rewriting.join()
    writing.join()

    assert order == ["shared before", "alone", "shared after it"]


def test_one_alone_gets_it_although_others_share_it_all_the_time(tmp_path):
    lock = tmp_path / "log.lock"
    processes = [sharing(lock) for _ in range(3)]
    try:
        for _ in range(5):
            with locks.exclusive_of_shared(lock, "the rewrite", nobody_waits):
                pass
    finally:
        for process in processes:
            ends(process)


def test_a_process_that_is_killed_leaves_none(tmp_path):
    lock = tmp_path / "log.lock"
    ends(sharing(lock))

    with locks.exclusive_of_shared(lock, "the rewrite", nobody_waits):
        pass
    with locks.shared(lock):
        pass


def test_two_that_want_it_alone_take_turns_and_the_second_is_shown_the_first(tmp_path):
    lock = tmp_path / "log.lock"
    seen: list[str] = []
    with locks.exclusive_of_shared(lock, "the first", nobody_waits):

        def second() -> None:
            with locks.exclusive_of_shared(lock, "the second", seen.append):
                pass

        thread = threading.Thread(target=second)
        thread.start()
        while not seen:
            time.sleep(0.001)
    thread.join()

    assert seen == ["the first"]
