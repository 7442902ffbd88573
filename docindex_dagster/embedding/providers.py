"""Registry of embedding providers, built-in and from installed packages.

A provider creates an embedder from the settings. Packages can add providers: docs/how-to/write-an-embedder.md.
"""

from collections.abc import Callable
from functools import cache

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.sentence_transformers import (
    DEFAULT_BATCH,
    MODEL,
    MiniLMEmbedder,
    SentenceTransformersEmbedder,
)
from docindex_dagster.embedding.static import StaticEmbedder

Provider = Callable[[EmbeddingSettings], Embedder]


def _static(_: EmbeddingSettings) -> Embedder:
    return StaticEmbedder()


def _minilm(settings: EmbeddingSettings) -> Embedder:
    return MiniLMEmbedder(
        settings.model or MODEL, device=settings.device, batch_size=settings.batch_size or DEFAULT_BATCH
    )


def _sentence_transformers(settings: EmbeddingSettings) -> Embedder:
    if settings.model is None:
        raise EmbeddingError(
            "sentence-transformers needs embedding.model: the name of a model on the hub, such as "
            "'BAAI/bge-small-en-v1.5', or a folder, such as './models/mine'"
        )
    return SentenceTransformersEmbedder(
        settings.model, settings.dimensions, settings.device, settings.batch_size or DEFAULT_BATCH
    )


PROVIDERS: Plugins[Provider] = Plugins(
    "embedding provider",
    plugins.EMBEDDERS,
    {
        "static": _static,
        "openai": "docindex_dagster.embedding.openai:OpenAIEmbedder",
        "minilm": _minilm,
        "sentence-transformers": _sentence_transformers,
    },
    EmbeddingError,
)


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """Create the embedder named in the settings. It loads its weights when it first embeds.

    Raises:
        EmbeddingError: provider not found, its package cannot be imported, or a required setting is missing.
    """
    return PROVIDERS.load(settings.provider)(settings)


@cache
def shared_embedder(settings: EmbeddingSettings) -> Embedder:
    """Return the process-wide embedder for the settings, which loads its weights only once.

    Raises:
        EmbeddingError: see `load_embedder`.
    """
    return load_embedder(settings)


def embedder_named(name: str, settings: EmbeddingSettings | None = None) -> Embedder | None:
    """Return the embedder with this name, even if the settings no longer select it; None if no provider has it.

    The names of built-in models are complete: PROVIDER/MODEL/DIMENSION. Other options come from the settings, except
    the key: it belongs to the provider in the settings and is passed to no other.
    """
    settings = settings or EmbeddingSettings()
    provider, _, rest = name.partition("/")
    model, _, dimension = rest.rpartition("/")
    if model and dimension.isdecimal():
        updates: list[dict[str, object]] = [{"provider": provider, "model": model, "dimensions": int(dimension)}]
    else:
        updates = [{"provider": each, "model": None, "dimensions": None} for each in PROVIDERS.names()]
    own, foreign = settings, settings.model_copy(update={"api_key": None})
    candidates = (
        (own if update["provider"] == own.provider else foreign).model_copy(update=update) for update in updates
    )
    return next((embedder for each in candidates if (embedder := _if_named(each, name))), None)


def _if_named(settings: EmbeddingSettings, name: str) -> Embedder | None:
    try:
        embedder = load_embedder(settings)
        is_named = embedder.name == name
    except EmbeddingError:
        return None
    return embedder if is_named else None
