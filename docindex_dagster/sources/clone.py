"""Updates of the clones and checkouts of followed repositories under `DOCINDEX_HOME`.

A clone is bare and shared by all followed branches of a repository. A checkout is a work tree that discovery reads like
any other. Both are disposable copies: whatever is wrong with them is repaired from the remote.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from docindex_dagster.core.errors import GitTimeoutError, RevisionNotFoundError, SourceError
from docindex_dagster.core.events import Progress, emit
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.git_folders import git_folder
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.urls import local_path
from docindex_dagster.sources import git, mirror, transfer
from docindex_dagster.sources.mirror import remove_locks, remove_path
from docindex_dagster.sources.model import Remote, Source

# Errors that a new clone would not fix: a full disk, and objects that the remote itself has lost.
_NOT_REPAIRABLE = ("No space left on device", "Disk quota exceeded", "not our ref")

Report = Callable[[str], None]


def update(source: Source, layout: Layout, *, history: int, report: Report) -> None:
    """Make `source.path` a checkout of the remote's current commit; do nothing for a source without a remote.

    Args:
        source: Its remote says which ref to follow.
        layout: Where the locks are.
        history: How many of the newest commits will be read for their changes, which are then fetched in one request.
        report: Called with each line that the user should see.

    Raises:
        SourceError: The remote cannot be reached, has no such branch, tag or commit, or its `.git` belongs to another
            folder. Existing clones and checkouts are kept.
    """
    remote = source.remote
    if remote is None:
        return
    with _locked(layout, source.key, report):
        _refuse_foreign(remote)  # a new clone would also be of the foreign repository, so do not attempt a repair
        try:
            _update_checkout(source, remote, history, report)
        except (RevisionNotFoundError, GitTimeoutError):
            raise
        except SourceError as error:
            is_lost = any(message in str(error) for message in _NOT_REPAIRABLE)
            if is_lost or not remote.repository.exists() or not mirror.is_reachable(remote):
                raise
            report(f"the clone is damaged; repairing it ({error})")
            _repair(source, remote, history, report)


def remove(layout: Layout, key: str, report: Report) -> None:
    """Delete the checkout of a source, and its clone if no other checkout needs it."""
    repository, folder = layout.repository(key), layout.checkout(key)
    if not key.startswith("git/") or not (repository.exists() or folder.exists()):
        return
    with _locked(layout, key, report):
        remove_path(folder)
        if not _checkouts(repository):
            remove_path(repository)


def _locked(layout: Layout, key: str, report: Report) -> AbstractContextManager[Note]:
    def wait(owner: str) -> None:
        report(f"waiting for another fetch of this repository ({owner})")

    return exclusive(layout.repository_lock(key), f"{key} of process {os.getpid()}", wait)


def _refuse_foreign(remote: Remote) -> None:
    """Check that a local remote is the folder from the settings, is read by git itself, and has its own `.git`.

    For a path without a repository, git would follow a file that names another folder, or use `PATH.git`.

    Raises:
        SourceError: One of these is not the case.
    """
    remote.check()
    path = (local_path(remote.url) or "").rstrip("/")
    if not (path and (os.path.lexists(path) or os.path.lexists(f"{path}.git"))):
        return
    folder, limit_s = Path(path), transfer.limit_s(remote.url)
    if (folder / ".git").exists():
        git.safe_options(os.fsencode(folder))
    elif transfer.attempt(folder, "--git-dir=.", "rev-parse", "--git-dir", timeout_s=limit_s) is None:
        raise SourceError(f"{path} is not a git repository; use the path of one")


def _repair(source: Source, remote: Remote, history: int, report: Report) -> None:
    """Remove what a killed git left behind; if that is not enough, clone again."""
    remove_locks(remote.repository, source.path)
    remove_path(source.path)
    try:
        _update_checkout(source, remote, history, report)
    except SourceError:
        report("cannot repair the clone; cloning again")
        mirror.clone(remote)
        _update_checkout(source, remote, history, report)


def _update_checkout(source: Source, remote: Remote, history: int, report: Report) -> None:
    mirror.remove_unfinished(remote.repository)
    if not remote.repository.is_dir():
        emit(Progress(source.key, "clone", 0, 1, "repository"))
        mirror.clone(remote)
        emit(Progress(source.key, "clone", 1, 1, "repository"))
    mirror.fetch(remote)
    commit = mirror.resolve(remote)
    if commit is None:
        _check_out_empty(source, remote)
        return
    # The note records the commit for which this was already done.
    note, text = _note(remote, source.key), f"{commit} {history}"
    is_new = not note.is_file() or note.read_text(encoding="utf-8") != text
    if is_new:
        emit(Progress(source.key, "fetch contents", 0, 1, "commit"))
        mirror.fetch_contents(remote.repository, commit, history)
        emit(Progress(source.key, "fetch contents", 1, 1, "commit"))
    _check_out(remote.repository, source.path, commit)
    if source.submodules:
        transfer.update_submodules(source.path, report)
    if is_new:
        mirror.run_maintenance(remote.repository)
        with atomic_write(note) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _note(remote: Remote, key: str) -> Path:
    return remote.repository / "docindex" / file_name(key)


def _check_out_empty(source: Source, remote: Remote) -> None:
    """Create an empty checkout for an empty repository; in other repositories, a missing ref is an error.

    Raises:
        SourceError: The repository is not empty.
    """
    if remote.ref is not None:
        raise RevisionNotFoundError(
            f"{remote.url} has no branch, tag or commit {remote.ref!r}; indexed data is kept. Fix the entry in "
            f"docindex.toml, or run {command('docindex', 'source', 'remove', source.key)}"
        )
    if mirror.has_branches(remote.repository):
        raise RevisionNotFoundError(f'the HEAD of {remote.url} points to no commit; set the branch: branch = "NAME"')
    _make_empty(source.path)


def _check_out(repository: Path, folder: Path, commit: str) -> None:
    """Make a folder the checkout of a commit, writing only files that differ from it.

    Raises:
        SourceError: git cannot write the folder.
    """
    purpose = f"check out {commit} in {folder}"
    if not _is_checkout_of(repository, folder):
        remove_path(folder)
        arguments = ("worktree", "add", "--quiet", "--force", "--force", "--detach", "--no-checkout")
        transfer.run(repository, *arguments, "--", str(folder), commit, purpose=purpose)
    transfer.run(folder, "checkout", "--quiet", "--force", "--detach", commit, "--", purpose=purpose)
    transfer.run(folder, "clean", "--quiet", "-ffdx", purpose=purpose)


def _make_empty(folder: Path) -> None:
    """Make a folder a work tree without commits and files, like the clone of an empty remote.

    Raises:
        SourceError: git cannot write the folder.
    """
    remove_path(folder)
    folder.mkdir(parents=True)
    transfer.run(folder, "init", "--quiet", "--template=", purpose=f"create {folder}")


def _checkouts(repository: Path) -> list[Path]:
    """Return the existing checkouts of a clone."""
    notes = (note.read_bytes() for note in repository.glob("worktrees/*/gitdir"))
    return [path.parent for note in notes if (path := Path(os.fsdecode(note.strip()))).exists()]


def _is_checkout_of(repository: Path, folder: Path) -> bool:
    """Return whether a folder is a checkout of this clone, and each refers to the other."""
    if folder.is_symlink() or not (folder / ".git").is_file():
        return False
    own = git_folder(folder)
    is_here = own.is_dir() and own.parent == Path(os.path.realpath(repository)) / "worktrees"
    return is_here and folder.resolve() in [checkout.resolve() for checkout in _checkouts(repository)]
