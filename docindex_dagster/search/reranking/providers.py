"""The rerankers, by the name that the settings use, ours and those of installed packages.

A provider makes a reranker of the settings. For those of packages see docs/rerankers.md.
"""

from collections.abc import Callable

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import RerankError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import RerankSettings
from docindex_dagster.search.reranking.protocol import Reranker

Provider = Callable[[RerankSettings], Reranker]


def _mmr(settings: RerankSettings) -> Reranker:
    from docindex_dagster.search.reranking.mmr import MarginalRelevance

    return MarginalRelevance(settings.candidates, settings.relevance)


def _cross_encoder(settings: RerankSettings) -> Reranker:
    from docindex_dagster.search.reranking.cross_encoder import DEFAULT_MODEL, CrossEncoderReranker

    return CrossEncoderReranker(settings.model or DEFAULT_MODEL, settings.candidates, settings.weight)


def _remote(settings: RerankSettings) -> Reranker:
    from docindex_dagster.search.reranking.remote import RemoteReranker

    if settings.url is None:
        raise RerankError("rerank.url must say where to post")
    return RemoteReranker(
        settings.url, settings.model, settings.api_key, settings.candidates, settings.weight, settings.timeout_s
    )


PROVIDERS: Plugins[Provider] = Plugins(
    "reranker", plugins.RERANKERS, {"mmr": _mmr, "cross-encoder": _cross_encoder, "remote": _remote}, RerankError
)


def load_reranker(settings: RerankSettings, warn: Callable[[str], None]) -> Reranker | None:
    """The reranker that the settings name; None for none. Its model is loaded when it first reranks.

    One of a package that cannot be used gives a warning, and none is used: the results come in their first order.
    """
    name = settings.provider
    if name == "none":
        return None
    try:
        return PROVIDERS.load(name)(settings)
    except Exception as error:  # noqa: BLE001 it may be of another package
        problem = str(error) if isinstance(error, RerankError) else f"{type(error).__name__}: {first_line(error)}"
        warn(f"the results are not reranked: rerank.provider = {name!r} cannot be used: {problem}")
        return None
