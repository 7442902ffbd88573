"""How a git work tree stands: which files its index names, and how it differs from it and from the last commit."""

import os
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.git_folders import git_folder
from docindex_dagster.sources import git, guard

_GITLINK = b"160000"
_ATTEMPTS = 5
_INDEX = ("ls-files", "-z", "-v", "--stage")


@dataclass(frozen=True)
class TreeStatus:
    """Which files a work tree's index names, and how the work tree differs from its last commit."""

    files: dict[bytes, bytes]  # ids of blobs by path
    links: dict[bytes, bytes]  # ids of the commits that submodules are at, by path
    hidden: frozenset[bytes]  # files that git is configured not to compare, so that it reports no change of theirs
    head: str | None = None  # id of the last commit; None before the first
    changed: frozenset[bytes] = frozenset()  # tracked, and not as in the last commit
    modified: frozenset[bytes] = frozenset()  # of these, not as in the index either
    added: frozenset[bytes] = frozenset()  # of these, absent from the last commit
    untracked: tuple[bytes, ...] = ()  # and not ignored; a repository of its own ends in a slash

    def has_files_in(self, folder: bytes) -> bool:
        """Whether the index names something in a folder, whose path ends in a slash, or the folder as a submodule."""
        at = bisect_left(self._sorted, folder)
        return at < len(self._sorted) and self._sorted[at].startswith(folder)

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted([*self.files, *(link + b"/" for link in self.links)])


def _arguments(*, untracked: bool) -> tuple[str, ...]:
    """Return the command whose output `_with_status` reads."""
    return (
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--no-ahead-behind",
        "--no-renames",
        "--ignore-submodules=all",
        f"--untracked-files={'all' if untracked else 'no'}",
    )


def _with_status(index: TreeStatus, output: bytes) -> TreeStatus:
    """Add what `git status` prints to what the index names."""
    head = None
    changed, modified, added, untracked = set(), set(), set(), []
    for line in output.split(b"\0"):
        kind = line[:2]
        if kind == b"? ":
            untracked.append(line[2:])
        elif kind in {b"1 ", b"u "}:
            path = line.split(b" ", 8 if kind == b"1 " else 10)[-1]
            changed.add(path)
            if line[3:4] != b"." or kind == b"u ":
                modified.add(path)
            if line[2:3] == b"A" or line[3:4] == b"A":
                added.add(path)
        elif line.startswith(b"# branch.oid ") and not line.endswith(b" (initial)"):
            head = line.rpartition(b" ")[2].decode()
    return replace(
        index,
        head=head,
        changed=frozenset(changed),
        modified=frozenset(modified),
        added=frozenset(added),
        untracked=tuple(untracked),
    )


def _parse_index(output: bytes) -> TreeStatus:
    """Read the output of `git ls-files -v --stage`."""
    files: dict[bytes, bytes] = {}
    links: dict[bytes, bytes] = {}
    hidden = set()
    for line in output.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        tag, mode, identity, _stage = about.split(b" ")
        (links if mode == _GITLINK else files)[path] = identity
        if tag == b"S" or tag.islower():  # skip-worktree; assume-unchanged
            hidden.add(path)
    return TreeStatus(files, links, frozenset(hidden))


def read_index(root: bytes) -> TreeStatus:
    """Return what the index of a work tree names.

    Raises:
        SourceError: The folder is not the root of a work tree, or git cannot read it.
    """
    return _parse_index(git.run(root, *_INDEX))


def read_tree_status(root: bytes, *, untracked: bool) -> TreeStatus:
    """Return how a work tree stands; untracked files only with `untracked`.

    Raises:
        SourceError: As `read_index` does, or another process writes the index all the time.
    """
    file = git_folder(Path(os.fsdecode(root))) / "index"
    for _ in range(_ATTEMPTS):
        before = stamp(file)
        # The repository's own settings make it run nothing.
        options = guard.options(root)
        with git.started(
            root, *options, *_arguments(untracked=untracked)
        ) as blocks:  # git compares the work tree while its index is read here
            index = read_index(root)
            tree_status = _with_status(index, b"".join(blocks))
        # A file that was added or committed between the two is in neither, or has a blob that it had before.
        if stamp(file) == before:
            return tree_status
    raise SourceError(f"the index of {os.fsdecode(root)} changed {_ATTEMPTS} times while git read it; try again")
