"""Citations, each checked against the passage that it names, without a model.

A check compares what the sentence says with the lines that are cited: names, quotes and words. It finds marks that name
another passage than the one that was read; it does not understand, and proves nothing.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from docindex_dagster.answering.markdown import CODE_SPAN, Claim, Mark, MarkReader
from docindex_dagster.answering.passages import Passage
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
# Chosen on flask and sqlfluff, and measured on requests and pytest: benchmarks/citations.py.
LEAST_SUPPORT = 0.1
LEAST_OF_BEST = 0.5  # of what the best other passage has
Changes = Callable[[Passage, int, int], bool | None]
"""Whether some lines of a passage, by their numbers, have changed on disk."""


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
    """How much of a claim each passage has, from 0 to 1.

    Each name, word and quote counts by how rare it is among the passages (inverse document frequency). Words count for
    little: an answer is written in words of its own, and repeats names.
    """
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


class State(StrEnum):
    """What the check of a citation says."""

    SUPPORTED = "supported"  # the cited lines have what the sentence names, or what it quotes
    DOUBTFUL = "doubtful"  # they have hardly any of it, or another passage has more than twice as much
    UNCHECKED = "unchecked"  # the sentence names nothing that could be looked for
    MISSING = "missing"  # there is no such passage


@dataclass(frozen=True, slots=True)
class Citation:
    """One number of a mark, checked.

    Attributes:
        number: of the passage.
        start: where its mark begins in the answer, in characters.
        end: where the mark ends; numbers of one mark share it.
        claim: the sentence that it is to prove.
        state: what the check says.
        passage: what it names; None where that is missing.
        start_line: the first of the lines that are cited: of a quote where there is one, else those that the sentence
            names, else the passage's.
        end_line: the last of them.
        is_moved: whether the lines are others than the sentence names.
        support: how much of the sentence the lines have, 0 to 1; None where it was not checked.
        better: the number of a passage that has more of a doubtful sentence.
        stale: whether the cited lines have changed since they were indexed; None where that is unknown.
    """

    number: int
    start: int
    end: int
    claim: str
    state: State
    passage: Passage | None = None
    start_line: int = 0
    end_line: int = 0
    is_moved: bool = False
    support: float | None = None
    better: int | None = None
    stale: bool | None = None

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """The chunks of the passage."""
        return self.passage.chunk_ids if self.passage else ()


def as_retrieved(passage: Passage, _first: int, _last: int) -> bool | None:
    """What retrieval said of the whole file."""
    return passage.stale


@dataclass(frozen=True, slots=True)
class _Found:
    """What a check found in a passage: how much of the claim, in which lines."""

    state: State
    first: int
    last: int
    support: float | None = None
    better: int | None = None


class Checker:
    """Checks the marks of an answer against the passages of its conversation, as they are found."""

    def __init__(self, passages: Sequence[Passage], changes: Changes = as_retrieved) -> None:
        self._passages = {passage.number: passage for passage in passages}
        self._changes = changes
        self._reader = MarkReader()

    def feed(self, piece: str) -> list[Citation]:
        """The next piece of the answer; the citations that are certain now."""
        return self._checked(self._reader.feed(piece))

    def finish(self) -> list[Citation]:
        """The answer has ended: the citations that are left."""
        return self._checked(self._reader.finish())

    def _checked(self, marks: Iterable[Mark]) -> list[Citation]:
        return [self._citation(mark, number) for mark in marks for number in mark.numbers]

    def _citation(self, mark: Mark, number: int) -> Citation:
        claim = mark.claim.text or mark.claim.code
        passage = self._passages.get(number)
        if passage is None:
            return Citation(number, mark.start, mark.end, claim, State.MISSING)
        found = _look(mark.claim, passage, tuple(self._passages.values()))
        lines = (found.first, found.last)
        return Citation(
            number=number,
            start=mark.start,
            end=mark.end,
            claim=claim,
            state=found.state,
            passage=passage,
            start_line=found.first,
            end_line=found.last,
            is_moved=mark.claim.lines is not None and mark.claim.lines != lines != passage.span,
            support=found.support,
            better=found.better,
            stale=self._changes(passage, *lines),
        )


def check(text: str, passages: Sequence[Passage], changes: Changes = as_retrieved) -> list[Citation]:
    """All citations of an answer.

    Args:
        text: the answer.
        passages: of its conversation.
        changes: says whether lines have changed since they were indexed.
    """
    checker = Checker(passages, changes)
    return [*checker.feed(text), *checker.finish()]


def _look(claim: Claim, passage: Passage, passages: Sequence[Passage]) -> _Found:
    """Compare a claim with a passage, and with the others."""
    evidence = evidence_of(claim.text, claim.code)
    named = _named_lines(claim, passage)
    if not evidence.is_checkable:
        return _Found(State.UNCHECKED, *(named or passage.span))
    tried = [
        _compared(evidence, passage, lines, passages) for lines in dict.fromkeys((named or passage.span, passage.span))
    ]
    found = next((one for one in tried if one.state is State.SUPPORTED), tried[0])
    quoted = _lines_of_quote(evidence, passage)
    return replace(found, first=quoted[0], last=quoted[1]) if quoted else found


def _compared(evidence: Evidence, passage: Passage, lines: tuple[int, int], passages: Sequence[Passage]) -> _Found:
    """Compare what a claim says with some lines of a passage."""
    others = [other for other in passages if other.number != passage.number]
    cited = Searched.of(passage.lines(*lines), passage.name, passage.path)
    have = shares(evidence, [cited, *map(_searched, others)])
    own, best = have[0], max(have[1:], default=0.0)
    if is_supported(own, best, quotes_found=cited.quotes_of(evidence)):
        return _Found(State.SUPPORTED, *lines, own)
    better = others[have.index(best, 1) - 1].number if best > max(own, LEAST_SUPPORT) else None
    return _Found(State.DOUBTFUL, *lines, own, better)


def is_supported(own: float, best_other: float, *, quotes_found: bool | None = None) -> bool:
    """Whether so much of a claim is enough, where another passage has so much of it; a quote decides by itself."""
    return own >= max(LEAST_SUPPORT, LEAST_OF_BEST * best_other) if quotes_found is None else quotes_found


@lru_cache(maxsize=1024)  # an answer cites the passages of its conversation again and again
def _searched(passage: Passage) -> Searched:
    return Searched.of(passage.text, passage.name, passage.path)


def _named_lines(claim: Claim, passage: Passage) -> tuple[int, int] | None:
    """Of the lines that a claim names, those of the passage, where it has any."""
    first, last = claim.lines or (0, 0)
    first, last = max(first, passage.start_line), min(last, passage.end_line)
    return (first, last) if first <= last else None


def _lines_of_quote(evidence: Evidence, passage: Passage) -> tuple[int, int] | None:
    """The lines of the longest quote that a passage has."""
    quotes = sorted((*evidence.quotes, *evidence.code), key=len, reverse=True)
    places = (lines_of(quote, passage.text) for quote in quotes if passage.has_exact_lines)
    found = next((place for place in places if place), None)
    return (passage.start_line + found[0], passage.start_line + found[1]) if found else None


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A number in a mark of the answer, checked.

    Attributes:
        number: of the passage.
        start: where its mark begins in the answer's text, in characters (code points of Unicode).
        end: where the mark ends.
        claim: the sentence that it is to prove.
        state: what the check says.
        source: of the cited lines; null if there is no such passage.
        path: likewise.
        start_line: likewise.
        end_line: likewise.
        is_moved: whether the lines are others than the sentence names.
        support: how much of the sentence they have, 0 to 1; null where it was not checked.
        better: the number of a passage that has more of a doubtful sentence.
        stale: whether the lines have changed on disk since; null where that is unknown.
        chunk_ids: of the passage.
    """

    number: int
    start: int
    end: int
    claim: str
    state: State
    source: str | None
    path: str | None
    start_line: int | None
    end_line: int | None
    is_moved: bool
    support: float | None
    better: int | None
    stale: bool | None
    chunk_ids: tuple[str, ...]

    @classmethod
    def of(cls, citation: Citation) -> "CheckedCitation":
        """A citation as programs get it."""
        passage = citation.passage
        return cls(
            number=citation.number,
            start=citation.start,
            end=citation.end,
            claim=citation.claim,
            state=citation.state,
            source=passage.source if passage else None,
            path=passage.path if passage else None,
            start_line=citation.start_line if passage else None,
            end_line=citation.end_line if passage else None,
            is_moved=citation.is_moved,
            support=citation.support,
            better=citation.better,
            stale=citation.stale,
            chunk_ids=citation.chunk_ids,
        )
