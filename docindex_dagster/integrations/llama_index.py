"""Retriever for LlamaIndex, with `retrieve` and `aretrieve`, for use in any query engine."""

import asyncio
from typing import Unpack

from docindex_dagster.api import Index
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.integrations import Options, metadata_of
from docindex_dagster.search.model import Hit

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise ImportError(missing_extra_message("the retriever for LlamaIndex", "llama-index")) from error

# LlamaIndex writes metadata into prompts. Include only the fields that a model needs for citations.
_PROMPT_FIELDS = {"source", "path", "start_line", "end_line", "symbol", "page"}


class DocindexRetriever(BaseRetriever):
    """Retriever that returns the chunks of an index as LlamaIndex nodes.

    Each node holds the text of a chunk, its id, and the metadata from `metadata_of`. Language models see only the
    metadata that locates the text. `aretrieve` searches in a thread.

    Example:
        >>> DocindexRetriever(open_index(), top_k=4, languages="python").retrieve("how are sessions signed")
    """

    def __init__(
        self, index: Index, *, callback_manager: CallbackManager | None = None, **options: Unpack[Options]
    ) -> None:
        """Create a retriever with the options of `Index.search`."""
        super().__init__(callback_manager=callback_manager)
        self._index = index
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._index.search(query_bundle.query_str, **self._options)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        # The default implementation would block the event loop.
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(hit: Hit) -> TextNode:
    metadata = metadata_of(hit)
    hidden = sorted(metadata.keys() - _PROMPT_FIELDS)
    return TextNode(
        id_=hit.chunk_id,
        text=hit.text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
