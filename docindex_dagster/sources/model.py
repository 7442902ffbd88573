"""What a source is."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources.classify import classify_name, is_converted
from docindex_dagster.sources.paths import name_to_path

_CONVERTED = 32  # times the limit of texts


@dataclass(frozen=True, slots=True)
class Remote:
    """What is followed in a repository that docindex clones."""

    url: str  # or the absolute path of a repository on this machine
    ref: str | None  # a branch, a tag or the id of a commit; None: what the remote's HEAD leads to
    repository: Path  # the clone

    @property
    def is_local(self) -> bool:
        """Whether it is a folder's path, whose objects can be linked instead of sent."""
        return self.url.startswith("/")


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
    # The real path of a checkout: it brings the folder along, and may not make it a link that leads elsewhere.
    confined_to: Path | None = None

    def file(self, name: str) -> Path:
        """Return where the file that tables call `name` is on disk."""
        return self.path / os.fsdecode(name_to_path(name))

    def anchor(self) -> tuple[Path, bytes]:
        """Where files are opened: a folder, and the path below it of the source, which ends in a slash unless empty.

        Opened in this way, without following links below the folder, no file is read outside a checkout whose pull
        replaces the source by a link meanwhile.

        Raises:
            SourceError: a link leads out of the checkout.
        """
        if self.confined_to is None:
            return self.path, b""
        real = Path(os.path.realpath(self.path))
        if not real.is_relative_to(self.confined_to):
            raise SourceError(f"a link leads {self.path} out of the project: name {real} as the source, or trust it")
        below = os.fsencode(real.relative_to(self.confined_to))
        return self.confined_to, b"" if below == b"." else below + b"/"

    def most_bytes(self, path: bytes) -> int:
        """How large the file at a path relative to the source may be: one that is converted is mostly no text."""
        return self.max_file_bytes * (_CONVERTED if is_converted(classify_name(path)) else 1)
