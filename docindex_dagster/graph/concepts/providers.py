"""The extractors of concepts by name, ours and those of installed packages.

A provider makes an extractor of the settings. For those of packages see docs/concepts.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import ConceptError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import GraphSettings, LLMSettings
from docindex_dagster.graph.concepts.extractor import Extractor, Found, Passage
from docindex_dagster.llm.providers import load_llm

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
