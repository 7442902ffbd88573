"""Citations, each checked without a model against the passage that it names.

A check compares the names, quotes and words of a sentence with the cited lines. It detects marks that name the wrong
passage. It does not understand the sentence and proves nothing.
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
_COMPOUND = re.compile(r"\w_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # identifiers such as snake_case, camelCase, HTTPError
_CALLED = re.compile(r"(\w+)\(")
_QUOTED = re.compile(r'"([^"\n]+)"|„([^“”\n]+)[“”]|“([^”\n]+)”|«([^»\n]+)»')
_FINAL_PUNCTUATION = ".,;:"  # may belong to the answer instead of the quotation
_MIN_QUOTE_WORDS = 4  # words; shorter quotations are names or irony
_MIN_CODE_WORDS = 3  # words; shorter code is not compared as a quote
_IDENTIFIER_WEIGHT, _CALL_WEIGHT, _WORD_WEIGHT, _QUOTE_WEIGHT = 1.0, 0.5, 0.1, 1.0
_COMMENT = re.compile(r"^\s*(?:[#*>;%]+|//+|--|/\*+)(?=\s|$)")
# Chosen on flask and sqlfluff, measured on requests and pytest: benchmarks/citations.py.
LEAST_SUPPORT = 0.1
LEAST_OF_BEST = 0.5  # of the support from the best other passage
Changes = Callable[[Passage, int, int], bool | None]
"""Return whether a range of a passage's lines, by line number, has changed on disk; None if unknown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The checkable content of a claim."""

    identifiers: frozenset[str]
    calls: frozenset[str]  # the identifiers that are called
    words: frozenset[str]  # stems
    quotes: tuple[str, ...]  # prose in quotation marks
    code: tuple[str, ...]  # code fragments of several words

    @property
    def is_checkable(self) -> bool:
        """Whether the claim contains more than plain words."""
        return bool(self.identifiers or self.quotes)


@dataclass(frozen=True, slots=True)
class SearchableText:
    """A text with its name and path, split into what a check compares."""

    identifiers: frozenset[str]
    calls: frozenset[str]
    words: frozenset[str]
    text: str

    @classmethod
    def of(cls, text: str, name: str | None, path: str) -> "SearchableText":
        """Create one from a text."""
        label = f"{name or ''} {path}"
        return cls(
            identifiers=frozenset(_WORD.findall(text)) | frozenset(_WORD.findall(name or "")),
            calls=frozenset(_CALLED.findall(text)),
            words=frozenset(stems(list({*terms(text), *terms(label)}))),
            text=flat(text),
        )

    def contains_quote(self, evidence: Evidence) -> bool | None:
        """Return whether the text contains one of a claim's quotes; None if the claim has none."""
        return any(quote in self.text for quote in evidence.quotes) if evidence.quotes else None


def evidence_of(text: str, code: str = "") -> Evidence:
    """Return the evidence in a claim. `code` is a code block directly before it, which counts as a quote."""
    pieces = [found[2] for found in CODE_SPAN.finditer(text)] + ([code] if code else [])
    prose = CODE_SPAN.sub(" ", text)
    code_words = [word for piece in pieces for word in _WORD.findall(piece)]
    prose_words = _WORD.findall(prose)
    names = [word for word in prose_words if _COMPOUND.search(word)]
    words = {word.lower() for word in prose_words if not _COMPOUND.search(word)} - FUNCTION_WORDS
    quotes = (flat("".join(quoted)).rstrip(_FINAL_PUNCTUATION) for quoted in _QUOTED.findall(prose))
    return Evidence(
        identifiers=frozenset(word for word in (*code_words, *names) if word[1:]),
        calls=frozenset(name for piece in pieces for name in _CALLED.findall(piece)),
        words=frozenset(stems([word for word in words if word[1:]])),
        quotes=tuple(quote for quote in quotes if quote.count(" ") >= _MIN_QUOTE_WORDS - 1),
        code=tuple(flat(piece) for piece in pieces if len(_WORD.findall(piece)) >= _MIN_CODE_WORDS),
    )


