"""Keeping the clones and checkouts of followed repositories up to date, under `DOCINDEX_HOME`.

A clone is bare, and the branches that are followed share it; a checkout is a work tree that discovery reads like any
other. Both are only copies: whatever is wrong with them, they are mended from the remote.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from docindex_dagster.core.errors import NoAnswerError, NotThereError, SourceError
from docindex_dagster.core.events import Progress, emit
from docindex_dagster.core.files import replacing
from docindex_dagster.core.git_folders import git_folder
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.urls import local_path
from docindex_dagster.sources import git, mirror, transfer
from docindex_dagster.sources.mirror import dispose, dispose_locks
from docindex_dagster.sources.model import Remote, Source

# What another clone would not change: a full disk, and objects that the remote itself has lost.
_NOT_MENDABLE = ("No space left on device", "Disk quota exceeded", "not our ref")

Report = Callable[[str], None]


def update(source: Source, layout: Layout, *, history: int, report: Report) -> None:
    """Make `source.path` a checkout of what the remote has now; nothing is done for a source without a remote.

    Args:
        source: Its remote says what is followed.
        layout: Where the locks are.
        history: How many of the newest commits will be asked for their changes, so that these are fetched at once.
        report: Called with what the user should know, a line each.

    Raises:
        SourceError: The remote cannot be reached, has no such branch, tag or commit, or its `.git` is another folder's.
            What was there stays.
    """
    remote = source.remote
    if remote is None:
        return
    with _locked(layout, source.key, report):
        _refuse_foreign(remote)  # another clone would be of the foreign repository: nothing is mended then
        try:
            _bring_up(source, remote, history, report)
        except (NotThereError, NoAnswerError):
            raise
        except SourceError as error:
            is_lost = any(sign in str(error) for sign in _NOT_MENDABLE)
            if is_lost or not remote.repository.exists() or not mirror.answers(remote):
                raise
            report(f"the clone is damaged and is mended ({error})")
            _mend(source, remote, history, report)


def remove(layout: Layout, key: str, report: Report) -> None:
    """Delete the checkout of a source, and the clone when no other checkout needs it."""
    repository, folder = layout.repository(key), layout.checkout(key)
    if not key.startswith("git/") or not (repository.exists() or folder.exists()):
        return
    with _locked(layout, key, report):
        dispose(folder)
        if not _checkouts(repository):
            dispose(repository)


def _locked(layout: Layout, key: str, report: Report) -> AbstractContextManager[Note]:
    def wait(owner: str) -> None:
        report(f"waiting for another fetch of this repository ({owner})")

    return exclusive(layout.repository_lock(key), f"{key} of process {os.getpid()}", wait)


def _refuse_foreign(remote: Remote) -> None:
    """Check that git reads a folder of this machine itself, that of the settings, and that its `.git` is its own.

    For a path without a repository, git would follow a file that names another folder, or take `PATH.git`.

    Raises:
        SourceError: it does not, or it is not.
    """
    remote.check()
    path = (local_path(remote.url) or "").rstrip("/")
    if not (path and (os.path.lexists(path) or os.path.lexists(f"{path}.git"))):
        return
    folder, limit_s = Path(path), transfer.limit_s(remote.url)
    if (folder / ".git").exists():
        git.safe_options(os.fsencode(folder))
    elif transfer.attempt(folder, "--git-dir=.", "rev-parse", "--git-dir", timeout_s=limit_s) is None:
        raise SourceError(f"{path} is not a git repository; name the folder of one")


def _mend(source: Source, remote: Remote, history: int, report: Report) -> None:
    """Begin with what a killed git left behind; where that is not all, clone anew."""
    dispose_locks(remote.repository, source.path)
    dispose(source.path)
    try:
        _bring_up(source, remote, history, report)
    except SourceError:
        report("the clone cannot be mended and is made anew")
        mirror.make(remote)
        _bring_up(source, remote, history, report)


def _bring_up(source: Source, remote: Remote, history: int, report: Report) -> None:
    mirror.dispose_unfinished(remote.repository)
    if not remote.repository.is_dir():
        emit(Progress(source.key, "clone", 0, 1, "repository"))
        mirror.make(remote)
        emit(Progress(source.key, "clone", 1, 1, "repository"))
    mirror.fetch(remote)
    commit = mirror.resolve(remote)
    if commit is None:
        _put_nothing(source, remote)
        return
    # What is noted was done for this commit already.
    note, text = _note(remote, source.key), f"{commit} {history}"
    is_new = not note.is_file() or note.read_text(encoding="utf-8") != text
    if is_new:
        emit(Progress(source.key, "fetch contents", 0, 1, "commit"))
        mirror.fetch_contents(remote.repository, commit, history)
        emit(Progress(source.key, "fetch contents", 1, 1, "commit"))
    _put(remote.repository, source.path, commit)
    if source.submodules:
        transfer.update_submodules(source.path, report)
    if is_new:
        mirror.tidy(remote.repository)
        with replacing(note) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _note(remote: Remote, key: str) -> Path:
    return remote.repository / "docindex" / file_name(key)


def _put_nothing(source: Source, remote: Remote) -> None:
    """An empty repository is one without files; what is missing from another is a mistake.

    Raises:
        SourceError: the repository is not empty.
    """
    if remote.ref is not None:
        raise NotThereError(
            f"{remote.url} has no branch, tag or commit {remote.ref!r}; what is indexed of it stays: mend it in "
            f"docindex.toml, or say {command('docindex', 'source', 'remove', source.key)}"
        )
    if mirror.has_branches(remote.repository):
        raise NotThereError(f'the HEAD of {remote.url} leads to no commit; say which branch: branch = "NAME"')
    _make_empty(source.path)


def _put(repository: Path, folder: Path, commit: str) -> None:
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


def _make_empty(folder: Path) -> None:
    """Make a folder a work tree without any commit or file, as an empty remote gives.

    Raises:
        SourceError: git cannot write it.
    """
    dispose(folder)
    folder.mkdir(parents=True)
    transfer.run(folder, "init", "--quiet", "--template=", purpose=f"make {folder}")


def _checkouts(repository: Path) -> list[Path]:
    """The checkouts of a clone that are there."""
    notes = (note.read_bytes() for note in repository.glob("worktrees/*/gitdir"))
    return [place.parent for note in notes if (place := Path(os.fsdecode(note.strip()))).exists()]


def _is_of(repository: Path, folder: Path) -> bool:
    """Whether a folder is a checkout of this clone, and both know it."""
    if folder.is_symlink() or not (folder / ".git").is_file():
        return False
    own = git_folder(folder)
    is_here = own.is_dir() and own.parent == Path(os.path.realpath(repository)) / "worktrees"
    return is_here and folder.resolve() in [place.resolve() for place in _checkouts(repository)]
