"""Questions from a repository's own history: commit subjects, answered by the files that each commit changed.

They come from the newest indexed commits, so whatever learns from history must learn from earlier commits. Commits are
indexed too, and so are change logs that repeat their subjects. Neither may answer the question: searches leave out
commits, and hits in documents that report changes do not count (`questions.py`).

Commits by bots are skipped. So are subjects that would fit any change, or that say what was done to the files rather
than what they are about.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from docindex_dagster.evaluation.questions import IndexedFile, Question, Target, is_change_log, most_common
from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.sources import git
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.history import Head, heads
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from docindex_dagster.sources.secrets import find_secrets
from docindex_dagster.sources.text import decode
from docindex_dagster.stores.analysis import terms

_MIN_WORDS = 3
_MAX_LENGTH = 200  # characters of a question
_MAX_SUBJECT_LENGTH = 300
_TRUNCATION_MARKS = ("\u2026", "...")  # endings of shortened titles
_EDGES = " \t-\u2013\u2014:;,.*!/|"  # including dashes

_BOT = re.compile(
    r"""
    # Bots, by name
      \[bot\] | (?:\b|_)bot\b | \bautomation\b | \bnoreply@
    # Bots that update dependencies, build, fix and translate
    | dependabot | renovate | greenkeeper | snyk.?bot | all-?contributors
    | github.?actions?\b | pre-commit | travis.?ci | semantic-release | mergify | imgbot | autofix
    | weblate | transifex | crowdin
    """,
    re.IGNORECASE | re.VERBOSE,
)

_EMOJI = re.compile(r"^(?::[a-z0-9_+-]{2,40}:\s*)+|[\u2190-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]")  # :bug:, emoji
_BRACKETS = re.compile(  # [docs]; but [ci] and [test] stay, since they mark chores
    r"^(?:\[(?!ci\b|tests?\b)[^\]]{1,40}\]\s*)+|\[(?:skip[- ]\w+|\w+ skip)\]", re.IGNORECASE
)
_NUMBERS = re.compile(
    r"""
    # #12, owner/name#12, GH-12, with preceding words: closes #12 and #13
      \(?(?:\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|references?|see|re|part\ of|for|from|issues?|pr
             |pull\ request|bug|ticket|cc)\b[\s:,-]*)*(?:\b(?:and|issues?|pr|tickets?)\s+)?
        (?:[\w.-]+/[\w.-]+|\bgh)?[-#]?\#\d+\)?
    | [(\[]?\bgh-\d+[)\]]? | \[\#\d+\]
    # GitHub issue 12, ABC-12, URLs
    | [,\s]*\(?(?:github\ )?(?:issues?|pr|pull\ request)\ \d+\)?
    | ^(?-i:(?:(?!UTF|SHA|ISO|RFC|CVE)[A-Z]{2,10}-\d+\b[,:\s]*)+)
    | https?://\S+
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PERSON = r"(?:@\w+|[A-Z][\w-]+\ [A-Z][\w-]+|[\w.-]+\ at\ [\w.-]+)"
_THANKS = re.compile(
    rf"""
      [\s,;(]*\b(?i:thanks|thank\ you|thx)\b.*$
    | [\s,;(]*\b(?i:(?:bug\ )?(?:reported|spotted|found|noticed|pointed\ out|suggested|requested)
        (?:\ by|\ from|\ in\ part\ by)*)\ {_PERSON}.*$
    | \s*[,;(]\s*(?i:from|based\ on|by|ok|prompted\ by)\ {_PERSON}.*$
    """,
    re.VERBOSE,
)
_LEFT_EMPTY = re.compile(r"\(\s*[,;&]?\s*\)|`")  # empty parentheses, and code markup
# `fix(router): …` of Conventional Commits: the topic of the change is in the parentheses.
_TYPE = re.compile(
    r"""
    ^(?:feat(?:ure)?|(?:bug\ ?|hot)?fix(?:e[sd])?|perf|refactor(?:ing)?|docs?|types?|core|bench|security|enhancement
       |improvement|cleanup|misc|internal|breaking|major|minor|patch)
    \s?(?:\((?P<scope>[^()]{0,60})\))?!?\s*:\s*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TOOLS = (
    r"(?:(?:go|es|ts|py|style)?lint(?:s|er|ers|ing)?|rubocop|prettier|gofmt|go\ fmt|rustfmt|scalafmt|"
    r"clang-(?:format|tidy)|isort|flake8|pylint|mypy|clippy|phpstan|psalm|phpcs|checkstyle|sonar\w*|spotless|pre-commit)"
)
_CHORE = re.compile(
    rf"""
    # Commit types
      ^(?:chore|build|ci|style|release|wip|tests?|lint|deps?|revert)\s?(?:\([^)]*\))?!?\s*:
    # Versions
    | ^(?:version|v\.?|prepare|release)?\s*\d+\.\d+ | ^(?:version|v\.?)\s*\d | \bto\ (?:version\ )?v?\d+(?:\.\d+)*$
    | \b(?:re-?)?bump(?:s|ed|ing)?\b | ^\[?releas(?:e[sd]?|ing)\b | ^start\ (?:of\ )?\d
    | \brelease\ (?:notes?|posts?|process|scripts?|version|candidate) | ^prepare\b.*\b(?:release|version|development)
    | ^(?:update|set|increment|change)\ (?:the\ )?version | \bversion\ (?:number|bump)\b
    # Dependencies and builds
    | ^upgrad(?:e[sd]?|ing)\b | ^(?:update|upgrade|pin|renovate)\b.*\b(?:to\ v?\d[\w.]*|lockfile|submodules?)
    | \b(?:update|upgrade|pin|add|drop|remove|fix)\w*\b.*\bdepend[ae]nc(?:y|ies)\b | \bdeps\b | dependabot | renovate
    | \b(?:ci|travis|appveyor|codecov|coveralls?|circleci|build\ failure)\b
    | \bgithub\ (?:workflows?|actions?)\b | ^(?:\w+\ )?workflows?\b
    # Merges, reverts and reviews
    | ^merged?\b | \bmerge\ conflicts?\b | ^fix(?:\ up)?\ merge\b | ^(?:partial\w*\ )?revert\w*\b | ^reappl\w+\b
    | ^rebased?\b | \bback-?port\w* | \bcherry.?pick\w*\b | \bfix-?ups?\b | ^(?:squash|amend)! | \bwip\b | \bw?h?oops\b
    | ^(?:initial|first)\ commit | \bpull\ request\b | \breview\ (?:comments?|feedback)\b | \bcode\ review\b
    | \baddress(?:es|ed)?\ (?:\w+\ )?(?:review|comments?|feedback)\b
    # Formatting and spelling
    | \b(?:typos?|misspell\w*|spelling|grammar|white.?spaces?|newlines?\ at|nits?|nfc|tidy|cosmetic\w*|pep.?8)\b
    | \b{_TOOLS}\b | \b(?:run|ran|apply|applied)\ (?:black|ruff|format\w*)\b | \bcode.?styles?\b | \breformat\w*
    | ^(?:fix|correct)\w*\ (?:the\ )?(?:format|indent)\w* | ^(?:re)?format(?:ting|ted)?\ (?:code|files?)\b
    | ^(?:\w+\ ){{0,2}}formatting$ | ^formatting\b | \bcompiler\ warnings?\b
    | \b(?:fix|silence|suppress|avoid|remove|address|eliminate|resolve|clean)\w*\ (?:\S+\ ){{0,3}}warnings?\b
    | ^(?:add|fix|update|improve|remove|clarify|correct|tweak|delete)\w*
        \ (?:(?:an?|the|some|more|code|\w+ed)\ )*comments?\b
    # Project files
    | \b(?:change-?\ ?logs?|readmes?|copyright|licen[cs]es?|contributors?|badges?|gitignore|todos?)\b | ^thanks\b
    | ^(?:update|edit|tidy|add)\w*\ (?:the\ )?(?:changes|news|authors|history)\b
    # Default messages of forges, and messages without content
    | ^(?:update|create|delete|add|rename|edit)\ \S+\.\w+$ | ^(?:cleanup|clean\ up|updates?|fix(?:es|ed)?|changes)$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TEST_TOPIC = re.compile(r"\b(?:tests?|testing|specs)\b", re.IGNORECASE)
MOST_FILES = 10  # per commit; the subject of a larger commit does not describe each change
_ANSWERING = frozenset({"code", "doc"})  # tests and settings often change along with the topic of a question
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|testdata|test[-_]data|fixtures?|specs?)/", re.IGNORECASE)
_ID_LENGTH = 12  # characters of a commit ID
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LAST_SECOND = 253_402_300_799  # of the year 9999
_MAX_MESSAGE_BYTES = 4096  # of a message, enough for its subject


def is_bot(author: str) -> bool:
    """Return whether a bot made a commit, judging by the name and email address of its author."""
    return _BOT.search(author) is not None


def question_of(message: str) -> str | None:
    """Return the question that the subject of a commit message makes; None if it says too little about the change."""
    subject = " ".join(message.partition("\n\n")[0].split())
    if len(subject) > _MAX_SUBJECT_LENGTH or subject.endswith(_TRUNCATION_MARKS):
        return None
    text = subject
    for noise in (_EMOJI, _BRACKETS, _NUMBERS, _THANKS):
        text = noise.sub(" ", text).strip()
    text = " ".join(_LEFT_EMPTY.sub("", text).split()).strip(_EDGES)
    of_type = _TYPE.match(text)
    if of_type is not None and not _CHORE.search(text):
        text = " ".join(filter(None, (of_type["scope"], text[of_type.end() :]))).strip(_EDGES)
    words = {term for term in terms(text) if term not in FUNCTION_WORDS and not term.isdigit()}
    return text if len(words) >= _MIN_WORDS and len(text) <= _MAX_LENGTH and not _CHORE.search(text) else None


def is_about_tests(question: str) -> bool:
    """Return whether a question is about tests. Tests do not count as answers to other questions."""
    return _TEST_TOPIC.search(question) is not None


@dataclass(frozen=True, slots=True)
class History:
    """The questions of a source, newest first, and the commits that were read for them."""

    source: str
    questions: Sequence[Question]
    commits: int  # number of commits read
    oldest: int | None  # time of the oldest one, in seconds since 1970
    newest: int | None


def read_history(source: Source, head: str, files: Mapping[str, IndexedFile], most: int) -> History:
    """Return the questions of the newest commits of a source, except merges.

    Args:
        source: a git source.
        head: the indexed commit.
        files: the indexed files of the source.
        most: the number of commits to read.

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
    """The current names of files, following renames from the newest commit to the oldest."""

    def __init__(self) -> None:
        self._now: dict[bytes, bytes] = {}

    def changed(self, commit: Head) -> list[str]:
        """Return the current names of the files that a commit changed or added, as tables write them."""
        for change in commit.changes:
            if change.renamed_from is not None:
                self._now[change.renamed_from] = self._now.get(change.path, change.path)
        kept = [change for change in commit.changes if change.status in {"A", "M"}]
        names = [path_to_name(self._now.get(change.path, change.path)) for change in kept]
        for change in kept:
            if change.status == "A":  # an older file of this name was a different file
                self._now.pop(change.path, None)
        return sorted({*names})


def _question(
    source: Source, commit: Head, changed: Sequence[str], files: Mapping[str, IndexedFile]
) -> Question | None:
    """Return the question of a commit; None if it is not usable, see docs/how-to/evaluate-search.md."""
    if commit.file_count > MOST_FILES or not changed:
        return None
    answers = [path for path in changed if _may_answer(path, files)]
    if not answers or not all(path in files for path in answers):
        return None
    _, _, author, email, _, _, message = commit.fields
    if is_bot(f"{decode(author).text} <{decode(email).text}>"):
        return None
    text = question_of(decode(message[:_MAX_MESSAGE_BYTES]).text)
    if text is None or is_about_tests(text) or (source.secrets == "skip" and find_secrets(text)):
        return None
    return Question(
        f"{source.key}@{commit.commit[:_ID_LENGTH]}",
        text,
        tuple(Target(source.key, path) for path in answers),
        most_common(files[path].language for path in answers),
        (source.key,),
        is_of_history=True,
    )


def _may_answer(path: str, files: Mapping[str, IndexedFile]) -> bool:
    if path in files:
        source_type = files[path].source_type
    else:  # deleted, or not indexed: judge by the name alone
        kind = classify_name(name_to_path(path))
        source_type = kind.source_type if kind is not None else ""
    is_data = source_type == "doc" and _TEST_FOLDER.search(path) is not None  # test data
    return source_type in _ANSWERING and not is_data and not is_change_log(path, source_type)


def _distinct(questions: Sequence[Question]) -> list[Question]:
    """Return the questions whose text is unique, since a repeated subject does not tell its commits apart."""
    counts = Counter(question.text.casefold() for question in questions)
    return [question for question in questions if counts[question.text.casefold()] == 1]


def indexed_commit(source: Source, revision: str | None) -> str | None:
    """Return the indexed commit of a git source; None before the first one.

    Args:
        source: a git source.
        revision: the revision in the index: a commit, or the version in the settings, in which case HEAD is used.

    Raises:
        SourceError: git failed.
    """
    root = os.fsencode(source.path)
    name = revision if revision is not None and _COMMIT.fullmatch(revision) else "HEAD"
    git.safe_options(root)  # raises if `.git` belongs to another folder, perhaps only since the index was built
    found = git.attempt(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return None if found is None else found.decode("ascii").strip()


def sentence(history: History, asked: int) -> str:
    """Describe the origin of the questions of a source."""
    summary = f"{asked:,} of {len(history.questions):,} questions from the newest {history.commits:,} commits"
    if history.oldest is None or history.newest is None:
        return f"{history.source}: {summary}"
    return f"{history.source}: {summary}, {_day(history.oldest)} to {_day(history.newest)}"


def _day(moment: int) -> str:
    """Return the UTC date of a Unix time."""
    return datetime.fromtimestamp(min(moment, _LAST_SECOND), UTC).date().isoformat()
