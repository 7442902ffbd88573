"""The git history of a repository: commits, the files and lines that they changed, and repository statistics.

A single pass over git's trees, without reading contents, finds commits and their files. The changed lines and their
functions come from git's patches, which are read as a stream. The log is read only as far as necessary.
"""

import json
import os
import re
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from docindex_dagster.core.errors import GitTimeoutError, SourceError
from docindex_dagster.core.git_folders import common_folder
from docindex_dagster.sources import git
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import read_regular
from docindex_dagster.sources.text import decode

# A merge counts only if it differs from all of its parents: unchanged files were changed in another commit.
# Set the handling of submodules explicitly, or an invalid .gitmodules would be an error.
_LOG = (
    *("log", "-z", "--format=/%H", "--name-only", "--no-renames", "-c", "--no-relative", "--no-color"),
    *("--encoding=UTF-8", "--ignore-submodules=dirty"),
)
_MAX_SHALLOW_BYTES = 16 << 20  # bytes; each commit takes 41
_SETTINGS = (
    *("-c", f"core.attributesFile={Path(__file__).with_name('functions.gitattributes')}"),
    *("-c", "core.bigFileThreshold=1m"),  # treat larger files as binary: git would load both versions to compare them
)
_PATCHES = (
    *("diff-tree", "--stdin", "--root", "-r", "--patch", "--unified=0", "--find-renames=100%", "--format=/%H"),
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "--diff-algorithm=myers"),
    "--encoding=UTF-8",  # also applies to the ids
    "--ignore-submodules=dirty",  # or an invalid .gitmodules would be an error
)
# Only these lines start like this: lines of file content have a leading sign.
_LINE = re.compile(
    rb"^(?:/(?P<commit>[0-9a-f]{40,64})$|(?P<file>diff --git )|(?P<binary>Binary files )"
    rb"|@@ -\d+(?:,(?P<deletions>\d+))? \+\d+(?:,(?P<insertions>\d+))? @@ ?(?P<function>.*))",
    re.MULTILINE,
)
_MAX_FUNCTIONS = 8  # per file
# After this many commits with unreadable files, treat the repository as lacking its old files.
_MAX_FAILURES = 20
MAX_FILES_READ = 1000  # per commit; a larger commit imports other people's work

_FIELDS = "/%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%B"
_HEADS = (
    *("diff-tree", "--stdin", "--always", "--root", "-r", "-z", "--raw", "--find-renames=100%"),
    *("--encoding=UTF-8", "--no-relative", "--ignore-submodules=dirty", f"--format={_FIELDS}"),
)
# Key of the repository statistics in the metadata of a `commits` table.
REPOSITORY = b"docindex.repository"
_MAX_SUBJECT_LENGTH = 200
_BRANCHES, _REMOTES, _TAGS = b"refs/heads/", b"refs/remotes/", b"refs/tags/"


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a commit, before its lines are counted."""

    status: str
    path: bytes
    renamed_from: bytes | None

    @property
    def patches(self) -> int:
        """Number of patches that git writes: a file that becomes a symlink is deleted and created again."""
        return 2 if self.status == "T" else 1


@dataclass(frozen=True, slots=True)
class Head:
    """A commit without its patches."""

    fields: list[bytes]  # id, parents, author, email address, author date, commit date, message
    changes: list[Change]  # the first `MAX_FILES_READ`
    file_count: int

    @property
    def commit(self) -> str:
        """The commit id."""
        return self.fields[0].decode()


def heads(root: bytes, commits: Sequence[str]) -> Iterator[Head]:
    """Yield commits by id, in git's order; merges have no files.

    Raises:
        SourceError: git cannot read them.
    """
    shallow = _is_shallow(root)
    # At the boundary of a shallow clone, a commit seems to add every file.
    options = [option for option in _HEADS if not (shallow and option == "--root")]
    records = git.records(root, *options, lines=commits)
    record = next(records, None)
    while record is not None:
        fields = [record[1:], *islice(records, _FIELDS.count("%x00"))]
        changes: list[Change] = []
        number = 0
        while (record := next(records, None)) is not None and not record.startswith(b"/"):
            status = record.rpartition(b" ")[2][:1].decode()
            paths = list(islice(records, 2 if status == "R" else 1))
            if number < MAX_FILES_READ:
                changes.append(Change(status, paths[-1], paths[0] if len(paths) > 1 else None))
            number += 1
        yield Head(fields, changes, number)


@dataclass(slots=True)
class FileHunks:
    """The changed lines of one patch (None if git does not compare them), and the functions around them."""

    insertions: int | None = 0
    deletions: int | None = 0
    functions: list[bytes] = field(default_factory=list)


def read_hunks(root: bytes, commits: Sequence[str]) -> Iterator[tuple[str, list[FileHunks]]]:
    """Yield the patches of each commit, in git's file order; skip commits that lack a file.

    Raises:
        GitTimeoutError: git does not respond.
    """
    remaining, failures = list(commits), 0
    while remaining and failures < _MAX_FAILURES:
        current: str | None = None
        patches: list[FileHunks] = []
        try:
            with closing(_lines(root, remaining)) as lines:
                for line in lines:
                    if line["commit"]:
                        if current:
                            yield current, patches
                        current, patches = line["commit"].decode(), []
                    elif line["file"]:
                        patches.append(FileHunks())
                    else:
                        _add(patches[-1], line)
            if current:
                yield current, patches
            remaining = []
        except GitTimeoutError:
            raise
        except SourceError:  # git stops at a missing file: continue after that commit
            failures += 1
            remaining = remaining[remaining.index(current) + 1 if current in remaining else 1 :]


def _lines(root: bytes, commits: Sequence[str]) -> Generator[re.Match[bytes], None, None]:
    """Yield the lines that matter, holding only a block and its last line in memory, however large the patch."""
    rest = b""
    with closing(git.stream(root, *_SETTINGS, *_PATCHES, lines=commits)) as blocks:
        for block in blocks:
            complete, newline, rest = (rest + block).rpartition(b"\n")
            yield from _LINE.finditer(complete + newline)
    yield from _LINE.finditer(rest)


def _add(patch: FileHunks, line: re.Match[bytes]) -> None:
    if line["binary"]:
        patch.insertions = patch.deletions = None
    elif patch.insertions is not None and patch.deletions is not None:
        patch.insertions += int(line["insertions"] or 1)
        patch.deletions += int(line["deletions"] or 1)
        function = line["function"].strip()
        if function and function not in patch.functions and len(patch.functions) < _MAX_FUNCTIONS:
            patch.functions.append(function)


def last_commits(root: bytes, head: str, paths: Collection[bytes]) -> dict[bytes, str]:
    """Return the newest commit up to `head` that changed each path, reading the log until all paths are found.

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
    """Return the paths changed by commits reachable from only one of two commits; None if git does not know them.

    The last commit of any other path is the same for both. The exception: committers' clocks so wrong that a merge of
    older work makes git list two of its commits in reverse order.

    Raises:
        GitTimeoutError: git does not respond.
    """
    try:
        return {path for _, path in _changes(root, f"{old}...{new}")}
    except GitTimeoutError:
        raise
    except SourceError:  # the commit behind the table no longer exists
        return None


