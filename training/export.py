"""Writing the rows as the package carries them."""

import hashlib
import io
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.embedding.static import FILE

_STEPS = 127  # of a value, to either side


def export(tokens: Sequence[str], rows: NDArray[np.float32]) -> tuple[int, str]:
    """Put the weights into the package; their bytes, and the hash that `embedding/static.py` has to name."""
    data = as_bytes(tokens, rows)
    with as_file(files("docindex_dagster.embedding")) as folder:
        (folder / FILE).write_bytes(data)
    return len(data), hashlib.sha256(data).hexdigest()


def as_bytes(tokens: Sequence[str], rows: NDArray[np.float32]) -> bytes:
    """The file for tokens and their rows, float32 (tokens, 256), whose values become steps of a scale of their row."""
    scales = np.maximum(np.abs(rows).max(axis=1) / _STEPS, np.finfo(np.float16).tiny).astype(np.float16)
    steps = np.rint(rows / scales.astype(np.float32)[:, None]).clip(-_STEPS, _STEPS).astype(np.int8)
    file = io.BytesIO()
    text = np.frombuffer("\n".join(tokens).encode(), np.uint8)
    np.savez(file, tokens=text, rows=steps, scales=scales)
    return file.getvalue()
