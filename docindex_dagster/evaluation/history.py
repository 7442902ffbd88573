"""Questions of a repository's own history: what a commit says it does, and the files that it changed.

They are of the newest commits of which the index is made, so whatever learns from history has to learn from the commits
before them. A commit is indexed, too, and so is what a change log says of it: neither may answer the question that it
is. Searches leave out commits, and hits in documents that say what changed do not count (`questions.py`).

Commits by bots are left out, and so are subjects that would fit any change, or that say what was done to the files
rather than what they are about.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from docindex_dagster.evaluation.questions import IndexedFile, Question, Target, is_account, most_common
from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.sources import git
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.history import Head, heads
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from docindex_dagster.sources.secrets import find_secrets
from docindex_dagster.sources.text import decode
from docindex_dagster.stores.analysis import terms

_FEWEST_WORDS = 3
_LONGEST = 200  # characters of a question
_LONGEST_SUBJECT = 300
_CUT = ("\u2026", "...")  # by what shortens long titles
_EDGES = " \t-\u2013\u2014:;,.*!/|"  # dashes among them

_PROGRAM = re.compile(
    r"""
    # By their names
      \[bot\] | (?:\b|_)bot\b | \bautomation\b | \bnoreply@
    # That update what a project needs, build and mend, translate
    | dependabot | renovate | greenkeeper | snyk.?bot | all-?contributors
    | github.?actions?\b | pre-commit | travis.?ci | semantic-release | mergify | imgbot | autofix
    | weblate | transifex | crowdin
    """,
    re.IGNORECASE | re.VERBOSE,
)

_SIGNS = re.compile(r"^(?::[a-z0-9_+-]{2,40}:\s*)+|[\u2190-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]")  # :bug:, emoji
_BRACKETS = re.compile(  # [docs]; but [ci] and [test] say that there is no question
    r"^(?:\[(?!ci\b|tests?\b)[^\]]{1,40}\]\s*)+|\[(?:skip[- ]\w+|\w+ skip)\]", re.IGNORECASE
)
_NUMBERS = re.compile(
    r"""
    # #12, owner/name#12, GH-12, and the words before: closes #12 and #13
      \(?(?:\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|references?|see|re|part\ of|for|from|issues?|pr
             |pull\ request|bug|ticket|cc)\b[\s:,-]*)*(?:\b(?:and|issues?|pr|tickets?)\s+)?
        (?:[\w.-]+/[\w.-]+|\bgh)?[-#]?\#\d+\)?
    | [(\[]?\bgh-\d+[)\]]? | \[\#\d+\]
    # GitHub issue 12, ABC-12, addresses
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
_LEFT_EMPTY = re.compile(r"\(\s*[,;&]?\s*\)|`")  # parentheses; and marks of code
# `fix(router): …` of Conventional Commits: what the change is about is in the brackets.
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
    # Its type
      ^(?:chore|build|ci|style|release|wip|tests?|lint|deps?|revert)\s?(?:\([^)]*\))?!?\s*:
    # Versions
    | ^(?:version|v\.?|prepare|release)?\s*\d+\.\d+ | ^(?:version|v\.?)\s*\d | \bto\ (?:version\ )?v?\d+(?:\.\d+)*$
    | \b(?:re-?)?bump(?:s|ed|ing)?\b | ^\[?releas(?:e[sd]?|ing)\b | ^start\ (?:of\ )?\d
    | \brelease\ (?:notes?|posts?|process|scripts?|version|candidate) | ^prepare\b.*\b(?:release|version|development)
    | ^(?:update|set|increment|change)\ (?:the\ )?version | \bversion\ (?:number|bump)\b
    # What the project needs, and what builds it
    | ^upgrad(?:e[sd]?|ing)\b | ^(?:update|upgrade|pin|renovate)\b.*\b(?:to\ v?\d[\w.]*|lockfile|submodules?)
    | \b(?:update|upgrade|pin|add|drop|remove|fix)\w*\b.*\bdepend[ae]nc(?:y|ies)\b | \bdeps\b | dependabot | renovate
    | \b(?:ci|travis|appveyor|codecov|coveralls?|circleci|build\ failure)\b
    | \bgithub\ (?:workflows?|actions?)\b | ^(?:\w+\ )?workflows?\b
    # How commits come together
    | ^merged?\b | \bmerge\ conflicts?\b | ^fix(?:\ up)?\ merge\b | ^(?:partial\w*\ )?revert\w*\b | ^reappl\w+\b
    | ^rebased?\b | \bback-?port\w* | \bcherry.?pick\w*\b | \bfix-?ups?\b | ^(?:squash|amend)! | \bwip\b | \bw?h?oops\b
    | ^(?:initial|first)\ commit | \bpull\ request\b | \breview\ (?:comments?|feedback)\b | \bcode\ review\b
    | \baddress(?:es|ed)?\ (?:\w+\ )?(?:review|comments?|feedback)\b
    # How it is written
    | \b(?:typos?|misspell\w*|spelling|grammar|white.?spaces?|newlines?\ at|nits?|nfc|tidy|cosmetic\w*|pep.?8)\b
    | \b{_TOOLS}\b | \b(?:run|ran|apply|applied)\ (?:black|ruff|format\w*)\b | \bcode.?styles?\b | \breformat\w*
    | ^(?:fix|correct)\w*\ (?:the\ )?(?:format|indent)\w* | ^(?:re)?format(?:ting|ted)?\ (?:code|files?)\b
    | ^(?:\w+\ ){{0,2}}formatting$ | ^formatting\b | \bcompiler\ warnings?\b
    | \b(?:fix|silence|suppress|avoid|remove|address|eliminate|resolve|clean)\w*\ (?:\S+\ ){{0,3}}warnings?\b
    | ^(?:add|fix|update|improve|remove|clarify|correct|tweak|delete)\w*
        \ (?:(?:an?|the|some|more|code|\w+ed)\ )*comments?\b
    # What speaks of the project
    | \b(?:change-?\ ?logs?|readmes?|copyright|licen[cs]es?|contributors?|badges?|gitignore|todos?)\b | ^thanks\b
    | ^(?:update|edit|tidy|add)\w*\ (?:the\ )?(?:changes|news|authors|history)\b
    # What forges suggest, and what says nothing
    | ^(?:update|create|delete|add|rename|edit)\ \S+\.\w+$ | ^(?:cleanup|clean\ up|updates?|fix(?:es|ed)?|changes)$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OF_TESTS = re.compile(r"\b(?:tests?|testing|specs)\b", re.IGNORECASE)
MOST_FILES = 10  # of a commit; a larger one has no subject that says where each of its changes is
_ANSWERING = frozenset({"code", "doc"})  # tests and settings change beside what a question is about
_FOR_TESTS = re.compile(r"(?:^|/)(?:tests?|testdata|test[-_]data|fixtures?|specs?)/", re.IGNORECASE)
_ID = 12  # characters of a commit's
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LAST_SECOND = 253_402_300_799  # of the year 9999
_BYTES = 4096  # of a message that are looked at: its subject


def is_of_program(author: str) -> bool:
    """Whether a program made a commit, by the name and the address of its author."""
    return _PROGRAM.search(author) is not None


def question_of(message: str) -> str | None:
    """What the subject of a commit's message asks for; None where it says too little of the change."""
    subject = " ".join(message.partition("\n\n")[0].split())
    if len(subject) > _LONGEST_SUBJECT or subject.endswith(_CUT):
        return None
    text = subject
    for noise in (_SIGNS, _BRACKETS, _NUMBERS, _THANKS):
        text = noise.sub(" ", text).strip()
    text = " ".join(_LEFT_EMPTY.sub("", text).split()).strip(_EDGES)
    of_type = _TYPE.match(text)
    if of_type is not None and not _CHORE.search(text):
        text = " ".join(filter(None, (of_type["scope"], text[of_type.end() :]))).strip(_EDGES)
    words = {term for term in terms(text) if term not in FUNCTION_WORDS and not term.isdigit()}
    return text if len(words) >= _FEWEST_WORDS and len(text) <= _LONGEST and not _CHORE.search(text) else None


def speaks_of_tests(question: str) -> bool:
    """Whether a question is about tests: no other is answered by them."""
    return _OF_TESTS.search(question) is not None


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
