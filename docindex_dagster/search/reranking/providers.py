"""The rerankers, by the name that the settings use."""

from docindex_dagster.search.reranking.protocol import Reranker
from docindex_dagster.settings import RerankSettings


def load_reranker(settings: RerankSettings) -> Reranker | None:
    """The reranker that the settings name; None for none. Its model is loaded when it first reranks."""
    if settings.provider == "mmr":
        from docindex_dagster.search.reranking.mmr import MarginalRelevance

        return MarginalRelevance(settings.candidates, settings.relevance)
    if settings.provider == "cross-encoder":
        from docindex_dagster.search.reranking.cross_encoder import DEFAULT_MODEL, CrossEncoderReranker

        return CrossEncoderReranker(settings.model or DEFAULT_MODEL, settings.candidates, settings.weight)
    if settings.provider == "remote" and settings.url is not None:
        from docindex_dagster.search.reranking.remote import RemoteReranker

        return RemoteReranker(
            settings.url, settings.model, settings.api_key, settings.candidates, settings.weight, settings.timeout_s
        )
    return None
