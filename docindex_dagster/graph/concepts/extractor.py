"""What every extractor of concepts offers, what it is given and what it returns."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from docindex_dagster.core.errors import ConceptError
from docindex_dagster.documents.words import words as words_of
from docindex_dagster.graph.prose import Paragraph

RELATIONS = ("uses", "requires", "contains", "implements", "refines", "similar_to")
"""The kinds of relations between two concepts."""

_LONGEST_NAME = 80
_ARTICLE = re.compile(r"^(?:the|an?|our|your|its|this|these)\s+", re.IGNORECASE)
_SHORT = 4  # letters: shorter words are not taken for plurals, and those in -ies that long have no y: ties, pies
_EDGES = " \t\n.,;:!?\"'`*_()[]{}<>“”‘’–—-"  # noqa: RUF001 quotation marks and dashes
# They look like plurals.
_SINGULAR = words_of(
    """kubernetes jenkins windows rails postgres series species news alias canvas pandas keras redis sass less express
    axios always https os ios macos status process access address class cross pass progress business css js
    aws dns tls ops devops nats sms rss apis"""
)


@dataclass(frozen=True, slots=True)
class Passage:
    """The prose of one chunk: what stands in code blocks is left out. Concepts are looked for in each alone."""

    headings: tuple[str, ...]  # above it, the outermost first
    paragraphs: tuple[Paragraph, ...]

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n\n".join(paragraph.text for paragraph in self.paragraphs)


@dataclass(frozen=True, slots=True)
class Concept:
    """Something that a passage speaks of. `line` counts from the first of the chunk, which is 0."""

    name: str
    confidence: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Relation:
    """What a passage says of two concepts. The predicate is one of RELATIONS."""

    subject: str
    predicate: str
    object: str
    confidence: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What is in one passage."""

    concepts: tuple[Concept, ...] = ()
    relations: tuple[Relation, ...] = ()


@runtime_checkable
class Extractor(Protocol):
    """Finds concepts. It is made often, for its name alone: what is slow waits until it extracts."""

    @property
    def name(self) -> str:
        """What it is. All that was found is kept under it, so it changes when other things would be found."""
        ...

    def extract(self, passages: Sequence[Passage]) -> Iterable[Found | ConceptError]:
        """What is in each of some passages, in their order, or an error for one that could not be analysed.

        The next run asks for that one again. What was given before an error is raised is kept, and no more is asked.

        Raises:
            Exception: of any kind; the source is published without what is missing, and with a warning.
        """
        ...


def normal(name: str) -> str:
    """The name under which a concept is one node: lower case, singular, without an article; "" where nothing is left.

    The plural is that of English, by its last letters.
    """
    words = _ARTICLE.sub("", " ".join(name.split()).strip(_EDGES)).split(" ")
    last = words[-1]
    is_acronym = last.isupper() or last[:-1].isupper()
    words[-1] = last.removesuffix("s") if is_acronym and last[-1:] == "s" else last if is_acronym else _singular(last)
    return " ".join(words).lower().strip(_EDGES)[:_LONGEST_NAME]


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in _SINGULAR or len(lower) < _SHORT or lower.endswith(("ss", "us", "is", "as", "os")):
        return word
    if lower.endswith("ies") and len(lower) > _SHORT:
        return f"{word[:-3]}y"
    if lower.endswith(("sses", "shes", "xes", "zes")):
        return word[:-2]
    return word.removesuffix("s")
