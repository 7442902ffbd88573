"""The files of a git work tree: tracked files with their blob ids, and untracked files that git does not ignore.

A work tree can differ from its index, and both can differ from the last commit.

A submodule keeps its files in its own repository. The superproject records it as a single entry: the commit that is
checked out. The commit that last changed this entry counts as the last commit of all its files.
"""

import os
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.git_folders import external_references, git_folder
from docindex_dagster.sources import git
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, join
from docindex_dagster.sources.rules import PathRules, Pruned, path_rules
from docindex_dagster.sources.transfer import submodule_failures
from docindex_dagster.sources.walk import Entry, file_entry, folder_entry, open_root

_OWN_REPOSITORY = "submodule: a separate repository; add it as a source"
_NOT_CHECKED_OUT = "submodule: not checked out"
_LINKED = "submodule: its .git contains symlinks, which may point outside the source"
_GITLINK = b"160000"
_ATTEMPTS = 5
_INDEX = ("ls-files", "-z", "-v", "--stage")


@dataclass(frozen=True)
class TreeStatus:
    """The files in a work tree's index, and how the work tree differs from its last commit."""

    files: dict[bytes, bytes]  # blob ids by path
    links: dict[bytes, bytes]  # commit ids of submodules by path
    hidden: frozenset[bytes]  # files that git is configured not to compare; git never reports them as changed
    head: str | None = None  # id of the last commit; None before the first commit
    changed: frozenset[bytes] = frozenset()  # tracked files that differ from the last commit
    modified: frozenset[bytes] = frozenset()  # the subset of `changed` that also differs from the index
    added: frozenset[bytes] = frozenset()  # the subset of `changed` that the last commit does not contain
    untracked: tuple[bytes, ...] = ()  # untracked, not ignored; the path of a nested repository ends in a slash

    def has_files_in(self, folder: bytes) -> bool:
        """Return whether the index contains a file in a folder, or the folder as a submodule.

        The path of the folder ends in a slash.
        """
        at = bisect_left(self._sorted, folder)
        return at < len(self._sorted) and self._sorted[at].startswith(folder)

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted([*self.files, *(link + b"/" for link in self.links)])


def _status_arguments(*, untracked: bool) -> tuple[str, ...]:
    """Return the git arguments whose output `_with_status` parses."""
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
    """Add the output of `git status` to the contents of the index."""
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
    """Parse the output of `git ls-files -v --stage`."""
    files: dict[bytes, bytes] = {}
    links: dict[bytes, bytes] = {}
    hidden = set()
    for line in output.split(b"\0")[:-1]:
        fields, _, path = line.partition(b"\t")
        tag, mode, identity, _stage = fields.split(b" ")
        (links if mode == _GITLINK else files)[path] = identity
        if tag == b"S" or tag.islower():  # skip-worktree; assume-unchanged
            hidden.add(path)
    return TreeStatus(files, links, frozenset(hidden))


def read_index(root: bytes) -> TreeStatus:
    """Return the contents of a work tree's index.

    Raises:
        SourceError: The folder is not the root of a work tree, or git cannot read it.
    """
    return _parse_index(git.run(root, *_INDEX))


