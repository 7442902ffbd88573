"""Models beside the default one: small, of another dimension, and with a record of what they embedded."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from docindex_dagster.embedding import providers
from docindex_dagster.embedding.protocol import Embedder, Vectors
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search import service


@dataclass
class TinyEmbedder:
    """Counts the words of a text in as many buckets as a vector has values."""

    name: str = "tiny"
    dimension: int = 8
    max_tokens: int = 512
    embedded: list[str] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, self.dimension)

    def embed_query(self, text: str) -> Vectors:
        vector = np.full(self.dimension, 0.01, np.float32)
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % self.dimension] += 1
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit


def offer(monkeypatch, model: Embedder, *, with_default: bool = False) -> None:
    """Let the settings name this model, and no provider have the default one, unless `with_default`."""
    offered = {"static": lambda _: model, **({"former": lambda _: StaticEmbedder()} if with_default else {})}
    monkeypatch.setattr(providers, "PROVIDERS", replace(providers.PROVIDERS, ours=offered))
    service._previous_embedder.cache_clear()
