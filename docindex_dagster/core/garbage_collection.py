"""Control of Python's cyclic garbage collector, and the release of free memory to the system."""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector for work that creates many long-lived objects, a third of whose time it takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def frozen_import(module: str) -> Iterator[None]:
    """Exempt the objects of a large module from garbage collection while it is imported and afterwards.

    Does nothing if the module is already loaded.
    """
    if module in sys.modules:
        yield
        return
    with gc_disabled():
        yield
    gc.freeze()


def release_memory() -> None:
    """Return free memory to the system, since Arrow's allocator and the C library hold on to it.

    Takes a few milliseconds. Without glibc, only Arrow's memory is returned.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
