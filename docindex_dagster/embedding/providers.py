"""The embedding providers, by the name that the settings use."""

from collections.abc import Iterator

from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.settings import EmbeddingSettings

_PROVIDERS = {"static": StaticEmbedder}


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """The embedder that the settings name. Its weights are loaded when it first embeds."""
    return _PROVIDERS[settings.provider]()


def embedder_named(name: str) -> Embedder | None:
    """The embedder of a model that the settings may not name any more; None where no provider has it."""
    embedders: Iterator[Embedder] = (provider() for provider in _PROVIDERS.values())
    return next((embedder for embedder in embedders if embedder.name == name), None)
