"""Questions of a repository's own history: what a commit says it does, and the files that it changed.

They are of the newest commits of which the index is made, so whatever learns from history has to learn from the commits
before them. A commit is indexed, too, and so is what a change log says of it: neither may answer the question that it
is. Searches leave out commits, and hits in documents that say what changed do not count (`indexed_files.py`).
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from docindex_dagster.evaluation.indexed_files import IndexedFile, is_account
from docindex_dagster.evaluation.questions import Question, Target, most_common
from docindex_dagster.evaluation.subjects import is_of_program, question_of, speaks_of_tests
from docindex_dagster.sources import git
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.history import Head, heads
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from docindex_dagster.sources.secrets import find_secrets
from docindex_dagster.sources.text import decode

MOST_FILES = 10  # of a commit; a larger one has no subject that says where each of its changes is
_ANSWERING = frozenset({"code", "doc"})  # tests and settings change beside what a question is about
_FOR_TESTS = re.compile(r"(?:^|/)(?:tests?|testdata|test[-_]data|fixtures?|specs?)/", re.IGNORECASE)
_ID = 12  # characters of a commit's
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LAST_SECOND = 253_402_300_799  # of the year 9999
_BYTES = 4096  # of a message that are looked at: its subject


@dataclass(frozen=True, slots=True)
class History:
    """The questions of a source, newest first, and what was read for them."""

    source: str
    questions: Sequence[Question]
    commits: int  # that were read
    oldest: int | None  # of those, seconds since 1970
    newest: int | None


def read_history(source: Source, head: str, files: Mapping[str, IndexedFile], most: int) -> History:
    """The questions of the newest commits of a source, which are read one by one; merges are none.

    Args:
        source: a git source.
        head: the commit that is indexed.
        files: what is indexed of it.
        most: how many commits to read.

    Raises:
        SourceError: git cannot read the history.
    """
    root = os.fsencode(source.path)
    listed = git.run(root, "rev-list", "--no-merges", f"--max-count={most}", head, "--")
    commits = listed.decode("ascii").split()
    names = _Names()
    found: list[Question] = []
    times: list[int] = []
    for commit in heads(root, commits):
        authored = commit.fields[4]
        times += [int(authored)] if authored.isdigit() else []
        changed = names.changed(commit)
        question = _question(source, commit, changed, files)
        found += [] if question is None else [question]
    return History(source.key, _distinct(found), len(commits), min(times, default=None), max(times, default=None))


class _Names:
    """What files are called now, as renames are seen from the newest commit to the oldest."""

    def __init__(self) -> None:
        self._now: dict[bytes, bytes] = {}

    def changed(self, commit: Head) -> list[str]:
        """The present names of the files that a commit changed or added, as tables write them."""
        for change in commit.changes:
            if change.renamed_from is not None:
                self._now[change.renamed_from] = self._now.get(change.path, change.path)
        kept = [change for change in commit.changes if change.status in {"A", "M"}]
        names = [path_to_name(self._now.get(change.path, change.path)) for change in kept]
        for change in kept:
            if change.status == "A":  # what had this name before it was another file
                self._now.pop(change.path, None)
        return sorted({*names})


def _question(
    source: Source, commit: Head, changed: Sequence[str], files: Mapping[str, IndexedFile]
) -> Question | None:
    """The question of a commit; None where it is of no use: see docs/evaluation.md."""
    if commit.file_count > MOST_FILES or not changed:
        return None
    answers = [path for path in changed if _may_answer(path, files)]
    if not answers or not all(path in files for path in answers):
        return None
    _, _, author, email, _, _, message = commit.fields
    if is_of_program(f"{decode(author).text} <{decode(email).text}>"):
        return None
    text = question_of(decode(message[:_BYTES]).text)
    if text is None or speaks_of_tests(text) or (source.secrets == "skip" and find_secrets(text)):
        return None
    return Question(
        f"{source.key}@{commit.commit[:_ID]}",
        text,
        tuple(Target(source.key, path) for path in answers),
        most_common(files[path].language for path in answers),
        (source.key,),
        is_of_history=True,
    )


def _may_answer(path: str, files: Mapping[str, IndexedFile]) -> bool:
    if path in files:
        source_type = files[path].source_type
    else:  # gone, or not wanted in the index: by its name alone
        kind = classify_name(name_to_path(path))
        source_type = kind.source_type if kind is not None else ""
    is_data = source_type == "doc" and _FOR_TESTS.search(path) is not None  # which tests read
    return source_type in _ANSWERING and not is_data and not is_account(path, source_type)


def _distinct(questions: Sequence[Question]) -> list[Question]:
    """Those whose text no other commit has: what is said twice does not tell the two apart."""
    counts = Counter(question.text.casefold() for question in questions)
    return [question for question in questions if counts[question.text.casefold()] == 1]


def indexed_commit(source: Source, revision: str | None) -> str | None:
    """The commit of which the index of a git source is made; None before the first.

    Args:
        source: a git source.
        revision: what the index names: that commit, or the version that the settings give, where HEAD is taken.

    Raises:
        SourceError: git cannot be asked.
    """
    root = os.fsencode(source.path)
    name = revision if revision is not None and _COMMIT.fullmatch(revision) else "HEAD"
    found = git.attempt(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return None if found is None else found.decode("ascii").strip()


def sentence(history: History, asked: int) -> str:
    """Where the questions of a source are from."""
    made = f"{asked:,} of {len(history.questions):,} questions of the newest {history.commits:,} commits"
    if history.oldest is None or history.newest is None:
        return f"{history.source}: {made}"
    return f"{history.source}: {made}, {_day(history.oldest)} to {_day(history.newest)}"


def _day(moment: int) -> str:
    """The day of a moment, in UTC."""
    return datetime.fromtimestamp(min(moment, _LAST_SECOND), UTC).date().isoformat()
