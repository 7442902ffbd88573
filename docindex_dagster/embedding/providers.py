"""The embedding providers by name, ours and those of installed packages.

A provider makes an embedder of the settings. Packages offer further ones under the entry-point group
`docindex.embedders`; see docs/embedders.md.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from docindex_dagster.embedding.minilm import MODEL, MiniLMEmbedder
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.sentence_transformers import DEFAULT_BATCH, SentenceTransformersEmbedder
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.errors import EmbeddingError
from docindex_dagster.settings import EMBEDDERS_GROUP, EmbeddingSettings

Provider = Callable[[EmbeddingSettings], Embedder]


def _static(_: EmbeddingSettings) -> Embedder:
    return StaticEmbedder()


def _openai(settings: EmbeddingSettings) -> Embedder:
    from docindex_dagster.embedding.openai import OpenAIEmbedder

    return OpenAIEmbedder(settings)


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


_OURS: Mapping[str, Provider] = {
    "static": _static,
    "openai": _openai,
    "minilm": _minilm,
    "sentence-transformers": _sentence_transformers,
}


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """The embedder that the settings name. Its weights are loaded when it first embeds.

    Raises:
        EmbeddingError: there is no such provider, its package cannot be imported, or the settings lack what it needs.
    """
    return _provider(settings.provider)(settings)


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
        updates = [{"provider": each, "model": None, "dimensions": None} for each in _names()]
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


def _names() -> list[str]:
    return [*_OURS, *sorted(entry_points(group=EMBEDDERS_GROUP).names - _OURS.keys())]


def _provider(name: str) -> Provider:
    if name in _OURS:
        return _OURS[name]
    try:
        return cast("Provider", _entry_point(name).load())
    except (ImportError, AttributeError) as error:
        raise EmbeddingError(f"the embedding provider {name!r} cannot be loaded: {error}") from error


@cache
def _entry_point(name: str) -> EntryPoint:
    found = entry_points(group=EMBEDDERS_GROUP)
    if name not in found.names:
        raise EmbeddingError(f"there is no embedding provider {name!r}; there are {', '.join(_names())}")
    return found[name]
