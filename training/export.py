"""Serialization of the rows in the format of the package."""

import hashlib
import io
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.embedding.static import FILE

_STEPS = 127  # quantization steps of a value, in each direction


def export(tokens: Sequence[str], rows: NDArray[np.float32]) -> tuple[int, str]:
    """Write the weights into the package.

    Returns:
        Their size in bytes, and the SHA-256 hash that `embedding/static.py` must name.
    """
    data = as_bytes(tokens, rows)
    with as_file(files("docindex_dagster.embedding")) as folder:
        (folder / FILE).write_bytes(data)
    return len(data), hashlib.sha256(data).hexdigest()


def as_bytes(tokens: Sequence[str], rows: NDArray[np.float32]) -> bytes:
    """Serialize tokens and their rows, float32 (tokens, 256), quantized to int8 with one scale per row."""
    scales = np.maximum(np.abs(rows).max(axis=1) / _STEPS, np.finfo(np.float16).tiny).astype(np.float16)
    steps = np.rint(rows / scales.astype(np.float32)[:, None]).clip(-_STEPS, _STEPS).astype(np.int8)
    file = io.BytesIO()
    text = np.frombuffer("\n".join(tokens).encode(), np.uint8)
    np.savez(file, tokens=text, rows=steps, scales=scales)
    return file.getvalue()
