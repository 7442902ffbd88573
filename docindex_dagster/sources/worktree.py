"""The files of a git work tree: tracked ones with their blob ids, and untracked ones that git does not ignore.

The files of a submodule lie in a repository of their own. To the repository around it a submodule is one entry, which
names the commit that it is at; the commit that changed this entry last stands for all its files.
"""

import os
import stat
from dataclasses import dataclass
from typing import NamedTuple

from docindex_dagster.sources.entries import Entry, error_reason, folder_entry, type_reason
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import PathRules, Pruned, Scope
from docindex_dagster.sources.status import Standing, read_index, read_standing
from docindex_dagster.sources.submodules import failures_of

_OWN_REPOSITORY = "submodule: a repository of its own; add it as a source"
_NOT_CHECKED_OUT = "submodule: it is not checked out"


@dataclass(frozen=True, slots=True)
class _Tree:
    """The work tree of a source, or of a submodule in it."""

    root: bytes
    prefix: bytes = b""  # its place in the source; empty, or ending in a slash
    outermost: bytes | None = None  # the path of the submodule of the source that it is, or lies in
    commit: bytes | None = None  # which commit the repository around it says that it is at


class _Link(NamedTuple):
    """The entry of a submodule in the repository around it."""

    tree: _Tree
    own: bytes  # its path there
    commit: bytes


def list_work_tree(rules: PathRules, standing: Standing, *, untracked: bool, submodules: bool = False) -> list[Entry]:
    """List the work tree at the root of `rules`, which stands so: its entries, in no order.

    A tracked file that was deleted is no entry. One entry stands for each folder that is not entered.

    Raises:
        SourceError: git cannot read a submodule.
    """
    entries, links = _list(rules, _Tree(rules.root), standing)
    while links:
        path, found = links.popitem()
        outcome = _enter(rules, path, found) if submodules else _OWN_REPOSITORY
        if isinstance(outcome, _Tree):
            files, inner = _list(rules, outcome, read_standing(outcome.root, untracked=untracked))
            entries |= files
            links |= inner
        elif (entry := _folder(rules, path, outcome)).path not in entries:
            entries[entry.path] = entry
    return list(entries.values())


def submodule_roots(root: bytes) -> list[bytes]:
    """Return the roots of the submodules of a work tree, and of theirs, that are checked out."""
    trees = [_Tree(root)]
    for tree in trees:  # which grows meanwhile
        links = read_index(tree.root).links
        inner = (_submodule(root, tree.prefix + path, _Link(tree, path, b"")) for path in links)
        trees += filter(None, inner)
    return [tree.root for tree in trees[1:]]


def _list(rules: PathRules, tree: _Tree, standing: Standing) -> tuple[dict[bytes, Entry], dict[bytes, _Link]]:
    """Return the files and pruned folders of one work tree by path, and its submodules by path."""
    status, index = standing.status, standing.index
    is_moved = tree.commit is not None and tree.commit.decode() != status.head
    unsure = status.modified | index.hidden
    entries: dict[bytes, Entry] = {}
    for own, blob in (*index.files.items(), *((path, None) for path in status.untracked)):
        path = tree.prefix + own
        scope = rules.scope_around(path)
        if isinstance(scope, Pruned):
            entries[scope.path] = folder_entry(scope.path, scope.reason)
        elif path.endswith(b"/"):
            entries[path] = folder_entry(path, _OWN_REPOSITORY)
        elif (entry := _file_entry(rules, scope, tree, own)) is not None:
            entries[path] = entry._replace(
                blob=blob.decode() if blob is not None and own not in unsure else None,
                is_uncommitted=blob is None or own in status.changed or is_moved,
                is_in_head=blob is not None and own not in status.added,
                commit_path=tree.outermost,
            )
    return entries, {tree.prefix + own: _Link(tree, own, commit) for own, commit in index.links.items()}


def _enter(rules: PathRules, path: bytes, link: _Link) -> _Tree | str:
    """The work tree of a submodule, or why its files are not listed."""
    scope = rules.scope(path + b"/")
    if isinstance(scope, Pruned):
        return scope.reason
    found = _submodule(rules.root, path, link)
    if found is not None:
        return found
    failure = failures_of(link.tree.root).get(link.own)
    return f"submodule: {failure}" if failure else _NOT_CHECKED_OUT


def _folder(rules: PathRules, path: bytes, reason: str) -> Entry:
    """The entry of a submodule that is not entered, or of the pruned folder that it lies in."""
    scope = rules.scope_around(path)
    return folder_entry(scope.path, scope.reason) if isinstance(scope, Pruned) else folder_entry(path + b"/", reason)


def _submodule(root: bytes, path: bytes, link: _Link) -> _Tree | None:
    """The work tree of a submodule; None where it is not checked out, or lies behind a symbolic link."""
    folder = join(root, path)
    if not os.path.lexists(join(folder, b".git")) or os.path.realpath(folder) != join(os.path.realpath(root), path):
        return None
    return _Tree(folder, path + b"/", link.tree.outermost or path, link.commit)


def _file_entry(rules: PathRules, scope: Scope, tree: _Tree, own: bytes) -> Entry | None:
    """What the file system and the rules say of a file; None where it is not there."""
    path = tree.prefix + own
    try:
        found = os.lstat(join(rules.root, path))
    except (FileNotFoundError, NotADirectoryError):  # deleted, or left out by a sparse checkout
        return None
    except OSError as error:
        return Entry(path, 0, 0, error_reason(error))
    if stat.S_ISDIR(found.st_mode):  # replaced by a folder, whose files git names as untracked
        return None
    reason = rules.file_reason(scope, path[len(scope.path) :]) or type_reason(rules.root, path, found.st_mode)
    return Entry(path, found.st_size, found.st_mtime_ns, reason)
