"""Registry of rerankers, built-in and from installed packages.

A provider creates a reranker from the settings. For rerankers from packages, see docs/how-to/write-a-plug-in.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import RerankError, first_line
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import RerankSettings
from docindex_dagster.embedding.sentence_transformers import PROVIDER, download_model
from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking.protocol import Passage, Reranker, blend
from docindex_dagster.stores.analysis import terms

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Provider = Callable[[RerankSettings], Reranker]
DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"


def _mmr(settings: RerankSettings) -> Reranker:
    return MarginalRelevance(settings.candidates, settings.relevance)


def _cross_encoder(settings: RerankSettings) -> Reranker:
    return CrossEncoderReranker(settings.model or DEFAULT_MODEL, settings.candidates, settings.weight)


def _remote(settings: RerankSettings) -> Reranker:
    from docindex_dagster.search.reranking.remote import RemoteReranker

    if settings.url is None:
        raise RerankError("rerank.url is not set: set it to the endpoint of the reranking API")
    return RemoteReranker(
        settings.url, settings.model, settings.api_key, settings.candidates, settings.weight, settings.timeout_s
    )


PROVIDERS: Plugins[Provider] = Plugins(
    "reranker", plugins.RERANKERS, {"mmr": _mmr, "cross-encoder": _cross_encoder, "remote": _remote}, RerankError
)


def load_reranker(settings: RerankSettings, warn: Callable[[str], None]) -> Reranker | None:
    """Create the reranker named in the settings; None if it is "none". It loads its model when it first reranks.

    If a reranker cannot be loaded, warn and return None: the results keep their original order.
    """
    name = settings.provider
    if name == "none":
        return None
    try:
        return PROVIDERS.load(name)(settings)
    except Exception as error:  # noqa: BLE001 rerankers from packages may raise anything
        problem = str(error) if isinstance(error, RerankError) else f"{type(error).__name__}: {first_line(error)}"
        warn(f"the results are not reranked: rerank.provider = {name!r} cannot be used: {problem}")
        return None


@dataclass(frozen=True, slots=True)
class MarginalRelevance:
    """Reranker for diversity: `relevance` times the score, minus the rest times the similarity to earlier passages.

    Carbonell and Goldstein, SIGIR 1998. Similarity is the cosine between sets of terms: near-duplicates and overlapping
    windows share their words, so no vectors need to be read.
    """

    candidates: int = 50
    relevance: float = 0.5  # lambda in the paper

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:  # noqa: ARG002 required by the protocol
        """Return all passages, ordered by marginal relevance."""
        likeness = similarities([passage.text for passage in passages])
        scores = np.array([passage.scored.score for passage in passages])
        best = float(scores.max()) or 1.0
        relevance = self.relevance * scores / best
        repeats = np.zeros(len(passages))  # highest similarity to a passage already chosen
        left = np.ones(len(passages), bool)
        found = []
        for _ in passages:
            values = np.where(left, relevance - (1 - self.relevance) * repeats, -np.inf)
            chosen = int(values.argmax())
            left[chosen] = False
            repeats = np.maximum(repeats, likeness[chosen])
            item = passages[chosen].scored
            found.append(item.plus("mmr", float(values[chosen]) * best - item.score))
        return found


def similarities(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the cosine between the sets of terms of every pair of texts: float32 of shape (n, n), from 0 to 1."""
    sets = [set(terms(text)) for text in texts]
    columns = {term: at for at, term in enumerate(sorted(set().union(*sets)))}
    matrix = np.zeros((len(sets), max(1, len(columns))), np.float32)
    for row, words in enumerate(sets):
        matrix[row, [columns[word] for word in words]] = 1.0
    norms = np.sqrt(matrix.sum(axis=1, keepdims=True))
    unit = matrix / np.maximum(norms, 1.0)
    alike: NDArray[np.float32] = unit @ unit.T
    return alike


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """Reranker with a local model: a name on the hub, or the absolute path of a folder."""

    model: str = DEFAULT_MODEL
    candidates: int = 50
    weight: float = 0.5

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """Return all passages, ordered by the blend of their scores and the model's.

        Raises:
            RerankError: the extra is not installed, or the model cannot be loaded or used.
        """
        pairs = [(query, passage.text) for passage in passages]
        model = _cross_encoder_of(self.model)
        try:
            opinions = [float(opinion) for opinion in model.predict(pairs, show_progress_bar=False)]
        except Exception as error:
            raise RerankError(
                f"the model {self.model} does not return one score per passage: {first_line(error)}"
            ) from error
        return blend("rerank", passages, opinions, self.weight)


@cache
def _cross_encoder_of(model: str) -> "CrossEncoder":
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise RerankError(missing_extra_message("cross-encoder", PROVIDER)) from error
    try:
        # With a bare name, the library would load a folder of that name in the working directory and run its code.
        folder = model if Path(model).is_absolute() else download_model(model, PROVIDER)
        return CrossEncoder(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise RerankError(f"cannot load the model {model}: {first_line(error)}") from error
