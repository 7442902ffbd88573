"""Which commits say what they changed: not those of programs, and not by a phrase that would fit any change."""

import re

from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.stores.analysis import terms

_FEWEST_WORDS = 3
_LONGEST = 200  # characters of a subject
_TYPES = "feat|fix|perf|refactor|docs?|tests?|build|ci|chore|style|revert|wip|release"
# `fix(router): …` of Conventional Commits: what the change is about is in the brackets.
_TYPE = re.compile(rf"^(?:{_TYPES})(?:\((?P<scope>[^)]*)\))?!?:\s*", re.IGNORECASE)
# What a forge adds, and numbers of issues in front: `(#123)`, `[GH-12]`, `#123:`.
_NUMBERS = re.compile(r"\s*[(\[](?:[\w./-]*#|gh-|pr )\d+[)\]]|^#\d+[:\s-]*|\s+#\d+$", re.IGNORECASE)
_TRAILER = re.compile(r"\b(?:closes|fixes|resolves|refs?)[:\s]+(?:[\w./-]*#\d+[,\s]*)+\.?$", re.IGNORECASE)
_CONVENTIONS = re.compile(
    r"""^(?:
        (?:chore|build|ci|style|release|wip|test|tests)(?:\([^)]*\))?!?:            # by its type
      | bump\b | \[?release\b | prepare\b.*\b(?:release|version|development)
      | (?:version|v\.?)\s*\d | v?\d+\.\d+ | (?:update|set|increment|change)\ (?:the\ )?version
      | merge\b | merged\b | revert\b | reapply\b | cherry.?pick
      | fixup! | squash! | amend! | wip\b | initial\ commit | first\ commit | start\ (?:of\ )?\d
      | (?:update|create|delete|add|rename|edit)\ \S+\.\w+$                          # what forges suggest
      | (?:update|upgrade|pin|renovate)\b.*\b(?:dependenc\w+|to\ v?\d[\w.]*|lockfile|submodules?)
      | .*\b(?:tests?|testing|CI)\b                                                 # which answer nothing
      | .*\b(?:typos?|spelling|grammar|white.?space|(?:go|es|ts|py)?lint(?:ing|er)?)\b
      | (?:re)?format\w*\ (?:code|files?)\b
      | (?:fix|correct)\w*\ format\w*\b | (?:run|apply)\ (?:black|ruff|prettier|gofmt|clang-format|rustfmt|format\w*)\b
      | (?:update|edit|tidy)\w*\ (?:the\ )?(?:changelog|changes|release\ notes|news|authors|readme|copyright)
      | (?:changelog|copyright|release[- ]notes|thanks)\b
      | formatting | cleanup$ | clean\ up$ | updates?$ | fix(?:es|ed)?$ | changes$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_PROGRAM = re.compile(
    r"\[bot\]|\bbot\b|\bbot@|dependabot|renovate|greenkeeper|github.?actions?\b|pre-commit-ci|weblate|transifex|crowdin"
    r"|\bautomation\b|no-?reply@(?!.*users\.)",
    re.IGNORECASE,
)


def is_of_program(author: str, email: str) -> bool:
    """Whether a program made a commit, by the name of its author."""
    return _PROGRAM.search(f"{author} {email}") is not None


def question_of(message: str) -> str | None:
    """What the subject of a commit's message asks for; None where it says too little of the change."""
    subject = " ".join(message.partition("\n\n")[0].split())
    if not subject or len(subject) > _LONGEST or _CONVENTIONS.match(subject):
        return None
    of_type = _TYPE.match(subject)
    text = subject if of_type is None else " ".join(filter(None, (of_type["scope"], subject[of_type.end() :])))
    text = _NUMBERS.sub("", _TRAILER.sub("", text)).strip(" .,;:-")
    if _CONVENTIONS.match(text):
        return None
    words = {term for term in terms(text) if term not in FUNCTION_WORDS and not term.isdigit()}
    return text if len(words) >= _FEWEST_WORDS else None
