"""Atomic, durable file writes: readers see either the old content or the new, even after a power failure."""

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from docindex_dagster.core.confinement import open_file
from docindex_dagster.core.errors import FullDiskError

# Rust prints OS errors like this, in Display and in Debug format.
_ERROR_NUMBER = re.compile(r"(?:\bos error |\bOs \{ code: )(?P<number>\d+)")
# Other libraries report the system's message without its number; SQLite has its own message.
_FULL_DISK_MESSAGES = ("No space left on device", "database or disk is full")
# SQLite's messages for any disk failure, and Tantivy's after one of its threads has hit one.
_DISK_FAILURE_MESSAGES = (
    "disk I/O error",
    "unable to open database file",
    "io::Error most likely",
    "fill whole buffer",
)
_TEMPORARY = re.compile(r"\..+\.(?P<process>\d+)\.tmp")
_MIN_FILES_FOR_THREADS, _MAX_THREADS = 4, 4  # for syncing files
_TRIES, _BETWEEN_TRIES_S = 10, 0.02
_MIN_FREE_BYTES, _MIN_FREE_INODES = 1 << 20, 64  # below these, an unspecific disk failure is reported as a full disk


@contextmanager
def atomic_write(path: Path, mode: int = 0o666, put: Callable[[Path, Path], object] | None = None) -> Iterator[Path]:
    """Yield an empty temporary file next to `path`; if the block succeeds, sync it and replace `path` with it.

    A replaced file keeps its permissions, and its owner and group if this user may set them. Until then, only this
    user can read the new file.

    Args:
        path: The file to write.
        mode: The permissions of a new file, limited by the process's umask.
        put: Moves the temporary file (first argument) to `path`. If it leaves the temporary file, that is removed.

    Raises:
        FullDiskError: The disk is full.
    """
    # The name is unpredictable, so that another user who can write to the folder cannot place a symlink there.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.{os.getpid()}.tmp")
    try:
        with reporting_full_disk(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(path)
            _create(temporary, 0o600 if path.exists() else mode)
            yield temporary
            with suppress(FileNotFoundError):
                _copy_access(path, temporary)
            sync([temporary])
            put(temporary, path) if put else temporary.replace(path)
            sync([path.parent])
    finally:
        temporary.unlink(missing_ok=True)


def append(path: Path, data: bytes, mode: int) -> None:
    """Append all of `data` to a file or, on failure, none of it.

    Args:
        path: The file; the caller holds its lock.
        data: The bytes to append.
        mode: The permissions of a new file.

    Raises:
        OSError: Nothing was written.
        LinkError: The file is a symlink.
    """
    descriptor = open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        size, written = file.tell(), 0
        try:
            while written < len(data):
                written += file.write(data[written:])
        except OSError:
            file.truncate(size)
            raise


def _create(path: Path, mode: int) -> None:
    """Create an empty file; fail if anything exists there, even a broken symlink."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))


def _copy_access(path: Path, temporary: Path) -> None:
    """Copy owner, group and permissions of `path`; a change that this user may not make is skipped."""
    before = path.stat()
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(PermissionError):
            os.chown(temporary, owner, group)
    shutil.copymode(path, temporary)


def real_path(path: Path) -> Path:
    """Return a path without links. Unlike `Path.resolve`, it raises no error for a cycle, which a checkout may hold."""
    return Path(os.path.realpath(path))


def stamp(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes whenever a file is written or replaced: inode, size, mtime and ctime in nanoseconds.

    None if the file does not exist or is not accessible.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files for `path` that killed processes left behind."""
    for file in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        process = writer_pid(file)
        if process is not None and not is_running(process):
            file.unlink(missing_ok=True)


def writer_pid(file: Path) -> int | None:
    """Return the ID of the process that created a temporary file with `replacing`; None for any other file."""
    match = _TEMPORARY.fullmatch(file.name)
    return int(match["process"]) if match else None


def is_running(process: int) -> bool:
    """Return whether a process with this ID exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True


@contextmanager
def reporting_full_disk(folder: Path) -> Iterator[None]:
    """Translate the errors that the system and libraries raise for a full disk below `folder`.

    Raises:
        FullDiskError: The disk is full.
    """
    try:
        yield
    except BaseException as error:  # a Rust panic is not an Exception
        if isinstance(error, FullDiskError) or not _is_full_disk(error, folder):
            raise
        remedy = _remedy(folder) or "free some space"
        raise FullDiskError(
            f"the disk that holds {folder} is full: {remedy} and try again; the existing index stays searchable"
        ) from error


def _is_full_disk(error: BaseException, folder: Path) -> bool:
    if error_number(error) in {errno.ENOSPC, errno.EDQUOT}:
        return True
    message = str(error)
    if any(full_disk in message for full_disk in _FULL_DISK_MESSAGES):
        return True
    is_disk_failure = any(failure in message for failure in _DISK_FAILURE_MESSAGES)
    return is_disk_failure and bool(_remedy(folder))


def _remedy(folder: Path) -> str:
    """Return what to do about a disk that has run out of inodes or space; empty if it has enough."""
    if not folder.is_dir():
        return ""
    disk = os.statvfs(folder)
    if disk.f_files and disk.f_favail < _MIN_FREE_INODES:  # f_files is 0 on file systems without a limit
        return "it has no free inodes, so delete some files"
    return "free some space" if disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES else ""


def error_number(error: BaseException) -> int | None:
    """Return the errno of an error, parsed from the message for Rust libraries; None if it has none."""
    number = getattr(error, "errno", None)
    if number is not None:
        return int(number)
    match = _ERROR_NUMBER.search(str(error))
    return int(match["number"]) if match else None


def folder_bytes(folder: Path) -> int:
    """Return the total size of all files below a folder, except files that disappear meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 a Path object per file is slow
    return total


def remove_tree(folder: Path) -> None:
    """Remove a folder, even while threads of a library still write to it: give up after 0.2 s."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_BETWEEN_TRIES_S)


def sync_new(files: Iterable[Path], top: Path) -> None:
    """Sync new files and their parent folders, up to and including `top`."""
    written = set(files)
    folders = {folder for file in written for folder in file.parents if folder.is_relative_to(top)}
    sync([*written, *folders])


def sync(paths: Iterable[Path]) -> None:
    """Sync files and folders to disk (`fsync`).

    Several are synced concurrently, since the file system then commits its journal once for all of them.
    """
    targets = list(paths)
    if len(targets) < _MIN_FILES_FOR_THREADS:
        for path in targets:
            _sync(path)
        return
    with ThreadPoolExecutor(min(len(targets), _MAX_THREADS)) as threads:
        for _ in threads.map(_sync, targets):
            pass  # re-raise the error of a thread


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
