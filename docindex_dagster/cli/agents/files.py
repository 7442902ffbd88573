"""Files of agents: read in full, replaced atomically, and never written through a symlink that leaves a project."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from pathlib import Path

from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.settings import HOME_NAME
from docindex_dagster.sources.paths import read_regular

_CONTROL_FOLDERS = {
    ".git",
    HOME_NAME,
}  # folders that control git and docindex; compared case-insensitively, as on macOS
_LARGEST = 64 << 20  # bytes; Claude Code's own file grows with its history
_PATIENCE_S = 10  # while other programs keep changing a file
_MAX_PAUSE_S = 0.02  # between two attempts
_WRITE_S = 1  # the time after which an empty file is really empty, and not being written in place

Edit = Callable[[str | None], str | None]
"""Returns the new text of a file, given its current text. None means that the file does not exist."""


class _ConflictError(Exception):
    """Another program changed the file."""


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a file. A text is None if the file does not exist."""

    path: Path  # as the user named it, with symlinks
    before: str | None
    after: str | None
    edits: tuple[Edit, ...] = ()  # from `before` to `after`

    def edited(self, path: Path, edit: Edit) -> "Change":
        """Return the change with another edit."""
        return Change(path, self.before, edit(self.after), (*self.edits, edit))

    def reapplied(self, text: str | None) -> "Change":
        """Return the same edits applied to another text."""
        change = Change(self.path, text, text)
        for edit in self.edits:
            change = change.edited(self.path, edit)
        return change

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        old, new = ("/dev/null" if text is None else str(self.path) for text in (self.before, self.after))
        lines = unified_diff(before, after, old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass
class Plan:
    """Planned changes of files. Each edit sees the earlier ones; nothing is written until the plan is applied.

    Attributes:
        folder: the project's folder, which no file in it may leave through a symlink.
    """

    folder: Path
    _changes: dict[Path, Change] = field(default_factory=dict)

    def read(self, path: Path) -> str | None:
        """Return the text of a file after the planned changes; None if it does not exist.

        Raises:
            AgentError: The file cannot be read, is not text, or is outside the project.
        """
        return self.change(path).after

    def change(self, path: Path) -> Change:
        """Return the planned change of a file.

        Raises:
            AgentError: As for `read`.
        """
        target = self._target(path)
        if target not in self._changes:
            text = _read(path, target)
            self._changes[target] = Change(path, text, text)
        return self._changes[target]

    def edit(self, path: Path, edit: Edit) -> None:
        """Plan an edit of a file. It is repeated if another program changes the file before it is written.

        Raises:
            AgentError: As for `read`, or raised by the edit.
        """
        change = self.change(path).edited(path, edit)
        self._changes[self._target(path)] = change

    def changes(self) -> Iterator[Change]:
        """Yield the changes that have an effect, in the order in which the files were read."""
        return (change for change in self._changes.values() if change.before != change.after)

    def apply(self, announce: Callable[[Change], object] = lambda _: None) -> None:
        """Write the changes, keeping what other programs have written since the files were read.

        Args:
            announce: called with each change after it is written.

        Raises:
            AgentError: A file can no longer be edited, or cannot be written. The files after it are not written.
            FullDiskError: The disk is full.
        """
        for change in [*self.changes()]:
            try:
                written = self._write(change)
            except OSError as error:
                raise AgentError(f"cannot write {change.path}: {error.strerror}") from error
            if written.before != written.after:
                announce(written)

    def _write(self, change: Change) -> Change:
        """Write a change, recomputing it whenever another program has changed the file."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                target = self._target(change.path)
                text = _read(change.path, target)
                if text != change.before:
                    change = change.reapplied(text)
                is_written = change.before == change.after or _swap(target, _encoded(text), _encoded(change.after))
            except AgentError:  # another program may still be writing the file
                if time.monotonic() > deadline:
                    raise
                is_written = False
            if is_written:
                break
            if time.monotonic() > deadline:
                raise AgentError(f"{change.path} keeps changing; try again when no other program is writing to it")
            time.sleep(random.uniform(0, _MAX_PAUSE_S))  # noqa: S311 jitter, so that two programs do not stay in step
        self._changes[target] = change
        if change.after is None:
            self._remove_empty_folders(target.parent)
        return change

    def _target(self, path: Path) -> Path:
        """Resolve the symlinks of a path."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError) as error:
            raise AgentError(f"{path} is a broken symlink") from error
        if not path.is_relative_to(self.folder):
            return target
        root = self.folder.resolve()
        is_control_folder = any(part.casefold() in _CONTROL_FOLDERS for part in target.parts[len(root.parts) :])
        if is_control_folder or not target.is_relative_to(root):
            raise AgentError(f"{path} is a symlink that leaves the project, to {target}; nothing was written there")
        return target

    def _remove_empty_folders(self, folder: Path) -> None:
        """Remove the parent folders of a deleted file of the project that are empty now."""
        with suppress(OSError):
            while folder != self.folder.resolve() and folder.is_relative_to(self.folder.resolve()):
                folder.rmdir()
                folder = folder.parent


def _read(path: Path, target: Path) -> str | None:
    try:
        deadline = time.monotonic() + _WRITE_S
        while not (data := read_regular(target, _LARGEST + 1)) and time.monotonic() < deadline:
            if time.time() - target.stat().st_mtime > _WRITE_S:
                break
            time.sleep(_MAX_PAUSE_S)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AgentError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise AgentError(f"{path} is larger than {_LARGEST >> 20} MiB, so it is not a settings file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AgentError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start:,}") from error


def _swap(path: Path, expected: bytes | None, data: bytes | None) -> bool:
    """Replace, create or delete a file if it still has the expected content; otherwise return False.

    A write by another program between the comparison and the replacement, a fraction of a millisecond, is lost: no
    system call does both.
    """
    try:
        if data is None:
            _check(path, expected)
            path.unlink()
        else:
            with atomic_write(path, put=partial(_put, expected=expected)) as temporary:
                temporary.write_bytes(data)
    except (FileNotFoundError, _ConflictError):  # another process that removes its entry may also delete the folder
        return False
    return True


def _put(temporary: Path, path: Path, expected: bytes | None) -> None:
    _check(path, expected)
    temporary.replace(path)


def _check(path: Path, expected: bytes | None) -> None:
    if (path.read_bytes() if path.exists() else None) != expected:
        raise _ConflictError


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
