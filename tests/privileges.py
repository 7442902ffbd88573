"""Temporarily drop root's permission override, so that tests of unprivileged users also work as root."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522  # version of the structures, see capset(2)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("thread", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Apply file permissions to this thread and its child threads as if it ran as the files' owner."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("only Linux lets root give up its capabilities for a while")
    library = ctypes.CDLL(None, use_errno=True)
    header, before, none = _Header(_VERSION, 0), (_Capabilities * 2)(), (_Capabilities * 2)()
    assert library.capget(ctypes.byref(header), before) == 0
    for whole, left in zip(before, none, strict=True):
        left.permitted = whole.permitted
    assert library.capset(ctypes.byref(header), none) == 0
    try:
        yield
    finally:
        assert library.capset(ctypes.byref(header), before) == 0
