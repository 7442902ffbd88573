"""Writing the rows as the package carries them."""

import hashlib
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.embedding.static import FILE, as_bytes


def export(tokens: Sequence[str], rows: NDArray[np.float32]) -> tuple[int, str]:
    """Put the weights into the package; their bytes, and the hash that `embedding/static.py` has to name."""
    data = as_bytes(tokens, rows)
    with as_file(files("docindex_dagster.embedding")) as folder:
        (folder / FILE).write_bytes(data)
    return len(data), hashlib.sha256(data).hexdigest()
