"""The files of a git work tree: tracked ones with their blob ids, and untracked ones that git does not ignore."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from docindex_dagster.sources import git
from docindex_dagster.sources.entries import Entry, error_reason, folder_entry, type_reason
from docindex_dagster.sources.paths import join
from docindex_dagster.sources.rules import PathRules, Pruned, Scope

_GITLINK = b"160000"
_OWN_REPOSITORY = "submodule: a repository of its own; add it as a source"


@dataclass(frozen=True, slots=True)
class Status:
    """How a work tree differs from its last commit, as `git status` says."""

    head: str | None = None  # id of the last commit; None before the first
    changed: frozenset[bytes] = frozenset()  # tracked, and not as in the last commit
    modified: frozenset[bytes] = frozenset()  # of these, not as in the index either
    added: frozenset[bytes] = frozenset()  # of these, absent from the last commit
    untracked: tuple[bytes, ...] = ()  # and not ignored; a repository of its own ends in a slash


def status_arguments(*, untracked: bool) -> tuple[str, ...]:
    """Return the command whose output `parse_status` reads."""
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


def parse_status(output: bytes) -> Status:
    """Read the output of `git status`."""
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
    return Status(head, frozenset(changed), frozenset(modified), frozenset(added), tuple(untracked))


def list_work_tree(rules: PathRules, *, untracked: bool) -> tuple[Status, list[Entry]]:
    """List the work tree at the root of `rules`: how it stands, and its entries in no order.

    A tracked file that was deleted is no entry. One entry stands for each folder that is not entered.

    Raises:
        SourceError: The root is not that of a work tree, or git cannot read it.
    """
    with ThreadPoolExecutor(1) as pool:  # git compares the work tree while its index is read here
        asked = pool.submit(git.run, rules.root, *status_arguments(untracked=untracked))
        index = _parse_index(git.run(rules.root, "ls-files", "-z", "--stage"))
    status = parse_status(asked.result())
    files: list[Entry] = []
    folders: dict[bytes, Entry] = {}
    for path, blob in (*index.items(), *((path, None) for path in status.untracked)):
        scope = rules.scope(path[: path.rfind(b"/") + 1])
        if isinstance(scope, Pruned):
            folders[scope.path] = folder_entry(scope.path, scope.reason)
        elif blob == _GITLINK or path.endswith(b"/"):
            folders[path] = folder_entry(path.removesuffix(b"/") + b"/", _OWN_REPOSITORY)
        elif (entry := _file_entry(rules, status, scope, path, blob)) is not None:
            files.append(entry)
    return status, [*files, *folders.values()]


def _parse_index(output: bytes) -> dict[bytes, bytes]:
    """Read the output of `git ls-files --stage`: the blob id of each path, `_GITLINK` for a submodule."""
    index = {}
    for line in output.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, blob, _stage = about.split(b" ")
        index[path] = _GITLINK if mode == _GITLINK else blob
    return index


def _file_entry(rules: PathRules, status: Status, scope: Scope, path: bytes, blob: bytes | None) -> Entry | None:
    try:
        found = os.lstat(join(rules.root, path))
    except (FileNotFoundError, NotADirectoryError):  # deleted, or left out by a sparse checkout
        return None
    except OSError as error:
        return Entry(path, 0, 0, error_reason(error))
    if stat.S_ISDIR(found.st_mode):  # replaced by a folder, whose files git names as untracked
        return None
    return Entry(
        path,
        found.st_size,
        found.st_mtime_ns,
        reason=rules.file_reason(scope, path[len(scope.path) :]) or type_reason(rules.root, path, found.st_mode),
        blob=blob.decode() if blob is not None and path not in status.modified else None,
        is_uncommitted=blob is None or path in status.changed,
        is_in_head=blob is not None and path not in status.added,
    )
