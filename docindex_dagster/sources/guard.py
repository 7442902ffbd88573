"""What a work tree's own git settings must not decide: which programs run, and which files outside of it are read.

A folder that was downloaded may bring a `.git` with it that a user prepared.
"""

import os
import re
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.git_folders import common_folder, git_folder, text_of
from docindex_dagster.core.printable import command
from docindex_dagster.sources import git

_DECIDING = re.compile(rb"filter\..*|core\.(attributesfile|excludesfile|worktree)", re.DOTALL)
_OF_THE_REPOSITORY = {b"local", b"worktree"}
_WORK_TREE = b"core.worktree"
_LFS = b"filter.lfs."
_OF_LFS = (b"clean", b"process", b"required", b"smudge")
# What git-lfs itself writes into the settings of a repository.
_HARMLESS = re.compile(rb"lfs\.(repositoryformatversion|.+\.(access|locksverify))", re.DOTALL | re.IGNORECASE)


def options(root: bytes) -> tuple[bytes, ...]:
    """Return the options under which git reads the files of a work tree, as `git status` does, and runs no programs.

    Filters that the user's own settings name, such as those of git-lfs, stay; those that the repository names do not.

    Raises:
        SourceError: The `.git` of the folder is that of another one, or git cannot read its settings.
    """
    own: dict[bytes, bytes] = {}
    users: dict[bytes, bytes] = {}
    misleads_lfs = False
    fields = git.run(root, "config", "--show-scope", "--null", "--list").split(b"\0")
    for scope, setting in zip(fields[0::2], fields[1::2], strict=False):
        key, _, value = setting.partition(b"\n")
        if scope in _OF_THE_REPOSITORY:
            misleads_lfs |= _is_for_lfs(key) or any(map(_is_for_lfs, value.split(b"\n")[1:]))
        if _DECIDING.fullmatch(key):
            (own if scope in _OF_THE_REPOSITORY else users)[key] = value
    _check_place(os.fsdecode(root), os.fsdecode(own.pop(_WORK_TREE, b"")))
    # The user's git-lfs runs the extensions that a repository names, and writes where it says.
    if misleads_lfs:
        users = {key: value for key, value in users.items() if not key.startswith(_LFS)}
        own = dict.fromkeys(own.keys() | {_LFS + name for name in _OF_LFS}, b"")
    if any(b"=" in key for key in own):
        raise SourceError(f"{os.fsdecode(root)} has a git filter with '=' in its name; remove it from its settings")
    return tuple(part for key in own for part in (b"-c", b"%b=%b" % (key, users.get(key, b""))))


def _is_for_lfs(setting: bytes) -> bool:
    """Whether git-lfs would obey a setting, or a line of one: it reads what git lists line by line."""
    return setting.strip().lower().startswith(b"lfs.") and not _HARMLESS.fullmatch(setting.partition(b"=")[0])


def _check_place(root: str, work_tree: str) -> None:
    """Refuse a `.git` that leads to a repository which does not know this folder, or that git finds elsewhere.

    What lies in the folder itself, its author could have prepared.
    """
    real, entry = os.path.realpath(root), Path(root, ".git")
    folder, common = git_folder(Path(root)), common_folder(Path(root))
    place = folder.resolve()
    if place.is_relative_to(real):
        is_own = common.is_relative_to(real)
    else:
        back = text_of(folder / "gitdir")
        leads_back = (str((folder / back).parent) if back else "", str(folder / work_tree) if work_tree else "")
        is_own = real in map(os.path.realpath, filter(None, leads_back))
    if not is_own:
        raise SourceError(
            f"{root}/.git leads to {folder}, which is not the repository of this folder; if it is meant to be, say "
            f"so there: {command('git', 'config', '--file', folder / 'config', 'core.worktree', real)}"
        )
    is_plain = not entry.is_symlink() and entry.is_dir() and not os.path.lexists(entry / "commondir")
    if is_plain and os.pathsep not in real:  # which would separate the folders that git does not leave
        return
    is_listed = place.is_relative_to(real) or common == place or common / "worktrees" == place.parent
    if not (is_listed and _finds(root, place, common)):
        raise SourceError(
            f"{root}/.git leads to {folder}, but git uses another repository: it is not the repository of this folder; "
            "remove it, and clone again"
        )


def _finds(root: str, folder: Path, common: Path) -> bool:
    """Whether git itself finds these folders: a path such as `/proc/self/cwd` means others to it."""
    found = git.run(os.fsencode(root), "rev-parse", "--absolute-git-dir", "--git-common-dir")
    expected = os.fsencode(folder) + b"\n"
    theirs = os.path.realpath(os.path.join(os.fsencode(root), found[len(expected) : -1]))  # noqa: PTH118 bytes
    return found.startswith(expected) and theirs == os.fsencode(common)