def shallow_end(root: bytes) -> bytes:
    """Return the boundary commits of a shallow clone, as git records them; empty for other clones."""
    try:
        return read_regular(common_folder(Path(os.fsdecode(root))) / "shallow", _MAX_SHALLOW_BYTES)
    except OSError:
        return b""


def _is_shallow(root: bytes) -> bool:
    return git.run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"


def _changes(root: bytes, revisions: str) -> Generator[tuple[str, bytes], None, None]:
    """Yield (commit, path), newest first.

    A record with a leading slash is a commit id, since no path starts with one. Names follow: for a plain commit, the
    first comes after a newline; for a merge, after an empty record.
    """
    commit, is_first = "", False
    for record in git.records(root, *_LOG, revisions, "--"):
        if record.startswith(b"/"):
            commit, is_first = record[1:].decode(), True
            continue
        if record:
            yield commit, record[1:] if is_first else record
        is_first = False


@dataclass(frozen=True, slots=True)
class RepositoryStatistics:
    """The size of a repository and its latest commit, which is None before the first commit."""

    commits: int  # reachable from the latest commit, including it
    branches: int  # distinct names, local or in a remote
    tags: int
    latest_commit: str | None
    latest_date: str | None  # UTC, ISO 8601
    latest_subject: str | None
    is_shallow: bool


def to_json(figures: RepositoryStatistics) -> str:
    """Serialize the statistics for the metadata of a table."""
    return json.dumps(asdict(figures))


def from_json(text: str | bytes | None) -> RepositoryStatistics | None:
    """Parse the output of `to_json`; return None if it is missing or was written by another version."""
    try:
        return RepositoryStatistics(**json.loads(text)) if text else None
    except (TypeError, ValueError):
        return None


def read_statistics(
    source: Source, head: str | None, before: RepositoryStatistics | None = None
) -> RepositoryStatistics:
    """Return the statistics of a git source at `head`; with those of an earlier run, count only what changed.

    Raises:
        SourceError: git cannot read the repository.
    """
    root = os.fsencode(source.path)
    shallow = _is_shallow(root)
    branches, tags = _count_refs(root)
    if head is None:
        return RepositoryStatistics(0, branches, tags, None, None, None, shallow)
    known = before if before and not (shallow or before.is_shallow) else None
    latest = git.run(root, "log", "-1", "--no-patch", "--encoding=UTF-8", "--format=%ct%x00%s", head)
    date, _, subject = latest.partition(b"\0")
    return RepositoryStatistics(
        commits=_count_commits(root, head, known),
        branches=branches,
        tags=tags,
        latest_commit=head,
        latest_date=_iso(date),
        latest_subject=decode(subject[: 4 * _MAX_SUBJECT_LENGTH]).text.strip()[:_MAX_SUBJECT_LENGTH],
        is_shallow=shallow,
    )


def _count_refs(root: bytes) -> tuple[int, int]:
    """Return the number of branches and tags; a branch counts once, however many remotes have it."""
    branches, tags = set(), 0
    for name in git.run(root, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags").split():
        tags += name.startswith(_TAGS)
        if name.startswith(_BRANCHES):
            branches.add(name.removeprefix(_BRANCHES))
        elif name.startswith(_REMOTES) and not name.endswith(b"/HEAD"):
            branches.add(name.removeprefix(_REMOTES).partition(b"/")[2])
    return len(branches), tags


def _count_commits(root: bytes, head: str, known: RepositoryStatistics | None) -> int:
    """Count the commits reachable from `head`: the known count, minus commits lost, plus commits gained."""
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
    except (ValueError, OverflowError, OSError):  # not a valid date
        return None
