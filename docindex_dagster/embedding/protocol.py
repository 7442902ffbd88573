"""What every embedding provider offers."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts; vectors have unit length, so that a dot product is a cosine."""

    @property
    def name(self) -> str:
        """The model's name. It changes when a text would get another vector: vectors of two names never meet."""
        ...

    @property
    def dimension(self) -> int:
        """Values of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longer texts are cut."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimension).

        Raises:
            EmbeddingError: the provider failed.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,).

        Raises:
            EmbeddingError: the provider failed.
        """
        ...
