"""The commits that lead to a revision, newest first, each with the files that it changed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training.licences import git

_MARK = b"\x01commit\x01"
_FIELDS = b"%an <%ae>%x00%s%x00%b%x00"


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a commit changed: git's letter for how, and the path that it has since."""

    status: str  # A, M, D, R100 …
    path: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as its author described it. That of a merge is what it brought into the branch."""

    author: str
    subject: str
    body: str
    changes: tuple[Change, ...]


def commits_of(mirror: Path, revision: str, *, merges: bool) -> Iterator[Commit]:
    """The merges that a revision holds, or all other commits, newest first.

    Raises:
        CalledProcessError: git cannot read the history.
    """
    which = ["--merges", "--diff-merges=first-parent"] if merges else ["--no-merges"]
    form = f"--format=%x01commit%x01{_FIELDS.decode()}"
    # Renames that change nothing are seen by their hashes: a mirror may lack the content of old files.
    found = git(mirror, "log", "-z", "--find-renames=100%", "--name-status", *which, form, revision, "--")
    for record in found.split(_MARK)[1:]:
        author, subject, body, changes = record.split(b"\0", 3)
        yield Commit(_text(author), _text(subject), _text(body), tuple(_changes(changes)))


def _changes(record: bytes) -> Iterator[Change]:
    """What `--name-status -z` writes: a letter and a path, or for a rename a letter and two."""
    fields = iter(field for field in record.strip(b"\n\0").split(b"\0") if field.strip())
    for status in fields:
        letter = status.strip().decode()
        path = next(fields, b"")
        if letter[:1] in {"R", "C"}:
            path = next(fields, b"")
        yield Change(letter, os.fsdecode(path))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
