"""The subject of a commit as a question: without what only says which commit it is, or not at all."""

import re

# Not people: what they write is the same a thousand times.
_BOT = re.compile(
    r"\[bot\]|\bbot\b|dependabot|renovate|greenkeeper|snyk|pre-commit|github.actions|semantic-release|weblate|transifex|"
    r"travis|mergify|all-?contributors|imgbot|autofix|crowdin",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"^(?:feat(?:ure)?|fix(?:e[sd])?|bug ?fix|docs?|chore|refactor(?:ing)?|perf|tests?|build|ci|style|types?|lint|"
    r"deps?|core|enhancement|cleanup|misc|internal|breaking|security|hotfix|major|minor|patch|improvement|bench)"
    r"(?: ?\([^()]{1,60}\))?!?\s*:\s+",
    re.IGNORECASE,
)
_SIGNS = re.compile(r":[a-z0-9_+-]{2,40}:(?=\s|$)")  # :bug:
_BRACKETS = re.compile(
    r"^(?:\[[^\]]{1,40}\]\s*)+|\[(?:skip ci|ci skip|skip[- ]\w+|\w+ skip)\]",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"\(?(?:\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|references?|see|re|part of|for|from|issues?|pr|"
    r"pull request|bug|ticket|cc)\b[\s:,-]*)*(?:\b(?:and|issues?|pr|tickets?)\s+)?"
    r"(?:[\w.-]+/[\w.-]+|\bgh)?[-#]?#\d+\)?|"
    r"\(?\bgh-\d+\)?|[,\s]*\(?(?:github )?(?:issues?|pr|pull request) \d+\)?|https?://\S+",
    re.IGNORECASE,
)
_TICKET = re.compile(r"^[A-Z]{2,10}-\d+\b")
_PERSON = r"(?:@\w+|[A-Z][\w-]+ [A-Z][\w-]+|[\w.-]+ at [\w.-]+)"
_THANKS = re.compile(
    r"[\s,;(]*\b(?i:thanks|thank you|thx)\b.*$|"
    r"[\s,;(]*\b(?i:(?:bug )?(?:reported|spotted|found|noticed|pointed out|suggested|requested)"
    rf"(?: by| from| in part by)*) {_PERSON}.*$|"
    rf"\s*[,;(]\s*(?i:from|based on|by|ok|prompted by) {_PERSON}.*$"
)
_EMPTY_PARENTHESES = re.compile(r"\(\s*[,;&]?\s*\)")
_EDGES = " \t-\u2013\u2014:;,.*!/|"  # dashes among them
# What was done to the files, and not what they are about.
_CHORE = re.compile(
    r"\b(?:typos?|wip|fixups?|squash|lint(?:s|er|ers|ing)?|rubocop|eslint|prettier|gofmt|go fmt|rustfmt|fmt|scalafmt|"
    r"black|isort|white ?spaces?|newlines? at end|indent(?:ation|ing)?|bump(?:s|ed|ing)?|change ?logs?|releases?|"
    r"copyright|licen[cs]es?|code ?styles?|formatting|reformat\w*|pep ?8|flake8|pylint|mypy|clippy|phpstan|psalm|phpcs|"
    r"checkstyle|sonar\w*|travis|appveyor|codecov|coveralls?|circleci|(?:github )?workflows?|github actions?|"
    r"dependabot|renovate|pre-commit|dependenc(?:y|ies)|deps|nits?|"
    r"address(?:es|ed)? (?:review|comments?|feedback|pr)|review (?:comments?|feedback)|code review|feedback|merge[sd]?|"
    r"revert(?:s|ed|ing)?|rebase[sd]?|back-?port\w*|cherry.?pick\w*|upgrade[sd]?|version (?:number|bump)|contributors?|"
    r"authors|gitignore|readme|badges?|todos?|spelling|grammar|pull request|oops|whoops|build failure|ci|"
    r"(?:compiler )?warnings?|cosmetic\w*|(?:un)?comment(?:ed|s)?|tidy|nfc)\b",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"^(?:version |release |prepare |v)?\d+\.\d+|\bto (?:version )?v?\d+\.\d+(?:\.\d+)*$|^\W*(?:\d+\W*)*$",
    re.IGNORECASE,
)
_LONGEST = 300  # characters of a subject that is one
_CUT = ("\u2026", "...")  # by what shortens long titles


def is_bot(author: str) -> bool:
    """Whether a name with its address is one of a program."""
    return _BOT.search(author) is not None


def question_of(subject: str) -> str | None:
    """A subject as a question; None where it says nothing of the files."""
    text = _BRACKETS.sub("", _SIGNS.sub(" ", subject[: _LONGEST + 1].strip())).strip()
    if len(subject) > _LONGEST or text.endswith(_CUT) or _CHORE.search(text) or _VERSION.search(text):
        return None
    text = _KIND.sub("", text.lstrip(_EDGES))
    for noise in (_TICKET, _NUMBERS, _THANKS, _EMPTY_PARENTHESES):
        text = noise.sub(" ", text)
    text = "".join(char for char in text if char.isascii() or char.isalpha())  # signs such as emoji
    return " ".join(text.replace("`", "").split()).strip(_EDGES) or None
