"""Metadata of a sentence-transformers model folder, read without loading the model or any library.

Reads the modules, the dimension of the vectors, and a fingerprint of the files that determine them. Rejects models that
would run their own code or unpickle their weights.
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
# Models with equal files of these names produce equal vectors.
_MODEL_FILES = (MODULES, "config_sentence_transformers.json")
_MODULE_FILES = (
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
_NEUTRAL = {"Normalize", "Dropout", "LayerNorm"}  # modules that do not change the dimension
_DEFAULT_TOKENS = 512
_FINGERPRINT_LENGTH = 8  # characters


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model; `dimension` is None if its files do not specify it. Equal instances produce equal vectors."""

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
        """Whether the module is library code, with its files inside the model folder."""
        path = PurePosixPath(self.path)
        is_inside = not path.is_absolute() and ".." not in path.parts and "\0" not in self.path
        return is_inside and self.type.startswith("sentence_transformers.")


_MODULES = TypeAdapter(list[_Module])
_CONFIG = TypeAdapter(dict[str, Any])


def read_folder(path: Path) -> ModelFolder:
    """Read a model folder. Weights are hashed again only if their size or modification time changed.

    Raises:
        EmbeddingError: it is not a sentence-transformers model, has custom code, or lacks safetensors weights.
    """
    try:
        modules = _MODULES.validate_json((path / MODULES).read_bytes())
        if not modules or not all(module.is_known for module in modules):
            raise EmbeddingError(f"the model in {path} has custom modules: docindex does not run a model's own code")
        for module in modules:
            _check_weights(module, path / module.path)
        return ModelFolder(path, _dimension(path, modules), _max_tokens(path, modules), _fingerprint(path, modules))
    except (OSError, ValidationError) as error:
        # pydantic's message would repeat parts of the file.
        why = f"cannot read {error.filename}" if isinstance(error, OSError) else "invalid configuration"
        raise EmbeddingError(f"no sentence-transformers model in {path}: {why}") from error


def is_complete(path: Path) -> bool:
    """Return whether a folder holds a complete model; a download may have been interrupted."""
    try:
        read_folder(path)
    except EmbeddingError:
        return False
    return True


def sha256(path: Path) -> str:
    """Return the hash of a file, cached until its size or modification time changes.

    Raises:
        OSError: the file cannot be read.
    """
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=512)
def _sha256(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_weights(module: _Module, folder: Path) -> None:
    has_weights = (folder / WEIGHTS).is_file()
    if module.kind == "Transformer" and not has_weights:
        # Large models split their weights into shards.
        index = _config(folder / SHARDS).get("weight_map")
        names = {str(name) for name in index.values()} if isinstance(index, dict) else set()
        has_weights = bool(names) and all("/" not in name and (folder / name).is_file() for name in names)
        if not has_weights:
            raise EmbeddingError(f"{WEIGHTS} not found in {folder}: docindex loads only safetensors weights")
    if not has_weights and next(folder.glob("pytorch_model*"), None):
        raise EmbeddingError(f"the weights in {folder} are pickled: docindex loads only safetensors weights")


def _dimension(path: Path, modules: Sequence[_Module]) -> int | None:
    """Return the output dimension of the last module that changes the dimension."""
    module = next((module for module in reversed(modules) if module.kind not in _NEUTRAL), modules[0])
    config = _config(path / module.path / "config.json")
    if module.kind == "Dense":
        return _positive_int(config.get("out_features"))
    if module.kind == "Pooling":
        size = _positive_int(config.get("embedding_dimension")) or _positive_int(config.get("word_embedding_dimension"))
        return size * _count_pooling_modes(config) if size else None
    return None


def _count_pooling_modes(config: Mapping[str, Any]) -> int:
    """Return the number of pooling modes; their outputs are concatenated."""
    modes = config.get("pooling_mode")
    if modes is None:
        return max(1, sum(value is True for key, value in config.items() if key.startswith("pooling_mode_")))
    return len(modes) if isinstance(modes, list) else 1


def _max_tokens(path: Path, modules: Sequence[_Module]) -> int:
    folder = path / modules[0].path
    configs = [_config(file) for file in sorted(folder.glob("sentence_*_config.json"))]
    limits = [
        *(config.get("max_seq_length") for config in configs),
        _config(folder / "tokenizer_config.json").get("model_max_length"),
        _config(folder / "config.json").get("max_position_embeddings"),
    ]
    return min((tokens for value in limits if (tokens := _positive_int(value))), default=_DEFAULT_TOKENS)


def _fingerprint(path: Path, modules: Sequence[_Module]) -> str:
    files = [path / name for name in _MODEL_FILES]
    for folder in {path, *(path / module.path for module in modules)}:
        files += [file for pattern in _MODULE_FILES for file in folder.glob(pattern)]
    lines = [f"{file.relative_to(path).as_posix()} {sha256(file)}" for file in sorted(set(files)) if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:_FINGERPRINT_LENGTH]


def _config(file: Path) -> dict[str, Any]:
    """Return the contents of a config file, or an empty dict if it does not exist."""
    return _CONFIG.validate_json(file.read_bytes()) if file.is_file() else {}


def _positive_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
