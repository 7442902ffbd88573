"""Checkouts: a folder that holds exactly the files of one commit of a clone."""

import os
from pathlib import Path

from docindex_dagster.core.git_folders import git_folder
from docindex_dagster.sources import transfer
from docindex_dagster.sources.disposal import dispose


def put(repository: Path, folder: Path, commit: str) -> None:
    """Make a folder the checkout of a commit, writing only files that are not as they are in it.

    Raises:
        SourceError: git cannot write it.
    """
    purpose = f"check out {commit} in {folder}"
    if not _is_of(repository, folder):
        dispose(folder)
        arguments = ("worktree", "add", "--quiet", "--force", "--force", "--detach", "--no-checkout")
        transfer.run(repository, *arguments, "--", str(folder), commit, purpose=purpose)
    transfer.run(folder, "checkout", "--quiet", "--force", "--detach", commit, "--", purpose=purpose)
    transfer.run(folder, "clean", "--quiet", "-ffdx", purpose=purpose)


def put_nothing(folder: Path) -> None:
    """Make a folder a work tree without any commit or file, as an empty remote gives.

    Raises:
        SourceError: git cannot write it.
    """
    dispose(folder)
    folder.mkdir(parents=True)
    transfer.run(folder, "init", "--quiet", "--template=", purpose=f"make {folder}")


def all_of(repository: Path) -> list[Path]:
    """The checkouts of a clone that are there."""
    notes = (note.read_bytes() for note in repository.glob("worktrees/*/gitdir"))
    return [place.parent for note in notes if (place := Path(os.fsdecode(note.strip()))).exists()]


def _is_of(repository: Path, folder: Path) -> bool:
    """Whether a folder is a checkout of this clone, and both know it."""
    if folder.is_symlink() or not (folder / ".git").is_file():
        return False
    own = git_folder(folder)
    is_here = own.is_dir() and own.parent == Path(os.path.realpath(repository)) / "worktrees"
    return is_here and folder.resolve() in [place.resolve() for place in all_of(repository)]