def shares(evidence: Evidence, passages: Sequence[SearchableText]) -> list[float]:
    """Return the share of a claim that each passage contains, from 0 to 1.

    Each name, word and quote is weighted by its rarity among the passages (inverse document frequency). Words have a
    low weight, because answers use words of their own but repeat names.
    """
    shares_found = [0.0] * len(passages)
    total = 0.0
    for weight, holders in _holders(evidence, passages):
        count = sum(holders)
        worth = weight * math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
        total += worth
        for at, holds in enumerate(holders):
            shares_found[at] += worth * holds
    return [value / total if total else 0.0 for value in shares_found]


def _holders(evidence: Evidence, passages: Sequence[SearchableText]) -> Iterable[tuple[float, list[bool]]]:
    """Yield the weight of each element of a claim, and which passages contain it."""
    for name in sorted(evidence.identifiers):
        yield _IDENTIFIER_WEIGHT, [name in passage.identifiers for passage in passages]
    for name in sorted(evidence.calls):
        yield _CALL_WEIGHT, [name in passage.calls for passage in passages]
    for stem in sorted(evidence.words):
        yield _WORD_WEIGHT, [stem in passage.words for passage in passages]
    for quote in evidence.quotes:
        yield _QUOTE_WEIGHT, [quote in passage.text for passage in passages]


def flat(text: str) -> str:
    """Return a text as one line, with runs of white space replaced by one space and comment markers removed."""
    return " ".join(line for line in map(_flat_line, text.split("\n")) if line)


def lines_of(quote: str, text: str) -> tuple[int, int] | None:
    """Return the first and last line of a text, from 0, that a flat quote spans; None if the text lacks the quote."""
    at = flat(text).find(quote)
    if not quote or at < 0:
        return None
    line_start, found = 0, []
    for number, line in enumerate(map(_flat_line, text.split("\n"))):
        if line and line_start < at + len(quote) and at < line_start + len(line):
            found.append(number)
        line_start += len(line) + 1 if line else 0
    return found[0], found[-1]


def _flat_line(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())


class State(StrEnum):
    """The result of checking a citation."""

    SUPPORTED = "supported"  # the cited lines contain the sentence's names or its quotes
    DOUBTFUL = "doubtful"  # they contain hardly any of them, or another passage contains over twice as much
    UNCHECKED = "unchecked"  # the sentence contains nothing checkable
    MISSING = "missing"  # the passage does not exist


@dataclass(frozen=True, slots=True)
class Citation:
    """A checked citation: one number in a citation mark.

    Attributes:
        number: the number of the passage.
        start: the offset of its mark in the answer, in characters.
        end: the offset of the end of the mark; all numbers of one mark share it.
        claim: the sentence that it supports.
        state: the result of the check.
        passage: the cited passage; None if it does not exist.
        start_line: the first cited line: of a quote if there is one, else the first line that the sentence names,
            else the passage's first line.
        end_line: the last cited line.
        is_moved: whether the cited lines differ from those that the sentence names.
        support: the share of the sentence that the lines contain, 0 to 1; None if it was not checked.
        better: the number of a passage that better supports a doubtful sentence.
        stale: whether the cited lines have changed since they were indexed; None if unknown.
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
        """The ids of the chunks that the passage comes from."""
        return self.passage.chunk_ids if self.passage else ()


def as_retrieved(passage: Passage, _first: int, _last: int) -> bool | None:
    """Return whether the file had changed when the passage was retrieved."""
    return passage.stale


@dataclass(frozen=True, slots=True)
class _CheckResult:
    """The result of comparing a claim with a passage: the lines, and the share of the claim that they contain."""

    state: State
    first: int
    last: int
    support: float | None = None
    better: int | None = None


class Checker:
    """Incremental checker of an answer's citation marks against the passages of its conversation."""

    def __init__(self, passages: Sequence[Passage], changes: Changes = as_retrieved) -> None:
        self._passages = {passage.number: passage for passage in passages}
        self._changes = changes
        self._reader = MarkReader()

    def feed(self, piece: str) -> list[Citation]:
        """Add a piece of the answer and return the citations that are now certain."""
        return self._check_marks(self._reader.feed(piece))

    def finish(self) -> list[Citation]:
        """Mark the end of the answer and return the remaining citations."""
        return self._check_marks(self._reader.finish())

    def _check_marks(self, marks: Iterable[Mark]) -> list[Citation]:
        return [self._citation(mark, number) for mark in marks for number in mark.numbers]

    def _citation(self, mark: Mark, number: int) -> Citation:
        claim = mark.claim.text or mark.claim.code
        passage = self._passages.get(number)
        if passage is None:
            return Citation(number, mark.start, mark.end, claim, State.MISSING)
        found = _check_claim(mark.claim, passage, tuple(self._passages.values()))
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
    """Return all citations of an answer.

    Args:
        text: the answer.
        passages: the passages of its conversation.
        changes: tells whether lines have changed since they were indexed.
    """
    checker = Checker(passages, changes)
    return [*checker.feed(text), *checker.finish()]


