"""Protocol of embedding providers, and its optional extensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # shape (n, dimension), or (dimension,) for a single text


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts; vectors have unit length, so that a dot product is a cosine.

    Embedders are often constructed only for their name: postpone slow work until the first text is embedded.
    """

    @property
    def name(self) -> str:
        """Name of the model. It must change whenever vectors would change: vectors of different names never mix."""
        ...

    @property
    def dimension(self) -> int:
        """Number of values per vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Maximum length of a text in tokens; longer texts are truncated."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of shape (len(texts), dimension).

        Raises:
            EmbeddingError: the provider failed; a `PartialEmbeddingError` carries the vectors computed before that.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return a vector of shape (dimension,).

        Raises:
            EmbeddingError: the provider failed.
        """
        ...


@runtime_checkable
class Batched(Protocol):
    """An embedder that sets its own batch size and concurrency."""

    @property
    def batch_size(self) -> int:
        """Number of texts per call. The vectors a call returns are kept even if the run is killed afterwards."""
        ...

    @property
    def concurrency(self) -> int:
        """Number of concurrent calls, each from its own thread."""
        ...


@runtime_checkable
class Remote(Protocol):
    """An embedder whose texts leave this machine."""

    @property
    def endpoint(self) -> str:
        """The URL that texts and the key are sent to, without credentials."""
        ...


def endpoint_of(embedder: Embedder) -> str | None:
    """Return the URL an embedder sends texts to; None if they stay on this machine or the embedder does not say."""
    return embedder.endpoint if isinstance(embedder, Remote) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens that an embedder has used since its creation, and their cost."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = None  # in dollars; None if the price is unknown
    cut: int = 0  # texts that were truncated


@runtime_checkable
class Metered(Protocol):
    """An embedder that charges for its use."""

    def usage(self) -> Usage:
        """Return the usage so far."""
        ...


def cut_note(embedder: Embedder) -> str:
    """Return a note about texts truncated because they were too long for the model; empty if there were none."""
    cut = embedder.usage().cut if isinstance(embedder, Metered) else 0
    if not cut:
        return ""
    texts = "a text was" if cut == 1 else f"{cut:,} texts were"
    return f"{texts} longer than the limit of {embedder.name} and truncated: only word search finds the rest"
