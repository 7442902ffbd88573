"""Compare-and-swap for files that other programs edit: replace a file only while it holds what was read."""

import ctypes
import errno
import fcntl
import os
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from docindex_dagster.core.files import replacing

_CURRENT_FOLDER, _RENAME_EXCHANGE = -100, 2  # AT_FDCWD and a flag, from Linux's headers
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


class _ConflictError(Exception):
    """The content of the file is not the expected one."""


def swap(path: Path, expected: bytes | None, data: bytes | None) -> bool:
    """Replace the content of a file, or create or remove the file, unless another program changed it or is about to.

    On Linux, the files are exchanged, and exchanged back if the old content is not the expected one. An edit is lost
    only if another program reads the file between the two steps and writes it afterwards. On other systems, an edit is
    lost if it comes between the comparison and the replacement.

    Args:
        path: of the file.
        expected: its content when it was read; None if it did not exist.
        data: its new content; None to remove it.

    Returns:
        Whether the file held what was expected. If not, it is unchanged.

    Raises:
        OSError: the file cannot be written.
        FullDiskError: the disk is full.
    """
    try:
        if data is None:
            _remove(path, expected)
        else:
            with replacing(path, put=partial(_put, expected=expected)) as temporary:
                temporary.write_bytes(data)
    except (FileNotFoundError, _ConflictError):  # its folder may go, too, when another process removes its entry
        return False
    return True


def _put(temporary: Path, path: Path, *, expected: bytes | None) -> None:
    if expected is None:
        _create(temporary, path)
        return
    _rename_exchange()  # loaded before the comparison: the less time passes after it, the better
    _check(path, expected)  # others see the exchanged file for a moment, so a known conflict should not get that far
    if not _exchange(temporary, path):
        temporary.replace(path)
        return
    try:
        _check(temporary, expected)
    except _ConflictError:
        _exchange(temporary, path)
        raise


def _create(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise _ConflictError from error
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if os.path.lexists(path):
            raise _ConflictError from error
        temporary.replace(path)


def _remove(path: Path, expected: bytes | None) -> None:
    _check(path, expected)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.{os.getpid()}.tmp")
    path.rename(aside)
    try:
        _check(aside, expected)
    except _ConflictError:
        with suppress(FileExistsError):  # the other program has written the file again
            os.link(aside, path)
        raise
    finally:
        aside.unlink()


def _check(path: Path, expected: bytes | None) -> None:
    if _is_open_for_writing(path) or path.read_bytes() != expected:
        raise _ConflictError


def _is_open_for_writing(path: Path) -> bool:
    """Tell whether a program is about to write a file in place; False where the system cannot tell.

    Linux grants a read lease only while no process has the file open for writing.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    with path.open("rb") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # if a writer comes now: SIGIO would end this process
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno == errno.EAGAIN
    return False


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two files in one step; return False if the system or the file system cannot."""
    rename = _rename_exchange()
    if rename is None:
        return False
    names = os.fsencode(first), os.fsencode(second)
    if rename(_CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _rename_exchange() -> Callable[..., int] | None:
    """Return Linux's system call; None where the C library lacks it."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
