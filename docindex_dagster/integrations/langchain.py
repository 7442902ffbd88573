"""Retriever for LangChain, with `invoke`, `ainvoke` and `batch`, for use in any chain."""

from collections.abc import Sequence
from typing import cast

from pydantic import ConfigDict, Field

from docindex_dagster.api import Index, Names
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.integrations import Options, metadata_of
from docindex_dagster.search.model import Granularity, Intent, Mode, SourceType

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    raise ImportError(missing_extra_message("the retriever for LangChain", "langchain")) from error


class DocindexRetriever(BaseRetriever):
    """Retriever that returns the chunks of an index as LangChain documents.

    Each document holds the text of a chunk, its id, and the metadata from `metadata_of`. All fields except `index` are
    options of `Index.search` and can be made configurable like those of any runnable. `ainvoke` searches in a thread
    of LangChain's pool.

    Example:
        >>> DocindexRetriever(index=open_index(), top_k=4, languages="python").invoke("how are sessions signed")
    """

    model_config = ConfigDict(extra="forbid")  # otherwise a misspelled filter would be ignored

    index: Index
    top_k: int | None = Field(default=None, ge=1)
    mode: Mode = Mode.HYBRID
    granularity: Granularity = Granularity.CHUNK
    intent: Intent | None = None
    sources: Names = ()
    all_sources: bool = False
    path: str | None = None
    languages: Names = ()
    human_languages: Names = ()
    source_types: SourceType | Sequence[SourceType] = ()
    symbol_kinds: Names = ()
    rerank: str | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager  # a search has no sub-steps to report
        options = cast("Options", {name: getattr(self, name) for name in Options.__annotations__})
        return [
            Document(page_content=hit.text, id=hit.chunk_id, metadata=metadata_of(hit))
            for hit in self.index.search(query, **options)
        ]
