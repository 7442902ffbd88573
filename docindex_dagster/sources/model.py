"""What a source is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to index: a documentation library (a folder) or a git repository (a work tree)."""

    key: str  # "library/NAME" or "git/NAME"
    kind: Literal["library", "git"]
    name: str
    path: Path  # absolute: the folder, or the root of the work tree
    include: tuple[str, ...] = ()  # gitignore-style globs; empty: everything
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    include_code: bool = True  # False: documents only
    untracked: bool = True  # git: also files that git does not ignore but does not track
    version: str | None = None  # what the settings call this state of the source
    max_file_bytes: int = 1 << 20
