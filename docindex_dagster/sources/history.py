"""The last commit that changed each file, by as little of the log as is needed."""

import os
from collections.abc import Collection, Generator
from contextlib import closing
from pathlib import Path

from docindex_dagster.core.errors import NoAnswerError, SourceError
from docindex_dagster.core.git_folders import common_folder
from docindex_dagster.sources import git
from docindex_dagster.sources.paths import read_regular

# Merges count where they differ from all of their parents: what they took over unchanged was changed elsewhere.
# What to do with submodules is said here, or a wrong .gitmodules would be an error.
_LOG = (
    *("log", "-z", "--format=/%H", "--name-only", "--no-renames", "-c", "--no-relative", "--no-color"),
    *("--encoding=UTF-8", "--ignore-submodules=dirty"),
)
_LONGEST_END = 16 << 20  # bytes, 41 a commit


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


def touched_between(root: bytes, old: str, new: str) -> set[bytes] | None:
    """Return the paths that commits changed which are behind one of two commits only; None where git does not know.

    The last commit that changed any other path is the same for both: unless the clocks of its committers were so wrong
    that a merge of older work makes git list two of its commits the other way round.

    Raises:
        NoAnswerError: git does not answer.
    """
    try:
        return {path for _, path in _changes(root, f"{old}...{new}")}
    except NoAnswerError:
        raise
    except SourceError:  # what the table was made of is not there any more
        return None


def shallow_end(root: bytes) -> bytes:
    """The commits at which a shallow clone ends, as git notes them; empty in others."""
    try:
        return read_regular(common_folder(Path(os.fsdecode(root))) / "shallow", _LONGEST_END)
    except OSError:
        return b""


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
