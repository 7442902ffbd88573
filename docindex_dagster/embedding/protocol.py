"""What every embedding provider offers, and what it may offer besides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # shape (n, dimension), or (dimension,) for one


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts; vectors have unit length, so that a dot product is a cosine.

    It is made often, for its name alone: what is slow waits until a text is embedded.
    """

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
            EmbeddingError: the provider failed; a `PartialEmbeddingError` has the vectors that it gave before.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,).

        Raises:
            EmbeddingError: the provider failed.
        """
        ...


@runtime_checkable
class Batched(Protocol):
    """An embedder that says how it wants to be asked."""

    @property
    def batch_size(self) -> int:
        """Texts of one call; what a call returns is safe from then on, even if the run is killed."""
        ...

    @property
    def concurrency(self) -> int:
        """Calls at once, from so many threads."""
        ...


@runtime_checkable
class Remote(Protocol):
    """An embedder whose texts leave this machine."""

    @property
    def endpoint(self) -> str:
        """The URL that texts and the key are sent to, without credentials."""
        ...


def endpoint_of(embedder: Embedder) -> str | None:
    """Where an embedder sends texts; None where they stay on this machine, or that is unknown."""
    return embedder.endpoint if isinstance(embedder, Remote) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an embedder was asked for since it was made."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = None  # in dollars; None where no price is known
    cut: int = 0  # texts that were too long


@runtime_checkable
class Metered(Protocol):
    """An embedder that is paid for."""

    def usage(self) -> Usage:
        """What it was asked for so far."""
        ...


def cut_note(embedder: Embedder) -> str:
    """What a user should know of texts that were too long for a model; empty where none was."""
    cut = embedder.usage().cut if isinstance(embedder, Metered) else 0
    if not cut:
        return ""
    texts = "a text was" if cut == 1 else f"{cut:,} texts were"
    return f"{texts} longer than {embedder.name} takes, and cut: what their ends say is found by words alone"