def read_tree_status(root: bytes, *, untracked: bool) -> TreeStatus:
    """Return the status of a work tree, with untracked files if `untracked` is set.

    Raises:
        SourceError: As `read_index` does, or another process keeps rewriting the index.
    """
    file = git_folder(Path(os.fsdecode(root))) / "index"
    for _ in range(_ATTEMPTS):
        before = stamp(file)
        # Stops the repository's own settings from running programs.
        options = git.safe_options(root)
        with git.started(
            root, *options, *_status_arguments(untracked=untracked)
        ) as blocks:  # git compares the work tree while the index is read here
            index = read_index(root)
            tree_status = _with_status(index, b"".join(blocks))
        # A file added or committed between the two calls may be missing, or have its previous blob id.
        if stamp(file) == before:
            return tree_status
    raise SourceError(f"the index of {os.fsdecode(root)} changed {_ATTEMPTS} times while git read it; try again")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The work tree of a source or one of its submodules, with its status."""

    root: bytes
    tree_status: TreeStatus
    prefix: bytes = b""  # its path in the source; empty, or with a trailing slash
    outermost: bytes | None = None  # of a submodule: the path of the outermost submodule that contains it, or its own
    commit: bytes | None = None  # of a submodule: the commit that the superproject records

    def has_files_in(self, folder: bytes) -> bool:
        """Return whether git tracks files in a folder of the source, whose path ends in a slash."""
        return folder.startswith(self.prefix) and self.tree_status.has_files_in(folder[len(self.prefix) :])


def read_work_trees(source: Source) -> tuple[PathRules, list[WorkTree]]:
    """Return the path rules of a source and its work trees: its own first, then its readable submodules.

    Raises:
        SourceError: git cannot read one of them, or the repository now borrows from another one.
    """
    root = os.fsencode(source.path)
    trees = [WorkTree(root, read_tree_status(root, untracked=source.untracked))]
    rules = path_rules(source, lambda folder: any(tree.has_files_in(folder) for tree in trees))
    for outer in trees if source.submodules else ():  # the loop body appends to the list
        for own, commit in outer.tree_status.links.items():
            path = outer.prefix + own
            root = join(rules.root, path)
            is_entered = not isinstance(rules.scope(path + b"/"), Pruned) and _is_checked_out(rules.root, path)
            if is_entered and not _has_links(root):
                tree_status = read_tree_status(root, untracked=source.untracked)
                trees.append(WorkTree(root, tree_status, path + b"/", outer.outermost or path, commit))
    source.check_repository()  # last, so that nothing that git read before is used
    return rules, trees


def list_files(rules: PathRules, trees: Sequence[WorkTree], *, submodules: bool) -> list[Entry]:
    """Return the entries of the files of work trees, in no particular order; the first tree is at the root of `rules`.

    Deleted tracked files have no entry. A folder that is not entered has a single entry.
    """
    entries: dict[bytes, Entry] = {}
    with open_root(rules) as root:
        for tree in trees:
            entries |= _list(rules, root, tree)
    listed = {tree.prefix for tree in trees}
    for tree in trees:
        for own in tree.tree_status.links:
            path = tree.prefix + own
            if path + b"/" not in listed:
                reason = _skip_reason(rules, tree, own) if submodules else _OWN_REPOSITORY
                entry = _folder(rules, path, reason)
                entries.setdefault(entry.path, entry)
    return list(entries.values())


def _list(rules: PathRules, root: Root, tree: WorkTree) -> dict[bytes, Entry]:
    """Return the files and pruned folders of one work tree by path."""
    status = tree.tree_status
    is_moved = tree.commit is not None and tree.commit.decode() != status.head
    unsure = status.modified | status.hidden
    entries: dict[bytes, Entry] = {}
    for own, blob in (*status.files.items(), *((path, None) for path in status.untracked)):
        path = tree.prefix + own
        scope = rules.scope_around(path)
        if isinstance(scope, Pruned):
            entries[scope.path] = folder_entry(scope.path, scope.reason)
        elif path.endswith(b"/"):
            entries[path] = folder_entry(path, _OWN_REPOSITORY)
        elif (entry := file_entry(rules, root, scope, path)) is not None:
            entries[path] = entry._replace(
                blob=blob.decode() if blob is not None and own not in unsure else None,
                is_uncommitted=blob is None or own in status.changed or is_moved,
                is_in_head=blob is not None and own not in status.added,
                commit_path=tree.outermost,
            )
    return entries


def _skip_reason(rules: PathRules, tree: WorkTree, own: bytes) -> str:
    """Return why the files of a submodule are not listed."""
    scope = rules.scope(tree.prefix + own + b"/")
    if isinstance(scope, Pruned):
        return scope.reason
    if _is_checked_out(rules.root, tree.prefix + own):
        return _LINKED
    failure = submodule_failures(tree.root).get(own)
    return f"submodule: {failure}" if failure else _NOT_CHECKED_OUT


def _folder(rules: PathRules, path: bytes, reason: str) -> Entry:
    """Return the entry of a skipped submodule, or of the pruned folder that contains it."""
    scope = rules.scope_around(path)
    return folder_entry(scope.path, scope.reason) if isinstance(scope, Pruned) else folder_entry(path + b"/", reason)


def _is_checked_out(root: bytes, path: bytes) -> bool:
    """Return whether a submodule has its own work tree that is not reached through a symlink."""
    folder = join(root, path)
    is_tree = os.path.lexists(join(folder, b".git"))
    return is_tree and os.path.realpath(folder) == join(os.path.realpath(root), path)


def _has_links(root: bytes) -> bool:
    """Return whether the git folders of a submodule contain symlinks, which trust in the source does not cover."""
    return any(path.is_symlink() for path in external_references(Path(os.fsdecode(root))))
