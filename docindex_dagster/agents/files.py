"""Files of agents: read and written whole, in one replacement, never through a link that leads out of a project."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.files import replacing, stamp
from docindex_dagster.sources.paths import read_regular

_LARGEST = 64 << 20  # bytes; Claude Code's own file grows with what it remembers


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a file: its text before and after, None where there is none."""

    path: Path  # as users know it
    before: str | None
    after: str | None

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
    _stamps: dict[Path, tuple[int, ...] | None] = field(default_factory=dict)

    def read(self, path: Path) -> str | None:
        """The text of a file as it will be; None where there is none.

        Raises:
            AgentError: it cannot be read, is no text, or leads out of the project.
        """
        target = self._target(path)
        if target in self._changes:
            return self._changes[target].after
        self._stamps[target] = stamp(target)
        text = _read(path, target)
        self._changes[target] = Change(path, text, text)
        return text

    def write(self, path: Path, text: str | None) -> None:
        """Note what a file, which was read before, shall hold; None takes it away.

        Raises:
            AgentError: as `read`.
        """
        target = self._target(path)
        self._changes[target] = Change(path, self._changes[target].before, text)

    def changes(self) -> Iterator[Change]:
        """Those that change something, in the order in which the files were read."""
        return (change for change in self._changes.values() if change.before != change.after)

    def apply(self, announce: Callable[[Change], object] = lambda _: None) -> None:
        """Write what changes.

        Args:
            announce: called with each change once it is made.

        Raises:
            AgentError: a file was changed since it was read, or cannot be written; those that come after it are not.
            FullDiskError: there is no space left.
        """
        changes = [*self.changes()]
        for change in changes:  # none is written where one was changed
            self._check_unchanged(change)
        for change in changes:
            try:
                self._make(change)
            except OSError as error:
                raise AgentError(f"{change.path} cannot be written: {error.strerror}") from error
            announce(change)

    def _make(self, change: Change) -> None:
        target = self._target(change.path)
        if change.after is None:
            self._check_unchanged(change)
            target.unlink()
            self._remove_empty_folders(target.parent)
            return
        with replacing(target) as temporary:
            temporary.write_bytes(change.after.encode())
            self._check_unchanged(change)  # here, since its agent may write into it at any moment

    def _check_unchanged(self, change: Change) -> None:
        target = self._target(change.path)
        if stamp(target) != self._stamps[target]:
            raise AgentError(f"{change.path} was changed meanwhile; try again")

    def _target(self, path: Path) -> Path:
        """The file that a path leads to, over links."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError) as error:
            raise AgentError(f"{path} is a link that leads nowhere") from error
        if path.is_relative_to(self.folder) and not target.is_relative_to(self.folder.resolve()):
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
        data = read_regular(target, _LARGEST + 1)
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
