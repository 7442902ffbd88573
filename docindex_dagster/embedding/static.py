"""The default provider: a table of token vectors whose mean is a text's vector. No network, no key, no GPU."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.tokenizer import MODEL_NAME, load_tokenizer, model_file, normalize

if TYPE_CHECKING:
    from model2vec import StaticModel

_DIMENSION = 256
_MAX_TOKENS = 2048


class StaticEmbedder:
    """The `l2_supercat` token vectors of the wordllama wheel, pooled by model2vec."""

    name = MODEL_NAME
    dimension = _DIMENSION
    max_tokens = _MAX_TOKENS

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), 256) and unit length.

        A text without a single known token has no direction of its own; it gets a fixed one, since a zero vector could
        never be found nor verified.
        """
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        encoded = _model().encode(normalize(texts), max_length=self.max_tokens, show_progress_bar=False)
        vectors = np.asarray(encoded, np.float32)
        vectors[~vectors.any(axis=1), 0] = 1.0
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (256,) and unit length."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@cache
def _model() -> "StaticModel":
    from model2vec import StaticModel
    from safetensors.numpy import load_file

    weights = load_file(model_file("weights/l2_supercat_256.safetensors"))["embedding.weight"]
    return StaticModel(vectors=weights.astype(np.float32), tokenizer=load_tokenizer(), normalize=True)
