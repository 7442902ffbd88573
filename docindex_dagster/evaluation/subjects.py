"""Which commits say what they changed, and what they ask for: the questions of `docindex evaluate` and of training.

Not those of programs, and none by a phrase that would fit any change, or that says what was done to the files rather
than what they are about.
"""

import re

from docindex_dagster.search.query import FUNCTION_WORDS
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
