"""A private network namespace with only the loopback device."""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_NEW_NETWORK = 0x40000000  # see clone(2)
_OWN = "/proc/thread-self/ns/net"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # see netdevice(7)

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread and its child threads and processes to a new network namespace."""
    if os.geteuid() != 0:
        pytest.skip("a network of one's own takes root")
    before = os.open(_OWN, os.O_RDONLY)
    try:
        _checked(_libc.unshare(_NEW_NETWORK))
        _start_loopback()
        yield
    finally:
        _checked(_libc.setns(before, _NEW_NETWORK))
        os.close(before)


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(any_socket, _GET_FLAGS, request), 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
