"""A cross-encoder of sentence-transformers, which reads the query and a passage together. It needs the extra."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import RerankError, first_line
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.embedding.sentence_transformers import PROVIDER, fetched_folder
from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking.protocol import Passage, blend

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """Scores each passage by a model that runs here: a name on the hub, or the absolute path of a folder."""

    model: str = DEFAULT_MODEL
    candidates: int = 50
    weight: float = 0.5

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """All of the passages, by the blend of their scores and the model's.

        Raises:
            RerankError: the extra is not installed, or the model cannot be loaded or used.
        """
        pairs = [(query, passage.text) for passage in passages]
        model = _load(self.model)
        try:
            opinions = [float(opinion) for opinion in model.predict(pairs, show_progress_bar=False)]
        except Exception as error:
            raise RerankError(
                f"the model {self.model} does not give one score a passage: {first_line(error)}"
            ) from error
        return blend("rerank", passages, opinions, self.weight)


@cache
def _load(model: str) -> "CrossEncoder":
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise RerankError(needs_extra("cross-encoder", PROVIDER)) from error
    try:
        # The library would take a folder of that name in the working directory, and run the code in it.
        folder = model if Path(model).is_absolute() else fetched_folder(model, PROVIDER)
        return CrossEncoder(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise RerankError(f"the model {model} cannot be loaded: {first_line(error)}") from error
