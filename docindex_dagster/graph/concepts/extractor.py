"""What every extractor of concepts offers, what it is given and what it returns."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import ConceptError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import GraphSettings, LLMSettings
from docindex_dagster.documents.model import words as words_of
from docindex_dagster.graph.document_text import Paragraph
from docindex_dagster.llm.providers import load_llm

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


Provider = Callable[[GraphSettings], Extractor]
"""What a package offers."""


def _patterns(_: GraphSettings, __: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.patterns import Patterns

    return Patterns()


def _spacy(_: GraphSettings, __: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.spacy import SpacyExtractor

    return SpacyExtractor()


def _llm(settings: GraphSettings, llm: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.llm import LLMExtractor

    if llm.provider == "none":
        raise ConceptError("llm.provider and llm.model must say which language model is asked")
    return LLMExtractor(load_llm(llm), settings.max_triples_per_chunk, llm.concurrency)


_OURS: Mapping[str, Callable[[GraphSettings, LLMSettings], Extractor]] = {
    "patterns": _patterns,
    "spacy": _spacy,
    "llm": _llm,
}
_OF_PACKAGES: Plugins[Provider] = Plugins("extractor", plugins.EXTRACTORS, {}, ConceptError)


@dataclass(frozen=True, slots=True)
class UnavailableExtractor:
    """Stands for an extractor that cannot be loaded: it fails when it extracts, so that no run stops for it."""

    name: str
    problem: str

    def extract(self, passages: Sequence[Passage]) -> Iterator[Found]:  # noqa: ARG002 of the protocol
        """Fail.

        Raises:
            ConceptError: always.
        """
        raise ConceptError(self.problem)


def load_extractor(settings: GraphSettings, llm: LLMSettings) -> Extractor | None:
    """The extractor that the settings name; None for `none`. An error in loading it is raised when it extracts."""
    name = settings.concepts
    if name == "none":
        return None
    try:
        own = _OURS.get(name)
        extractor = _checked(own(settings, llm) if own else _OF_PACKAGES.load(name)(settings))
    except Exception as error:  # noqa: BLE001 it may be of another package
        problem = str(error) if isinstance(error, ConceptError) else f"{type(error).__name__}: {first_line(error)}"
        return UnavailableExtractor(f"{name}/unavailable", f"graph.concepts = {name!r} cannot be used: {problem}")
    return extractor


def _checked(extractor: Extractor) -> Extractor:
    if not isinstance(extractor, Extractor) or not isinstance(extractor.name, str):
        raise ConceptError(f"it gives a {type(extractor).__name__}, which is no extractor")
    return extractor
