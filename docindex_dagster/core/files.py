"""Writing files so that a reader sees the old content or the new, and a power cut keeps one of them."""

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

# How errors of Rust are printed, for users and for programmers.
_NUMBER_IN_WORDS = re.compile(r"(?:\bos error |\bOs \{ code: )(?P<number>\d+)")
# Other libraries give the system's words, but not its number; SQLite has words of its own.
_SIGNS_OF_FULL_DISK = ("No space left on device", "database or disk is full")
# SQLite's for any failure of the disk, and Tantivy's once a thread of its own has met one.
_SIGNS_OF_ANY_FAILURE = ("disk I/O error", "unable to open database file", "io::Error most likely", "fill whole buffer")
_TEMPORARY = re.compile(r"\..+\.(?P<process>\d+)\.tmp")
_WORTH_THREADS, _MOST_THREADS = 4, 4  # of files that are synced
_TRIES, _BETWEEN_TRIES_S = 10, 0.02
_NO_SPACE, _NO_FILES = 1 << 20, 64  # bytes and inodes: with less, a failure that says nothing else is a lack of them


@contextmanager
def replacing(path: Path, mode: int = 0o666, put: Callable[[Path, Path], object] | None = None) -> Iterator[Path]:
    """Yield an empty file beside `path`; when the block ends well, sync it and put it in the place of `path`.

    A file that is replaced keeps its permissions, and its owner and group as far as this user may give files to them.
    Until then only this user may read the new one.

    Args:
        path: of the file.
        mode: the permissions that it gets where there was none, but for those that the process's mask takes away.
        put: moves the new file, its first argument, to `path`. What it leaves of the new file is removed.

    Raises:
        FullDiskError: there is no space left.
    """
    # A name that cannot be foreseen: in a folder that another user fills, a link could stand there.
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
    """Write all of `data` at the end of a file or, where that fails, nothing of it.

    Args:
        path: of the file, whose lock the caller holds.
        data: what to write.
        mode: that a new file gets.

    Raises:
        OSError: nothing was written.
        LinkError: the file is a symbolic link.
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
    """Make an empty file, where nothing is, not even a link that leads nowhere."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))


def _copy_access(path: Path, temporary: Path) -> None:
    """Give a file the owner, group and permissions of another; only root may choose any owner."""
    before = path.stat()
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(PermissionError):
            os.chown(temporary, owner, group)
    shutil.copymode(path, temporary)


def real_path(path: Path) -> Path:
    """Return a path without links. Unlike `Path.resolve`, it raises no error for a cycle, which a checkout may hold."""
    return Path(os.path.realpath(path))


def stamp(path: Path) -> tuple[int, ...] | None:
    """What changes with each write or replacement of a file: inode, bytes, and two times in nanoseconds.

    None where there is no file, or it may not be read.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files for `path` of processes that were killed."""
    for file in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        process = writer(file)
        if process is not None and not is_running(process):
            file.unlink(missing_ok=True)


def writer(file: Path) -> int | None:
    """The number of the process for which `replacing` made a temporary file; None for any other file."""
    match = _TEMPORARY.fullmatch(file.name)
    return int(match["process"]) if match else None


def is_running(process: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return True


@contextmanager
def reporting_full_disk(folder: Path) -> Iterator[None]:
    """Turn what the system and libraries raise when there is no space to write below `folder` into one error.

    Raises:
        FullDiskError: in their stead.
    """
    try:
        yield
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if isinstance(error, FullDiskError) or not _is_full_disk(error, folder):
            raise
        remedy = _lack(folder) or "free some space"
        raise FullDiskError(
            f"the disk that holds {folder} is full: {remedy} and try again; what was searchable still is"
        ) from error


def _is_full_disk(error: BaseException, folder: Path) -> bool:
    if error_number(error) in {errno.ENOSPC, errno.EDQUOT}:
        return True
    words = str(error)
    if any(sign in words for sign in _SIGNS_OF_FULL_DISK):
        return True
    is_any_failure = any(sign in words for sign in _SIGNS_OF_ANY_FAILURE)
    return is_any_failure and bool(_lack(folder))


def _lack(folder: Path) -> str:
    """What to do against what the disk that holds a folder has too little of; empty where it has enough."""
    if not folder.is_dir():
        return ""
    disk = os.statvfs(folder)
    if disk.f_files and disk.f_favail < _NO_FILES:  # some file systems set no limit
        return "it can hold no more files, so remove some"
    return "free some space" if disk.f_bavail * disk.f_frsize < _NO_SPACE else ""


def error_number(error: BaseException) -> int | None:
    """The system's number of an error, which libraries in Rust give in words alone; None where it has none."""
    number = getattr(error, "errno", None)
    if number is not None:
        return int(number)
    match = _NUMBER_IN_WORDS.search(str(error))
    return int(match["number"]) if match else None


def folder_bytes(folder: Path) -> int:
    """The size of all files below a folder; one that goes away meanwhile does not count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 a path object a file is slow
    return total


def remove_tree(folder: Path) -> None:
    """Remove a folder, also while threads of a library still write into it: tried for 0.2 s, then it stays."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_BETWEEN_TRIES_S)


def sync_new(files: Iterable[Path], top: Path) -> None:
    """Put new files on the disk, and the folders from `top` down in which their names stand."""
    written = set(files)
    folders = {folder for file in written for folder in file.parents if folder.is_relative_to(top)}
    sync([*written, *folders])


def sync(paths: Iterable[Path]) -> None:
    """Ask the kernel to put files and folders on the disk.

    Several are asked for together: a file system writes its journal once for all that wait for it.
    """
    asked = list(paths)
    if len(asked) < _WORTH_THREADS:
        for path in asked:
            _sync(path)
        return
    with ThreadPoolExecutor(min(len(asked), _MOST_THREADS)) as threads:
        for _ in threads.map(_sync, asked):
            pass  # what one raised is raised here


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
