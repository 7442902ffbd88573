"""Interface of concept extractors: their input, their output, and how they are loaded."""

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
"""Kinds of relations between two concepts."""

_LONGEST_NAME = 80
_ARTICLE = re.compile(r"^(?:the|an?|our|your|its|this|these)\s+", re.IGNORECASE)
_SHORT = 4  # letters; shorter words are not treated as plurals, and words in -ies of this length have no y: ties, pies
_EDGES = " \t\n.,;:!?\"'`*_()[]{}<>“”‘’–—-"  # noqa: RUF001 quotation marks and dashes
# Singular words that look like plurals.
_SINGULAR = words_of(
    """kubernetes jenkins windows rails postgres series species news alias canvas pandas keras redis sass less express
    axios always https os ios macos status process access address class cross pass progress business css js
    aws dns tls ops devops nats sms rss apis"""
)


@dataclass(frozen=True, slots=True)
class Passage:
    """Prose of one chunk, without code blocks. Extractors analyze each passage on its own."""

    headings: tuple[str, ...]  # above the passage, outermost first
    paragraphs: tuple[Paragraph, ...]

    @property
    def text(self) -> str:
        """All paragraphs as plain text."""
        return "\n\n".join(paragraph.text for paragraph in self.paragraphs)


@dataclass(frozen=True, slots=True)
class Concept:
    """Concept that a passage mentions. `line` counts from the first line of the chunk, which is 0."""

    name: str
    confidence: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Relation:
    """Relation between two concepts that a passage states. The predicate is one of RELATIONS."""

    subject: str
    predicate: str
    object: str
    confidence: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Findings in one passage."""

    concepts: tuple[Concept, ...] = ()
    relations: tuple[Relation, ...] = ()


@runtime_checkable
class Extractor(Protocol):
    """Extractor of concepts. Often only its name is needed, so it should defer slow work until `extract`."""

    @property
    def name(self) -> str:
        """The name under which findings are cached. It must change whenever the findings would change."""
        ...

    def extract(self, passages: Sequence[Passage]) -> Iterable[Found | ConceptError]:
        """Yield the findings of each passage in order, or an error for a passage that cannot be analyzed.

        The next run retries passages with errors. If the extractor raises, earlier findings are kept and no more
        passages are passed to it.

        Raises:
            Exception: Any error; the source is published without the missing concepts, and with a warning.
        """
        ...


def normalize_name(name: str) -> str:
    """Normalize a name, so that a concept is one node: lower case, singular, no article; may return "".

    Plurals are English, recognized by their last letters.
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
"""The type of an extractor plugin."""


def _patterns(_: GraphSettings, __: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.patterns import Patterns

    return Patterns()


def _spacy(_: GraphSettings, __: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.spacy import SpacyExtractor

    return SpacyExtractor()


def _llm(settings: GraphSettings, llm: LLMSettings) -> Extractor:
    from docindex_dagster.graph.concepts.llm import LLMExtractor

    if llm.provider == "none":
        raise ConceptError("no language model is configured: set llm.provider and llm.model")
    return LLMExtractor(load_llm(llm), settings.max_triples_per_chunk, llm.concurrency)


_BUILT_IN: Mapping[str, Callable[[GraphSettings, LLMSettings], Extractor]] = {
    "patterns": _patterns,
    "spacy": _spacy,
    "llm": _llm,
}
_PLUGINS: Plugins[Provider] = Plugins("extractor", plugins.EXTRACTORS, {}, ConceptError)


@dataclass(frozen=True, slots=True)
class UnavailableExtractor:
    """Placeholder for an extractor that cannot be loaded. It fails only in `extract`, so that it stops no run."""

    name: str
    problem: str

    def extract(self, passages: Sequence[Passage]) -> Iterator[Found]:  # noqa: ARG002 required by the protocol
        """Fail.

        Raises:
            ConceptError: Always.
        """
        raise ConceptError(self.problem)


def load_extractor(settings: GraphSettings, llm: LLMSettings) -> Extractor | None:
    """Return the configured extractor, or None for `none`. Loading errors are deferred until it extracts."""
    name = settings.concepts
    if name == "none":
        return None
    try:
        own = _BUILT_IN.get(name)
        extractor = _checked(own(settings, llm) if own else _PLUGINS.load(name)(settings))
    except Exception as error:  # noqa: BLE001 may come from another package
        problem = str(error) if isinstance(error, ConceptError) else f"{type(error).__name__}: {first_line(error)}"
        return UnavailableExtractor(f"{name}/unavailable", f"cannot use graph.concepts = {name!r}: {problem}")
    return extractor


def _checked(extractor: Extractor) -> Extractor:
    if not isinstance(extractor, Extractor) or not isinstance(extractor.name, str):
        raise ConceptError(f"expected an Extractor from the plugin, got {type(extractor).__name__}")
    return extractor
