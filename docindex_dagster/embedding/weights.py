"""The weights of the static model: a file of the package, made by `training/`, described in docs/model.md."""

import hashlib
import io
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding.protocol import Vectors

FILE = "static.npz"
SHA256 = "e932ff3d10bf4956225179ae714e37bc528a61d1a41cc508af48df6092567c53"
# Other weights give other vectors, which must not meet these.
NAME = f"docindex-static-{SHA256[:8]}"
DIMENSION = 256
_STEPS = 127  # of a value, to either side


@cache
def load_weights() -> tuple[tuple[str, ...], Vectors]:
    """The tokens and their rows, float32 of shape (tokens, 256).

    Raises:
        EmbeddingError: the file is not the one that belongs to this version.
    """
    data = (files("docindex_dagster.embedding") / FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise EmbeddingError(f"{FILE}, the weights of the static model, is damaged: install docindex again")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        tokens = arrays["tokens"].tobytes().decode().split("\n")
        rows: Vectors = arrays["rows"] * arrays["scales"].astype(np.float32)[:, None]
    return tuple(tokens), rows


def as_bytes(tokens: Sequence[str], rows: Vectors) -> bytes:
    """The file for tokens and their rows, float32 (tokens, 256), whose values become steps of a scale of their row."""
    scales = np.maximum(np.abs(rows).max(axis=1) / _STEPS, np.finfo(np.float16).tiny).astype(np.float16)
    steps = np.rint(rows / scales.astype(np.float32)[:, None]).clip(-_STEPS, _STEPS).astype(np.int8)
    file = io.BytesIO()
    text = np.frombuffer("\n".join(tokens).encode(), np.uint8)
    np.savez(file, tokens=text, rows=steps, scales=scales)
    return file.getvalue()
