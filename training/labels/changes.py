"""Questions that the history answers: what a change is called, and the files that it changed."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from docindex_dagster.evaluation.history import is_about_tests, is_bot, question_of
from training.labels.checkout import Checkout
from training.labels.history import Commit, commits_of
from training.labels.questions import Category, Question, content_words, is_worth_asking

_MOST_FILES = 5  # that a change may touch: it is about one thing
_MOST_TARGETS = 3
_LEAST_SHARE = 0.5  # of what was changed that is still there
_NEWEST = 1500  # questions: older ones speak of code that was rewritten since
_PULL_REQUEST = re.compile(r"Merge (?:pull request|PR) #\d+|Merged? #\d+|Merge branch '.+' of .*#\d+", re.IGNORECASE)


def questions_of_commits(mirror: Path, revision: str, checkout: Checkout) -> Iterator[Question]:
    """What the subjects of commits ask for, newest first.

    Raises:
        CalledProcessError: git cannot read the history.
    """
    commits = commits_of(mirror, revision, merges=False)
    return _newest(commits, "commit", lambda commit: commit.subject, checkout)


def questions_of_issues(mirror: Path, revision: str, checkout: Checkout) -> Iterator[Question]:
    """What the titles of merged pull requests ask for, newest first.

    Raises:
        CalledProcessError: git cannot read the history.
    """
    return _newest(commits_of(mirror, revision, merges=True), "issue", _title, checkout)


def _newest(
    commits: Iterator[Commit], category: Category, text_of: Callable[[Commit], str], checkout: Checkout
) -> Iterator[Question]:
    found = (_question(commit, category, text_of(commit), checkout) for commit in commits)
    return islice((question for question in found if question), _NEWEST)


def _title(merge: Commit) -> str:
    """What a host writes below the first line of a merge: the title of the pull request."""
    lines = [line.strip() for line in merge.body.splitlines() if line.strip()]
    return lines[0] if lines and _PULL_REQUEST.match(merge.subject) else ""


def _question(commit: Commit, category: Category, text: str, checkout: Checkout) -> Question | None:
    query = question_of(text)
    if query is None or is_bot(commit.author) or not 0 < len(commit.changes) <= _MOST_FILES:
        return None
    if all(change.status.startswith(("R100", "C", "D")) for change in commit.changes):
        return None
    targets = _targets(commit, query, checkout)
    question = Question(query, category, tuple(sorted(targets)))
    return (
        question
        if 0 < len(targets) <= _MOST_TARGETS and is_worth_asking(question) and _is_about(question, checkout)
        else None
    )


def _targets(commit: Commit, query: str, checkout: Checkout) -> set[str]:
    """The files that a change is about: not its tests, unless it is about tests, nor what every change touches."""
    changed = {change.path for change in commit.changes if not change.status.startswith("D")}
    wanted = {path for path in changed if checkout.is_content(path)}
    present = {path for path in wanted if path in checkout.files}
    if len(present) < _LEAST_SHARE * len(wanted):
        return set()
    if is_about_tests(query):
        return present
    return {path for path in present if not checkout.is_test(path)}


def _is_about(question: Question, checkout: Checkout) -> bool:
    """Whether each file still has a word of the question: one without was about something else when it was changed."""
    asked = content_words(question.query)
    return all(asked & checkout.words(path) for path in question.targets)
