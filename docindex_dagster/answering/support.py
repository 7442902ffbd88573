"""How much of what a claim says stands in each of several passages: 0 to 1.

A claim says names, words and quotes. Each counts by how rare it is among the passages (inverse document frequency),
since what all of them have speaks for none. A passage has what stands in its text, in its name and in its path. Words
count for little: an answer is written in words of its own, and repeats names.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docindex_dagster.answering.markdown import CODE_SPAN
from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.stores.analysis import stems, terms

_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"\w_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # a name by its form: snake_case, camelCase, HTTPError
_CALLED = re.compile(r"(\w+)\(")
_QUOTED = re.compile(r'"([^"\n]+)"|„([^“”\n]+)[“”]|“([^”\n]+)”|«([^»\n]+)»')
_STOPS = ".,;:"  # may be the answer's own
_LEAST_QUOTED = 4  # words; fewer in quotation marks are a name, or irony
_LEAST_CODE = 3  # words in code that is compared as a quote
_IDENTIFIER_WEIGHT, _CALL_WEIGHT, _WORD_WEIGHT, _QUOTE_WEIGHT = 1.0, 0.5, 0.1, 1.0
_COMMENT = re.compile(r"^\s*(?:[#*>;%]+|//+|--|/\*+)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a claim says that can be looked for."""

    identifiers: frozenset[str]
    calls: frozenset[str]  # of the identifiers, those that are called
    words: frozenset[str]  # stems
    quotes: tuple[str, ...]  # of prose, in quotation marks
    code: tuple[str, ...]  # pieces of code of several words

    @property
    def is_checkable(self) -> bool:
        """Whether it says more than words."""
        return bool(self.identifiers or self.quotes)


@dataclass(frozen=True, slots=True)
class Searched:
    """A text with the name and path that it goes by, taken apart."""

    identifiers: frozenset[str]
    calls: frozenset[str]
    words: frozenset[str]
    text: str

    @classmethod
    def of(cls, text: str, name: str | None, path: str) -> "Searched":
        """Take a text apart."""
        called = f"{name or ''} {path}"
        return cls(
            identifiers=frozenset(_WORD.findall(text)) | frozenset(_WORD.findall(name or "")),
            calls=frozenset(_CALLED.findall(text)),
            words=frozenset(stems(list({*terms(text), *terms(called)}))),
            text=flat(text),
        )

    def quotes_of(self, evidence: Evidence) -> bool | None:
        """Whether it has one of a claim's quotes; None where the claim has none."""
        return any(quote in self.text for quote in evidence.quotes) if evidence.quotes else None


def evidence_of(text: str, code: str = "") -> Evidence:
    """What a claim says, and code that stands before it as a quote."""
    pieces = [found[2] for found in CODE_SPAN.finditer(text)] + ([code] if code else [])
    prose = CODE_SPAN.sub(" ", text)
    written = [word for piece in pieces for word in _WORD.findall(piece)]
    spoken = _WORD.findall(prose)
    names = [word for word in spoken if _COMPOUND.search(word)]
    words = {word.lower() for word in spoken if not _COMPOUND.search(word)} - FUNCTION_WORDS
    quotes = (flat("".join(quoted)).rstrip(_STOPS) for quoted in _QUOTED.findall(prose))
    return Evidence(
        identifiers=frozenset(word for word in (*written, *names) if word[1:]),
        calls=frozenset(name for piece in pieces for name in _CALLED.findall(piece)),
        words=frozenset(stems([word for word in words if word[1:]])),
        quotes=tuple(quote for quote in quotes if quote.count(" ") >= _LEAST_QUOTED - 1),
        code=tuple(flat(piece) for piece in pieces if len(_WORD.findall(piece)) >= _LEAST_CODE),
    )


def shares(evidence: Evidence, passages: Sequence[Searched]) -> list[float]:
    """How much of a claim each passage has."""
    have = [0.0] * len(passages)
    whole = 0.0
    for weight, holders in _holders(evidence, passages):
        count = sum(holders)
        worth = weight * math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
        whole += worth
        for at, holds in enumerate(holders):
            have[at] += worth * holds
    return [value / whole if whole else 0.0 for value in have]


def _holders(evidence: Evidence, passages: Sequence[Searched]) -> Iterable[tuple[float, list[bool]]]:
    """Of each thing that a claim says, its weight and which passages have it."""
    for name in sorted(evidence.identifiers):
        yield _IDENTIFIER_WEIGHT, [name in passage.identifiers for passage in passages]
    for name in sorted(evidence.calls):
        yield _CALL_WEIGHT, [name in passage.calls for passage in passages]
    for stem in sorted(evidence.words):
        yield _WORD_WEIGHT, [stem in passage.words for passage in passages]
    for quote in evidence.quotes:
        yield _QUOTE_WEIGHT, [quote in passage.text for passage in passages]


def flat(text: str) -> str:
    """A text as one line, with one space for all white space between words."""
    return " ".join(line for line in map(_flat_line, text.split("\n")) if line)


def lines_of(quote: str, text: str) -> tuple[int, int] | None:
    """The first and last line of a text, from 0, between which a flat quote stands; None where it does not."""
    at = flat(text).find(quote)
    if not quote or at < 0:
        return None
    begin, found = 0, []
    for number, line in enumerate(map(_flat_line, text.split("\n"))):
        if line and begin < at + len(quote) and at < begin + len(line):
            found.append(number)
        begin += len(line) + 1 if line else 0
    return found[0], found[-1]


def _flat_line(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())
