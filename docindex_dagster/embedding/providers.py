"""The embedding providers by name, ours and those of installed packages.

A provider makes an embedder of the settings. For those of packages see docs/embedders.md.
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
            "sentence-transformers needs embedding.model: a name of the hub, as 'BAAI/bge-small-en-v1.5', or a folder, "
            "as './models/mine'"
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
    """The embedder that the settings name. Its weights are loaded when it first embeds.

    Raises:
        EmbeddingError: there is no such provider, its package cannot be imported, or the settings lack what it needs.
    """
    return PROVIDERS.load(settings.provider)(settings)


@cache
def shared_embedder(settings: EmbeddingSettings) -> Embedder:
    """The same, once for a process: its weights are loaded once, whoever asks.

    Raises:
        EmbeddingError: as `load_embedder`.
    """
    return load_embedder(settings)


def embedder_named(name: str, settings: EmbeddingSettings | None = None) -> Embedder | None:
    """The embedder of a model that the settings may not name any more; None where no provider has it.

    The names of our models say all of it: PROVIDER/MODEL/DIMENSION. What else a provider needs is in the settings, but
    for the key, which is that of the provider that they name and goes to no other.
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
