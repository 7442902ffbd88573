"""When Python looks for unused objects that hold one another, and when memory that is free goes back to the system."""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """For work that makes many objects which live until its end: looking through them takes a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def loading(module: str) -> Iterator[None]:
    """For imports of a large module: what they make stays, so that Python need not look through it, now or later.

    Where it is loaded already, nothing is different.
    """
    if module in sys.modules:
        yield
        return
    with gc_disabled():
        yield
    gc.freeze()


def give_back() -> None:
    """Return free memory to the system, for other processes: Arrow's allocator and the C library hold on to it.

    Takes some milliseconds. Where the C library is not GNU's, it returns Arrow's alone.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
