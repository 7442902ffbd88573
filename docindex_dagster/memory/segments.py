"""The files of a log: a folder for each epoch, in it a segment for each process that wrote.

A rewrite makes the segments of a new epoch in a folder that nobody reads, and gives it its name: so there is one epoch
or the next, whole, whenever the process ends. All before the last one is rubbish. No symbolic link is followed.
"""

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from docindex_dagster.core import files, locks
from docindex_dagster.core.errors import LogError
from docindex_dagster.core.layout import Layout

_FIRST = "00000000"
_EPOCH = re.compile(r"\d{8}")
_SEGMENT = re.compile(r"[0-9a-f]{16}-\d+-[0-9a-f]{16}\.seg")
_USER_DIRECTORY, _USER_FILE, _GROUP_DIRECTORY, _GROUP_FILE = 0o700, 0o600, 0o050, 0o040
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
# Not all systems have it; it leaves out what a file's size does not hang on.
sync_data = getattr(os, "fdatasync", os.fsync)


class Segments:
    """The segments of the log of a domain."""

    def __init__(self, home: Layout) -> None:
        """Those of the domain whose home this is."""
        self.home = home
        self._log = home.log

    def path(self, segment: str) -> Path:
        """The file of a segment."""
        return self._log / segment

    def epoch(self) -> str | None:
        """The last epoch; None where nothing was written yet.

        Raises:
            LogError: the folder is a symbolic link.
        """
        found = self._epochs()
        return found[-1] if found else None

    def sizes(self) -> dict[str, int]:
        """The segments of the last epoch and their bytes, in the order of their making.

        Raises:
            LogError: the folder is a symbolic link.
        """
        while (epoch := self.epoch()) is not None:
            try:
                entries = list(os.scandir(self._log / epoch))
                found = {f"{epoch}/{each.name}": _size(each) for each in entries if _SEGMENT.fullmatch(each.name)}
            except FileNotFoundError:  # a rewrite or a removal went before
                continue
            return {name: size for name, size in sorted(found.items()) if size is not None}
        return {}

    def read(self, segment: str, start: int, end: int) -> bytes:
        """Bytes of a segment.

        Raises:
            FileNotFoundError: it was removed.
        """
        descriptor = os.open(self.path(segment), os.O_RDONLY | _NO_LINK)
        try:
            return os.pread(descriptor, end - start, start)
        finally:
            os.close(descriptor)

    def is_last(self, epoch: str) -> bool:
        """Whether no epoch follows, as long as there are files of this one."""
        return not os.path.lexists(self._log / _after(epoch))

    def create(self, epoch: str | None = None) -> tuple[str, int]:
        """Make a segment, and give its name and a descriptor to append to; nothing of it is synced.

        Without an epoch it belongs to the last one, or begins the first.

        Raises:
            LogError: the folder is a symbolic link.
        """
        epoch = epoch or self.epoch() or self._first_epoch()
        name = f"{epoch}/{time.time_ns() // 1000:016x}-{os.getpid()}-{secrets.token_hex(8)}.seg"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_LINK
        return name, os.open(self.path(name), flags, _USER_FILE | self._of_group() & _GROUP_FILE)

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Let no rewrite begin. Many may append together.

        Raises:
            LogError: the folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.shared(self.home.log_lock):
            yield

    @contextmanager
    def alone(self, owner: str, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Let none append, or do what needs the same.

        Raises:
            LogError: the folder is a symbolic link.
        """
        self._check()
        self._make(self.home.home)
        with locks.alone(self.home.log_lock, owner, on_wait):
            yield

    def sync_names(self, folder: str) -> None:
        """Put on the disk the names of the segments in a folder, and of the folders that lead to it."""
        path = self._log / folder
        files.sync([path, *path.parents[: len(path.relative_to(self._project_home).parts)]])

    def draft(self, epoch: str | None) -> str:
        """Make the folder of the epoch that is to follow one, under a name that nobody reads."""
        name = f".{_after(epoch or _FIRST)}.tmp"
        self._make(self._log / name)
        return name

    def publish(self, draft: str) -> None:
        """Let a draft, all of whose files are synced, be the last epoch."""
        self.sync_names(draft)
        (self._log / draft).rename(self._log / draft.strip(".").removesuffix(".tmp"))
        files.sync([self._log])

    def sweep(self) -> None:
        """Remove what rewrites left: drafts, and all epochs but the last one. It takes the lock for one alone.

        Raises:
            LogError: the folder is a symbolic link.
        """
        if not self._log.is_dir():
            return
        last = self.epoch()
        for folder in sorted(self._log.iterdir()):
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
            elif folder.name != last:
                shutil.rmtree(folder)
        files.sync([self._log])

    def remove(self, segments: list[str]) -> None:
        """Remove segments. It takes the lock for one alone."""
        for segment in segments:
            self.path(segment).unlink(missing_ok=True)
        for epoch in {segment.partition("/")[0] for segment in segments}:
            self.sync_names(epoch)

    def _check(self) -> None:
        if os.path.islink(self.home.home) or os.path.islink(self._log):  # noqa: PTH114 each read looks, and a path is slow
            raise LogError(
                f"{self._log} is, or lies in, a symbolic link: remove the link, or put a folder in its place"
            )

    def _epochs(self) -> list[str]:
        self._check()
        try:
            entries = list(os.scandir(self._log))
        except FileNotFoundError:
            return []
        return sorted(
            each.name for each in entries if _EPOCH.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
        )

    def _first_epoch(self) -> str:
        self._make(self._log / _FIRST)
        return _FIRST

    def _make(self, folder: Path) -> None:
        """Make a folder and those around it, for whoever may read the home of the project."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(_USER_DIRECTORY | self._of_group() & _GROUP_DIRECTORY, exist_ok=True)

    def _of_group(self) -> int:
        """What the home of the project lets its group do."""
        return self._project_home.stat().st_mode if self._project_home.is_dir() else 0

    @property
    def _project_home(self) -> Path:
        """The home in which that of the domain lies, as `Layout.domain` says."""
        return self.home.home.parent.parent


def _after(epoch: str) -> str:
    return f"{int(epoch) + 1:0{len(_FIRST)}d}"


def _size(entry: "os.DirEntry[str]") -> int | None:
    """The bytes of a regular file; None of anything else."""
    found = entry.stat(follow_symlinks=False)
    return found.st_size if stat.S_ISREG(found.st_mode) else None
