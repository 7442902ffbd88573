"""The last commit that changed each file, by as little of the log as is needed."""

from collections.abc import Collection, Generator
from contextlib import closing

from docindex_dagster.sources import git

# Merges count where they differ from all of their parents: what they took over unchanged was changed elsewhere.
_LOG = ("log", "-z", "--format=/%H", "--name-only", "--no-renames", "-c", "--no-relative", "--no-color")


def last_commits(root: bytes, head: str, paths: Collection[bytes]) -> dict[bytes, str]:
    """Return the id of the newest commit up to `head` that changed each path, reading the log until all are found.

    Raises:
        SourceError: git cannot read the log.
    """
    wanted = set(paths)
    found: dict[bytes, str] = {}
    with closing(_changes(root, head)) as changes:
        while wanted and (change := next(changes, None)):
            commit, path = change
            if path in wanted:
                wanted.remove(path)
                found[path] = commit
    return found


def changed_since(root: bytes, old: str, head: str) -> set[bytes] | None:
    """Return the paths that commits after `old` changed; None where `old` is gone or is not behind `head`.

    Raises:
        SourceError: git cannot read the log.
    """
    if git.attempt(root, "merge-base", "--is-ancestor", old, head) is None:
        return None
    return {path for _, path in _changes(root, f"{old}..{head}")}


def _changes(root: bytes, revisions: str) -> Generator[tuple[str, bytes], None, None]:
    """Yield (commit, path), newest first.

    A record with a slash in front is a commit id, which no path is. Names follow: of a plain commit, the first after a
    newline; of a merge, after an empty record.
    """
    commit, is_first = "", False
    for record in git.records(root, *_LOG, revisions, "--"):
        if record.startswith(b"/"):
            commit, is_first = record[1:].decode(), True
            continue
        if record:
            yield commit, record[1:] if is_first else record
        is_first = False
