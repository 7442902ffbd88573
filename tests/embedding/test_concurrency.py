"""Concurrent calls: one per thread, none started after a failure, and none blocked for no reason."""

import threading
import time

import pytest

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding.concurrency import concurrently, pause


@pytest.mark.parametrize("threads", [1, 3])
def test_every_item_is_worked_on_once(threads):
    assert sorted(concurrently(lambda item: item * 2, range(50), threads)) == list(range(0, 100, 2))


def test_one_thread_is_the_callers_own():
    assert set(concurrently(lambda _: threading.get_ident(), range(3), 1)) == {threading.get_ident()}


def test_no_item_is_taken_before_there_is_a_thread_for_it():
    taken: list[int] = []
    under_way: list[int] = []

    def items():
        for item in range(20):
            assert len(taken) - len(under_way) <= 3
            taken.append(item)
            yield item

    assert len(list(concurrently(under_way.append, items(), 3))) == 20


def test_after_a_failure_nothing_is_begun_what_is_under_way_ends_and_nobody_goes_on_waiting():
    begun, ended, stopped = [], [], []
    both = threading.Barrier(3)

    def work(item: int) -> None:
        begun.append(item)
        both.wait(5)
        if item == 0:
            raise EmbeddingError("it failed")
        if item == 1:
            time.sleep(0.1)
            ended.append(item)
        try:
            pause(30)
        except EmbeddingError:
            stopped.append(item)
            raise

    started = time.monotonic()
    with pytest.raises(EmbeddingError, match="it failed"):
        list(concurrently(work, range(10), 3))

    assert time.monotonic() - started < 10
    assert (sorted(begun), ended, sorted(stopped)) == ([0, 1, 2], [1], [1, 2])


def test_a_pause_outside_of_any_run_is_one():
    started = time.monotonic()
    pause(0.05)

    assert time.monotonic() - started >= 0.04
