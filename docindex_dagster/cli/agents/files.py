"""Files of agents: read and written whole, in one replacement, never through a link that leads out of a project."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from pathlib import Path

from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.settings import HOME_NAME
from docindex_dagster.sources.paths import read_regular

_OBEYED = {".git", HOME_NAME}  # folders of a project whose files git and docindex obey, in any case on macOS
_LARGEST = 64 << 20  # bytes; Claude Code's own file grows with what it remembers
_PATIENCE_S = 10  # while other programs keep changing a file
_LONGEST_PAUSE_S = 0.02  # between two tries
_WRITE_S = 1  # a program that emptied a file to write it in place has done so by then

Edit = Callable[[str | None], str | None]
"""Return the new text of a file, given its current text; None means that the file does not exist."""


class _ConflictError(Exception):
    """Another program changed the file."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a file: its text before and after, None where there is none."""

    path: Path  # as users know it
    before: str | None
    after: str | None
    edits: tuple[Edit, ...] = ()  # that lead from one to the other

    def edited(self, path: Path, edit: Edit) -> "Change":
        """Add an edit."""
        return Change(path, self.before, edit(self.after), (*self.edits, edit))

    def redone(self, text: str | None) -> "Change":
        """Make the same edits in another text."""
        change = Change(self.path, text, text)
        for edit in self.edits:
            change = change.edited(self.path, edit)
        return change

    def diff(self) -> str:
        """The lines that change."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        old, new = ("/dev/null" if text is None else str(self.path) for text in (self.before, self.after))
        lines = unified_diff(before, after, old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass
class Plan:
    """Changes of files, made in the mind until they are applied: each is seen by those that come after it.

    Attributes:
        folder: of the project, which no file of it may lead out of.
    """

    folder: Path
    _changes: dict[Path, Change] = field(default_factory=dict)

    def read(self, path: Path) -> str | None:
        """The text of a file as it will be; None where there is none.

        Raises:
            AgentError: it cannot be read, is no text, or leads out of the project.
        """
        return self.change(path).after

    def change(self, path: Path) -> Change:
        """Return what becomes of a file.

        Raises:
            AgentError: as `read`.
        """
        target = self._target(path)
        if target not in self._changes:
            text = _read(path, target)
            self._changes[target] = Change(path, text, text)
        return self._changes[target]

    def edit(self, path: Path, edit: Edit) -> None:
        """Plan an edit of a file. It is made again if another program changes the file before it is written.

        Raises:
            AgentError: as `read`, or as the edit raises it.
        """
        change = self.change(path).edited(path, edit)
        self._changes[self._target(path)] = change

    def changes(self) -> Iterator[Change]:
        """Those that change something, in the order in which the files were read."""
        return (change for change in self._changes.values() if change.before != change.after)

    def apply(self, announce: Callable[[Change], object] = lambda _: None) -> None:
        """Write what changes. What other programs wrote since the files were read stays.

        Args:
            announce: called with each change once it is made.

        Raises:
            AgentError: a file cannot be edited any more, or cannot be written; those that come after it are not.
            FullDiskError: there is no space left.
        """
        for change in [*self.changes()]:
            try:
                made = self._make(change)
            except OSError as error:
                raise AgentError(f"{change.path} cannot be written: {error.strerror}") from error
            if made.before != made.after:
                announce(made)

    def _make(self, change: Change) -> Change:
        """Make a change, anew whenever another program has changed the file."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                target = self._target(change.path)
                text = _read(change.path, target)
                if text != change.before:
                    change = change.redone(text)
                is_made = change.before == change.after or _swap(target, _encoded(text), _encoded(change.after))
            except AgentError:  # another program may not have written all of it yet
                if time.monotonic() > deadline:
                    raise
                is_made = False
            if is_made:
                break
            if time.monotonic() > deadline:
                raise AgentError(f"{change.path} keeps changing; try again once no other program writes it")
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 so that two programs do not keep meeting
        self._changes[target] = change
        if change.after is None:
            self._remove_empty_folders(target.parent)
        return change

    def _target(self, path: Path) -> Path:
        """The file that a path leads to, over links."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError) as error:
            raise AgentError(f"{path} is a link that leads nowhere") from error
        if not path.is_relative_to(self.folder):
            return target
        root = self.folder.resolve()
        is_obeyed = any(part.casefold() in _OBEYED for part in target.parts[len(root.parts) :])
        if is_obeyed or not target.is_relative_to(root):
            raise AgentError(f"{path} is a link that leads out of the project, to {target}: nothing is written there")
        return target

    def _remove_empty_folders(self, folder: Path) -> None:
        """Remove the folders of a file of the project that was removed, as far as they hold nothing else."""
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
            time.sleep(_LONGEST_PAUSE_S)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise AgentError(f"{path} has more than {_LARGEST >> 20} MiB, which no file of settings has")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AgentError(f"{path} is no text in UTF-8: {error.reason} at byte {error.start:,}") from error


def _swap(path: Path, expected: bytes | None, data: bytes | None) -> bool:
    """Replace, create or remove a file if it still holds what was read; else return False.

    What another program writes between the comparison and the replacement, in a fraction of a millisecond, is lost:
    no system call does both.
    """
    try:
        if data is None:
            _check(path, expected)
            path.unlink()
        else:
            with replacing(path, put=partial(_put, expected=expected)) as temporary:
                temporary.write_bytes(data)
    except (FileNotFoundError, _ConflictError):  # its folder may go, too, when another process removes its entry
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