def _check_claim(claim: Claim, passage: Passage, passages: Sequence[Passage]) -> _CheckResult:
    """Check a claim against a passage and against all other passages."""
    evidence = evidence_of(claim.text, claim.code)
    named = _named_lines(claim, passage)
    if not evidence.is_checkable:
        return _CheckResult(State.UNCHECKED, *(named or passage.span))
    results = [
        _compare(evidence, passage, lines, passages) for lines in dict.fromkeys((named or passage.span, passage.span))
    ]
    found = next((result for result in results if result.state is State.SUPPORTED), results[0])
    quoted = _lines_of_quote(evidence, passage)
    return replace(found, first=quoted[0], last=quoted[1]) if quoted else found


def _compare(evidence: Evidence, passage: Passage, lines: tuple[int, int], passages: Sequence[Passage]) -> _CheckResult:
    """Compare the evidence of a claim with some lines of a passage and with all other passages."""
    others = [other for other in passages if other.number != passage.number]
    cited = SearchableText.of(passage.lines(*lines), passage.name, passage.path)
    support = shares(evidence, [cited, *map(_searched, others)])
    own, best = support[0], max(support[1:], default=0.0)
    if is_supported(own, best, quotes_found=cited.contains_quote(evidence)):
        return _CheckResult(State.SUPPORTED, *lines, own)
    better = others[support.index(best, 1) - 1].number if best > max(own, LEAST_SUPPORT) else None
    return _CheckResult(State.DOUBTFUL, *lines, own, better)


def is_supported(own: float, best_other: float, *, quotes_found: bool | None = None) -> bool:
    """Return whether a share of a claim suffices, given the best share of another passage. A quote decides alone."""
    return own >= max(LEAST_SUPPORT, LEAST_OF_BEST * best_other) if quotes_found is None else quotes_found


@lru_cache(maxsize=1024)  # answers cite the same passages repeatedly
def _searched(passage: Passage) -> SearchableText:
    return SearchableText.of(passage.text, passage.name, passage.path)


def _named_lines(claim: Claim, passage: Passage) -> tuple[int, int] | None:
    """Return the lines that a claim names, limited to the passage; None if they are outside it."""
    first, last = claim.lines or (0, 0)
    first, last = max(first, passage.start_line), min(last, passage.end_line)
    return (first, last) if first <= last else None


def _lines_of_quote(evidence: Evidence, passage: Passage) -> tuple[int, int] | None:
    """Return the lines of the longest quote that a passage contains."""
    quotes = sorted((*evidence.quotes, *evidence.code), key=len, reverse=True)
    spans = (lines_of(quote, passage.text) for quote in quotes if passage.has_exact_lines)
    found = next((span for span in spans if span), None)
    return (passage.start_line + found[0], passage.start_line + found[1]) if found else None


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A number in a citation mark of the answer, checked.

    Attributes:
        number: the number of the passage.
        start: the offset of its mark in the answer's text, in characters (Unicode code points).
        end: the offset of the end of the mark.
        claim: the sentence that it supports.
        state: the result of the check.
        source: the source of the cited lines; null if the passage does not exist.
        path: the path of the cited lines; null if the passage does not exist.
        start_line: the first cited line; null if the passage does not exist.
        end_line: the last cited line; null if the passage does not exist.
        is_moved: whether the cited lines differ from those that the sentence names.
        support: the share of the sentence that they contain, 0 to 1; null if it was not checked.
        better: the number of a passage that better supports a doubtful sentence.
        stale: whether the lines have changed on disk since they were indexed; null if unknown.
        chunk_ids: the ids of the passage's chunks.
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
        """Convert a citation to its form for API clients."""
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
