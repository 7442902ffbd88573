"""Configured sources and the remotes that they follow."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.git_folders import external_references
from docindex_dagster.core.urls import local_path
from docindex_dagster.sources.classify import classify_name, is_converted
from docindex_dagster.sources.paths import Root, name_to_path

_CONVERTED_FACTOR = 32  # the size limit of converted files, as a multiple of the limit for text files


@dataclass(frozen=True, slots=True)
class Remote:
    """A ref in a repository that docindex clones."""

    url: str  # or the absolute path of a local repository
    ref: str | None  # a branch, tag or commit id; None: the remote's HEAD
    repository: Path  # the clone
    real: Path | None = field(default=None, repr=False)  # of a local repository: see `Source.real`

    @property
    def is_local(self) -> bool:
        """Whether the URL is a local path, so that git can hard-link objects instead of copying them."""
        return self.url.startswith("/")

    def check(self) -> None:
        """Check that a local repository is still in the folder where it was when the settings were read.

        Raises:
            SourceError: As `Source.folder` does.
        """
        if (path := local_path(self.url)) is not None:
            _folder(Path(path), self.real)


@dataclass(frozen=True, slots=True)
class Source:
    """A documentation library (a folder) or a git repository (a work tree) to index."""

    key: str  # "library/NAME", "git/NAME", or "git/NAME@BRANCH"
    kind: Literal["library", "git"]
    name: str
    path: Path  # absolute: the folder or the root of the work tree; for a remote, its checkout, which may not exist yet
    remote: Remote | None = None  # git: the remote that the work tree is a checkout of
    submodules: bool = False  # git: also index the files of checked-out submodules
    include: tuple[str, ...] = ()  # gitignore-style globs; empty: everything
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    include_code: bool = True  # False: documents only
    untracked: bool = True  # git: also index untracked files that git does not ignore
    version: str | None = None  # the version label from the settings
    max_file_bytes: int = 1 << 20
    secrets: Literal["skip", "index"] = "skip"  # applies to files that hold secrets and to secrets in other files
    # `path` with symlinks resolved when the settings were read; None: resolve it on each use.
    real: Path | None = field(default=None, repr=False)
    # git: what the repository may borrow from, according to the settings; None: anything.
    borrows: frozenset[str] | None = field(default=None, repr=False)

    def check_repository(self) -> None:
        """Check that the repository borrows no more from elsewhere than when the settings were read.

        Raises:
            SourceError: It does, for example because an archive was unpacked over it.
        """
        if self.kind != "git" or self.borrows is None:
            return
        found = (os.path.realpath(path) for path in external_references(self.path, max_age_s=0))
        if (other := next((path for path in found if path not in self.borrows), None)) is not None:
            raise SourceError(
                f"{self.path}/.git now reads {other}, which needs trust; review the project with `docindex trust`"
            )

    def file(self, name: str) -> Path:
        """Return the path on disk of the file that tables call `name`."""
        return self.path / os.fsdecode(name_to_path(name))

    def mode(self, name: str) -> int | None:
        """Return the file mode of the path that tables call `name`; None if it does not exist.

        For a path through a symlink, it is the mode of the symlink, so it does not tell what is behind it.
        """
        path = name_to_path(name)
        try:
            with Root(os.fsencode(self.folder())) as root:
                return _mode(root, path)
        except (OSError, SourceError):
            return None

    def folder(self) -> Path:
        """Return the folder with symlinks resolved. Files below it are opened without following symlinks.

        Nothing outside the source is read, even if a pull replaces the folder or a parent with a symlink during a run.

        Raises:
            SourceError: The folder was replaced by a symlink, or a symlink points out of an untrusted project.
        """
        return _folder(self.path, self.real)

    def max_bytes_of(self, path: bytes) -> int:
        """Return the size limit of the file at a path relative to the source; higher for files converted to text."""
        return self.max_file_bytes * (_CONVERTED_FACTOR if is_converted(classify_name(path)) else 1)


def _mode(root: Root, path: bytes) -> int:
    parts = path.split(b"/")
    for end in range(1, len(parts)):
        mode = root.lstat(b"/".join(parts[:end])).st_mode
        if stat.S_ISLNK(mode):
            return mode
    return root.lstat(path).st_mode


def _folder(path: Path, expected: Path | None) -> Path:
    real = Path(os.path.realpath(path))
    if expected is not None and real != expected:
        raise SourceError(
            f"{path} now points to {real}, which is not the folder that docindex was configured to read; restore the "
            "folder, or review the project with `docindex trust`"
        )
    return real
