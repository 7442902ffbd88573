"""Test models: small, of a different dimension than the default model, and recording what they embed."""

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
    """Embedder that hashes words into buckets, one per dimension, and counts them."""

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
    """Select this model in the settings and hide the default model, unless `with_default` is set."""
    offered = {"static": lambda _: model, **({"former": lambda _: StaticEmbedder()} if with_default else {})}
    monkeypatch.setattr(providers, "PROVIDERS", replace(providers.PROVIDERS, ours=offered))
    service._previous_embedder.cache_clear()
