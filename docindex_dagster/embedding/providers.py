"""The embedding providers, by the name that the settings use."""

from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.settings import EmbeddingSettings

_PROVIDERS = {"static": StaticEmbedder}


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """The embedder that the settings name. Its weights are loaded when it first embeds."""
    return _PROVIDERS[settings.provider]()
