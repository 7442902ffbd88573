"""Run questions through a search configuration, and score the results."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from docindex_dagster.core.errors import QueryError
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import embedder_named, shared_embedder
from docindex_dagster.evaluation.configuration import Configuration
from docindex_dagster.evaluation.metrics import DEPTH, Scores, scores
from docindex_dagster.evaluation.questions import HitPosition, Question, is_change_log, ranks
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.reranking.protocol import Reranker, ignore_warning
from docindex_dagster.search.reranking.providers import load_reranker
from docindex_dagster.stores.reader import Reader

_SPARE = 10  # extra hits, in case some do not count


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question, the ten best places that a search returned, the rank of each target, and the scores."""

    question: Question
    places: tuple[HitPosition, ...]
    ranks: tuple[int | None, ...]
    scores: Scores


def ask(
    configuration: Configuration,
    reader: Reader,
    questions: Sequence[Question],
    *,
    sources: tuple[str, ...] = (),
    warn: Callable[[str], None] = ignore_warning,
) -> list[QuestionResult]:
    """Ask each question, as `docindex search` would, and rank its targets.

    Args:
        configuration: how to search.
        reader: the index.
        questions: the questions.
        sources: the sources to search for a question that names none; empty for all.
        warn: called with each degradation of results, and the number of questions that it affects.

    Raises:
        QueryError: As for `search`, or the configuration names another model than the index.
        EmbeddingError: The model fails, and the mode is vector or graph.
        DamagedStoreError: A store cannot be read.
    """
    _check_model(configuration, reader)
    settings = configuration.settings
    session = _Session(
        configuration,
        reader,
        sources,
        load_reranker(settings.rerank, warn),
        cache(lambda name: embedder_named(name, settings.embedding)),
    )
    answers = [session.answer(question) for question in questions]
    for note, count in session.notes.most_common():
        warn(f"{count:,} of {len(questions):,} questions: {note}")
    return answers


def _check_model(configuration: Configuration, reader: Reader) -> None:
    if not configuration.names_model or configuration.mode is Mode.BM25:
        return
    model, indexed = shared_embedder(configuration.settings.embedding).name, reader.generation.model
    if model != indexed:
        raise QueryError(
            f"the configuration names the model {model}, but the index in {reader.layout.home} has vectors of "
            f"{indexed}: create an index with {model} in another DOCINDEX_HOME, and set `home` to it"
        )


@dataclass(frozen=True, slots=True)
class _Session:
    configuration: Configuration
    reader: Reader
    sources: tuple[str, ...]
    reranker: Reranker | None
    former: Callable[[str], Embedder | None]
    notes: Counter[str] = field(default_factory=Counter)

    def answer(self, question: Question) -> QuestionResult:
        hits = self._hits(question)
        if question.is_of_history:
            hits = [hit for hit in hits if not is_change_log(hit.path, hit.source_type)]
        places = tuple(HitPosition(hit.source, hit.path, hit.start_line, hit.end_line) for hit in hits[:DEPTH])
        found = tuple(ranks(question, places))
        return QuestionResult(question, places, found, scores(found))

    def _hits(self, question: Question) -> list[Hit]:
        settings = self.configuration.settings
        notes: list[str] = []
        hits = search(
            self.reader,
            question.text,
            lambda: shared_embedder(settings.embedding),
            mode=self.configuration.mode,
            top_k=DEPTH + _SPARE if question.is_of_history else DEPTH,
            filters=Filters(sources=question.within or self.sources),
            pool=settings.search.candidates,
            weights=self.configuration.weights,
            reranker=self.reranker,
            former=self.former,
            warn=notes.append,
        )
        is_doubtful = not hits or hits[0].is_weak
        # If no hit is close to the question, the last warning says so. Metrics show this already.
        self.notes.update(notes[:-1] if is_doubtful else notes)
        return hits
