"""Init process of a host: starts as root in new mount, PID and UTS namespaces, and lives as long as the host.

Arguments: the host's name, the folder that holds its disk, the mount point of that disk, and the folders of programs
that the host may read. Uses only the standard library, because it runs before any of these folders is mounted.
"""

import ctypes
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18  # see mount(2)
_MOUNT_SETATTR = 442  # the same system call number on every architecture
_AT_FDCWD, _AT_RECURSIVE, _ATTR_READ_ONLY = -100, 0x8000, 1
# Folders for data of users and programs, which another host could not see.
_HIDDEN = ("/tmp", "/var/tmp", "/dev/shm", "/root", "/home")

_libc = ctypes.CDLL(None, use_errno=True)


def main(name: str, disk: Path, place: Path, programs: Sequence[Path]) -> None:
    """Set up the host, report that it is up, and wait."""
    socket.sethostname(name)
    _mount("none", Path("/"), flags=_RECURSIVE | _PRIVATE)
    opened = {path: os.open(path, os.O_PATH) for path in programs}
    opened_disk = os.open(disk, os.O_PATH)
    _set_read_only(Path("/"), on=True)
    _mount("proc", Path("/proc"), kind="proc")
    for hidden in map(Path, _HIDDEN):
        if hidden.is_dir():
            _mount("tmpfs", hidden, kind="tmpfs")
    for path, descriptor in opened.items():
        _bind(descriptor, path)
        _set_read_only(path, on=True)
    _bind(opened_disk, place)
    _set_read_only(place, on=False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps child processes
    os.write(1, b"up\n")
    os.close(1)
    while True:
        time.sleep(3600)


def _bind(descriptor: int, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _mount(f"/proc/self/fd/{descriptor}", place, flags=_BIND | _RECURSIVE)
    os.close(descriptor)


def _mount(what: str, where: Path, kind: str = "none", flags: int = 0) -> None:
    _checked(_libc.mount(what.encode(), bytes(where), kind.encode(), flags, None), where)


def _set_read_only(where: Path, *, on: bool) -> None:
    """Make a folder and all mounts below it read-only or writable."""
    attributes = struct.pack("=QQQQ", *((_ATTR_READ_ONLY, 0) if on else (0, _ATTR_READ_ONLY)), 0, 0)
    at = (_AT_FDCWD, bytes(where), _AT_RECURSIVE)
    _checked(_libc.syscall(_MOUNT_SETATTR, *at, attributes, ctypes.c_size_t(len(attributes))), where)


def _checked(result: int, where: Path) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(where))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), [Path(folder) for folder in sys.argv[4:]])
