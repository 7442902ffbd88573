"""The figures of a git repository as a whole."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from docindex_dagster.sources import git
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import decode

# The key under which the figures stand in the metadata of a `commits` table.
REPOSITORY = b"docindex.repository"
_LONGEST_SUBJECT = 200
_BRANCHES, _REMOTES, _TAGS = b"refs/heads/", b"refs/remotes/", b"refs/tags/"


@dataclass(frozen=True, slots=True)
class RepositoryFigures:
    """How large a repository is and where it stands. The latest commit is None before the first."""

    commits: int  # that the latest one builds on, itself included
    branches: int  # by name, here or in a remote
    tags: int
    latest_commit: str | None
    latest_date: str | None  # UTC, ISO 8601
    latest_subject: str | None
    is_shallow: bool


def to_json(figures: RepositoryFigures) -> str:
    """The figures as they stand in the metadata of a table."""
    return json.dumps(asdict(figures))


def from_json(text: str | bytes | None) -> RepositoryFigures | None:
    """The inverse of `to_json`; None where there are none, or those of another version of docindex."""
    try:
        return RepositoryFigures(**json.loads(text)) if text else None
    except (TypeError, ValueError):
        return None


def read_figures(source: Source, head: str | None, before: RepositoryFigures | None = None) -> RepositoryFigures:
    """Return the figures of a git source at `head`; with those of an earlier run, only what changed is counted.

    Raises:
        SourceError: git cannot read the repository.
    """
    root = os.fsencode(source.path)
    shallow = git.run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    branches, tags = _names(root)
    if head is None:
        return RepositoryFigures(0, branches, tags, None, None, None, shallow)
    known = before if before and not (shallow or before.is_shallow) else None
    latest = git.run(root, "log", "-1", "--no-patch", "--encoding=UTF-8", "--format=%ct%x00%s", head)
    date, _, subject = latest.partition(b"\0")
    return RepositoryFigures(
        commits=_count(root, head, known),
        branches=branches,
        tags=tags,
        latest_commit=head,
        latest_date=_iso(date),
        latest_subject=decode(subject[: 4 * _LONGEST_SUBJECT]).text.strip()[:_LONGEST_SUBJECT],
        is_shallow=shallow,
    )


def _names(root: bytes) -> tuple[int, int]:
    """How many branches and tags there are; a branch counts once, however many remotes have it."""
    branches, tags = set(), 0
    for name in git.run(root, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags").split():
        tags += name.startswith(_TAGS)
        if name.startswith(_BRANCHES):
            branches.add(name.removeprefix(_BRANCHES))
        elif name.startswith(_REMOTES) and not name.endswith(b"/HEAD"):
            branches.add(name.removeprefix(_REMOTES).partition(b"/")[2])
    return len(branches), tags


def _count(root: bytes, head: str, known: RepositoryFigures | None) -> int:
    """Count the commits that `head` builds on: those of the known commit, less what went and with what came."""
    if known is not None and known.latest_commit is not None:
        both = f"{known.latest_commit}...{head}"
        sides = git.attempt(root, "rev-list", "--count", "--left-right", both, "--")
        if sides is not None:
            gone, new = map(int, sides.split())
            return known.commits - gone + new
    return int(git.run(root, "rev-list", "--count", head, "--"))


def _iso(seconds: bytes) -> str | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # what stands there is no date
        return None
