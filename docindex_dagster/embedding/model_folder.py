"""A model of sentence-transformers as it lies in a folder: what can be said of it without loading it, or any library.

Its modules, the length of its vectors, and a fingerprint of the files that decide what they are. What would run code
that comes with a model, or unpickle its weights, is refused here.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from docindex_dagster.core.errors import EmbeddingError

MODULES, WEIGHTS, SHARDS = "modules.json", "model.safetensors", "model.safetensors.index.json"
# Two models whose files of these names are the same give the same vectors.
_OF_MODEL = (MODULES, "config_sentence_transformers.json")
_OF_MODULE = (
    "*.safetensors",
    "config.json",
    "sentence_*_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
)
_NEUTRAL = {"Normalize", "Dropout", "LayerNorm"}  # modules that keep the length of a vector
_DEFAULT_TOKENS = 512
_FINGERPRINT = 8  # characters


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model; `dimension` is None where its files do not say. Equal ones give equal vectors."""

    path: Path
    dimension: int | None
    max_tokens: int
    fingerprint: str


class _Module(BaseModel):
    path: str
    type: str

    @property
    def kind(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def is_known(self) -> bool:
        """Code of the library, in a folder of the model."""
        path = PurePosixPath(self.path)
        is_inside = not path.is_absolute() and ".." not in path.parts and "\0" not in self.path
        return is_inside and self.type.startswith("sentence_transformers.")


_MODULES = TypeAdapter(list[_Module])
_CONFIG = TypeAdapter(dict[str, Any])


def read_folder(path: Path) -> ModelFolder:
    """What lies in a folder. Its weights are hashed again when their size or time of change does not fit.

    Raises:
        EmbeddingError: it is no model of sentence-transformers, has code of its own, or no weights in safetensors.
    """
    try:
        modules = _MODULES.validate_json((path / MODULES).read_bytes())
        if not modules or not all(module.is_known for module in modules):
            raise EmbeddingError(f"the model in {path} has modules of its own: code that comes with a model is not run")
        for module in modules:
            _check_weights(module, path / module.path)
        return ModelFolder(path, _dimension(path, modules), _max_tokens(path, modules), _fingerprint(path, modules))
    except (OSError, ValidationError) as error:
        # What pydantic says of a file repeats parts of it.
        why = f"{error.filename} cannot be read" if isinstance(error, OSError) else "its configuration cannot be used"
        raise EmbeddingError(f"there is no model of sentence-transformers in {path}: {why}") from error


def is_complete(path: Path) -> bool:
    """Whether all of a model lies in a folder; a download may have been interrupted."""
    try:
        read_folder(path)
    except EmbeddingError:
        return False
    return True


def sha256(path: Path) -> str:
    """The hash of a file, kept while its size and time of change are the same.

    Raises:
        OSError: it cannot be read.
    """
    about = path.stat()
    return _sha256(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=512)
def _sha256(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_weights(module: _Module, folder: Path) -> None:
    has_weights = (folder / WEIGHTS).is_file()
    if module.kind == "Transformer" and not has_weights:
        # Large models have theirs in parts.
        index = _config(folder / SHARDS).get("weight_map")
        names = {str(name) for name in index.values()} if isinstance(index, dict) else set()
        has_weights = bool(names) and all("/" not in name and (folder / name).is_file() for name in names)
        if not has_weights:
            raise EmbeddingError(f"there is no {WEIGHTS} in {folder}: only weights in safetensors are loaded")
    if not has_weights and next(folder.glob("pytorch_model*"), None):
        raise EmbeddingError(f"the weights in {folder} are pickled: only weights in safetensors are loaded")


def _dimension(path: Path, modules: Sequence[_Module]) -> int | None:
    """What the last module says that changes the length of a vector."""
    module = next((module for module in reversed(modules) if module.kind not in _NEUTRAL), modules[0])
    config = _config(path / module.path / "config.json")
    if module.kind == "Dense":
        return _whole(config.get("out_features"))
    if module.kind == "Pooling":
        size = _whole(config.get("embedding_dimension")) or _whole(config.get("word_embedding_dimension"))
        return size * _ways_of_pooling(config) if size else None
    return None


def _ways_of_pooling(config: Mapping[str, Any]) -> int:
    """What each of them gives stands side by side in a vector."""
    ways = config.get("pooling_mode")
    if ways is None:
        return max(1, sum(value is True for key, value in config.items() if key.startswith("pooling_mode_")))
    return len(ways) if isinstance(ways, list) else 1


def _max_tokens(path: Path, modules: Sequence[_Module]) -> int:
    folder = path / modules[0].path
    configs = [_config(file) for file in sorted(folder.glob("sentence_*_config.json"))]
    given = [
        *(config.get("max_seq_length") for config in configs),
        _config(folder / "tokenizer_config.json").get("model_max_length"),
        _config(folder / "config.json").get("max_position_embeddings"),
    ]
    return min((tokens for value in given if (tokens := _whole(value))), default=_DEFAULT_TOKENS)


def _fingerprint(path: Path, modules: Sequence[_Module]) -> str:
    files = [path / name for name in _OF_MODEL]
    for folder in {path, *(path / module.path for module in modules)}:
        files += [file for pattern in _OF_MODULE for file in folder.glob(pattern)]
    lines = [f"{file.relative_to(path).as_posix()} {sha256(file)}" for file in sorted(set(files)) if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:_FINGERPRINT]


def _config(file: Path) -> dict[str, Any]:
    """What a file of settings holds; nothing where there is none."""
    return _CONFIG.validate_json(file.read_bytes()) if file.is_file() else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
