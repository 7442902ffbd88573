"""What a source is."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.urls import local_path
from docindex_dagster.sources.classify import classify_name, is_converted
from docindex_dagster.sources.paths import name_to_path

_CONVERTED = 32  # times the limit of texts


@dataclass(frozen=True, slots=True)
class Remote:
    """What is followed in a repository that docindex clones."""

    url: str  # or the absolute path of a repository on this machine
    ref: str | None  # a branch, a tag or the id of a commit; None: what the remote's HEAD leads to
    repository: Path  # the clone
    real: Path | None = field(default=None, repr=False)  # as that of a source, where it is on this machine

    @property
    def is_local(self) -> bool:
        """Whether it is a folder's path, whose objects can be linked instead of sent."""
        return self.url.startswith("/")

    def check(self) -> None:
        """Check that a repository on this machine is still in the folder where it was when the settings were read.

        Raises:
            SourceError: As `Source.folder` does.
        """
        if (path := local_path(self.url)) is not None:
            _folder(Path(path), self.real)


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to index: a documentation library (a folder) or a git repository (a work tree)."""

    key: str  # "library/NAME", "git/NAME", or "git/NAME@BRANCH"
    kind: Literal["library", "git"]
    name: str
    path: Path  # absolute: the folder, or the root of the work tree; of a remote, the checkout, which may not be yet
    remote: Remote | None = None  # git: what the work tree is a checkout of
    submodules: bool = False  # git: also the files of submodules that are checked out
    include: tuple[str, ...] = ()  # gitignore-style globs; empty: everything
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    include_code: bool = True  # False: documents only
    untracked: bool = True  # git: also files that git does not ignore but does not track
    version: str | None = None  # what the settings call this state of the source
    max_file_bytes: int = 1 << 20
    secrets: Literal["skip", "index"] = "skip"  # files that hold secrets, and secrets in others
    # `path` without links when the settings were read; None: whatever it leads to now.
    real: Path | None = field(default=None, repr=False)

    def file(self, name: str) -> Path:
        """Return where the file that tables call `name` is on disk."""
        return self.path / os.fsdecode(name_to_path(name))

    def folder(self) -> Path:
        """Return the folder without links. Files are opened below it, without following links either.

        So nothing elsewhere is read if a pull replaces the folder, or one around it, by a link during a run.

        Raises:
            SourceError: the folder was replaced by a link, or a link leads out of an untrusted project.
        """
        return _folder(self.path, self.real)

    def most_bytes(self, path: bytes) -> int:
        """How large the file at a path relative to the source may be: one that is converted is mostly no text."""
        return self.max_file_bytes * (_CONVERTED if is_converted(classify_name(path)) else 1)


def _folder(path: Path, expected: Path | None) -> Path:
    real = Path(os.path.realpath(path))
    if expected is not None and real != expected:
        raise SourceError(
            f"{path} now leads to {real}, which is not what docindex was asked to read; put the folder back, or review "
            "the project with `docindex trust`"
        )
    return real
