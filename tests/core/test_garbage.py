"""Garbage collection pauses while much is loaded, and free memory returns to the system."""

import gc
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.core.garbage_collection import frozen_import, gc_disabled, release_memory


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    gc.enable()
    gc.unfreeze()
    yield
    gc.freeze()  # restore the state that the other tests expect
    gc.enable()


def test_what_is_loaded_is_looked_through_neither_now_nor_later():
    with frozen_import("no.such.module"):
        assert not gc.isenabled()
        loaded: list[list[int]] = [[]]

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not any(each is loaded for each in gc.get_objects())


def test_where_it_is_loaded_already_nothing_is_different():
    with frozen_import(__name__ if __name__ in sys.modules else "sys"):
        assert gc.isenabled()

    assert gc.get_freeze_count() == 0


def test_where_nothing_is_looked_for_nothing_is_begun():
    gc.disable()
    with gc_disabled():
        pass

    assert not gc.isenabled()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back what is free by themselves")
def test_free_memory_goes_back_to_the_system():
    objects = [bytearray(700) for _ in range(100_000)]
    last = bytearray(700)  # keeps the heap from shrinking by itself
    used = _resident_bytes()
    objects.clear()

    release_memory()

    assert len(last) == 700
    assert _resident_bytes() < used - 40_000_000


def _resident_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))
