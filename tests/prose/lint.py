"""Linter for the prose of files."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from proselint import checks
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from tests.prose.patterns import PATTERNS
from tests.prose.texts import Paragraph, paragraphs

ROOT = Path(__file__).parents[2]
_FILES = (
    *("*.md", "docs/**/*.md", "benchmarks/README.md", "benchmarks/*.py", "training/*.py", "deploy/**/*.y*ml"),
    *("docindex_dagster/**/*.py", "docindex_dagster/**/*.js", "docindex_dagster/**/*.css"),
    *("docindex_dagster/**/*.html", "docindex_dagster/**/*.scm", "docindex_dagster/**/*.y*ml", "pyproject.toml"),
    *("Makefile", "docindex.toml", "dagster.yaml", "deploy/Dockerfile", "deploy/celery/*.py", "mkdocs_hooks.py"),
    *("tests/pages/*.py", "tests/prose/*.py", "tests/reference/*.py"),
)
_EXAMPLES = {"tests/prose/patterns.py", "tests/prose/test_prose.py"}
# Annotations such as TODO occur in word lists, and "very" is a stop word. Phrases of licences are in lower case. Quotes
# are ASCII.
_OFF = dict.fromkeys(
    (
        *("annotations", "industrial_language.chatspeak", "misc.capitalization.months", "needless_variants"),
        *("typography", "weasel_words"),
    ),
    False,
)
# The first key that is a prefix of a check applies, so the specific keys come first.
_FUNCTION_WORDS = frozenset({"a", "an", "and", "are", "as", "in", "is", "it", "of", "on", "that", "the", "to", "with"})
_CONFIG: Config = {"max_errors": 1000, "checks": {**_OFF, **DEFAULT["checks"], **_OFF}}


@dataclass(frozen=True, slots=True)
class Finding:
    """A construction to avoid, with its location and advice."""

    paragraph: Paragraph
    rule: str
    text: str
    advice: str

    def __str__(self) -> str:
        """Format as `path:line: rule: text (advice)`."""
        path = (
            self.paragraph.path.relative_to(ROOT) if self.paragraph.path.is_relative_to(ROOT) else self.paragraph.path
        )
        return f"{path}:{self.paragraph.line}: {self.rule}: {self.text!r} ({self.advice})"


def project_files() -> list[Path]:
    """Return the files whose prose is checked."""
    found = {path for pattern in _FILES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if path.relative_to(ROOT).as_posix() not in _EXAMPLES)


def lint(files: Iterable[Path]) -> Iterator[Finding]:
    """Check the prose of files against the project's patterns and proselint."""
    _register_checks()
    for path in files:
        prose = list(paragraphs(path))
        for paragraph in prose:
            yield from match_patterns(paragraph)
        yield from _proselint(prose)


@cache
def _register_checks() -> None:
    """Register the checks once, since proselint's registry is global and keeps duplicates."""
    CheckRegistry().register_many(checks.__register__)


def match_patterns(paragraph: Paragraph) -> Iterator[Finding]:
    """Check a paragraph against the project's patterns."""
    for pattern in PATTERNS:
        for found in pattern.regex.finditer(paragraph.text):
            yield Finding(paragraph, pattern.name, found[0], pattern.advice)


def _proselint(prose: list[Paragraph]) -> Iterator[Finding]:
    starts = list(accumulate((len(paragraph.text) + 2 for paragraph in prose), initial=1))
    text = "\n\n".join(paragraph.text for paragraph in prose)
    for result in LintFile("prose", text).lint(_CONFIG) if text else ():
        check = result.check_result
        paragraph = prose[min(bisect_right(starts, check.span[0]), len(prose)) - 1]
        start, end = (position - 1 for position in check.span)  # LintFile puts a newline first
        is_word_list = check.check_path == "lexical_illusions" and text[start:end].split()[0] not in _FUNCTION_WORDS
        if "\n" not in text[start:end] and not is_word_list:  # a match must not span paragraphs
            yield Finding(paragraph, check.check_path, text[start:end], check.message.splitlines()[0])
