"""Removing clones and checkouts, and what a git that was killed left in them."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

_PATIENCE_S = 600  # longer than git takes to write what it holds a lock for
_PROCESSES = Path("/proc")


def dispose(place: Path) -> None:
    """Remove a folder, a file or a link, if it is there. Nothing that a link leads to is touched."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def dispose_locks(repository: Path, checkout: Path) -> None:
    """Remove the lock files of a clone and its checkouts once no git that outlived docindex works there.

    The caller holds the lock that keeps other processes of docindex away.
    """
    locks = list(_locks(repository))
    until = time.monotonic() + _PATIENCE_S
    while locks and _git_works_in((repository, checkout)) and time.monotonic() < until:
        time.sleep(0.1)
    for lock in locks:
        lock.unlink(missing_ok=True)


def _locks(repository: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(repository):
        if "objects" in folders:
            folders.remove("objects")
        yield from (Path(folder, name) for name in files if name.endswith(".lock"))


def _git_works_in(places: tuple[Path, ...]) -> bool:
    """Whether a git process has its working directory there; where the system does not say, none has."""
    roots = [place.resolve() for place in places]
    return any(any(folder.is_relative_to(root) for root in roots) for folder in _folders_of_git())


def _folders_of_git() -> Iterator[Path]:
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8", errors="replace").startswith("git"):
                yield (process / "cwd").readlink()
        except OSError:  # it has ended, or is another user's
            continue
