"""A retriever for LangChain: `invoke`, `ainvoke`, `batch`, and a part of any chain."""

from collections.abc import Sequence
from typing import cast

from pydantic import ConfigDict, Field

from docindex_dagster.api import Index, Names
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.integrations import Options, metadata_of
from docindex_dagster.search.model import Granularity, Mode, SourceType

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    raise ImportError(needs_extra("the retriever for LangChain", "langchain")) from error


class DocindexRetriever(BaseRetriever):
    """Finds chunks of an index as documents of LangChain.

    The text of a document is the chunk, `id` its id, and `metadata` what `metadata_of` says. All fields but `index` are
    options of `Index.search`, and can be made configurable as those of any runnable. `ainvoke` searches in a thread of
    LangChain's pool.

    Example:
        >>> DocindexRetriever(index=open_index(), top_k=4, languages="python").invoke("how are sessions signed")
    """

    model_config = ConfigDict(extra="forbid")  # a filter that is misspelt would narrow nothing

    index: Index
    top_k: int | None = Field(default=None, ge=1)
    mode: Mode = Mode.HYBRID
    granularity: Granularity = Granularity.CHUNK
    sources: Names = ()
    all_sources: bool = False
    path: str | None = None
    languages: Names = ()
    human_languages: Names = ()
    source_types: SourceType | Sequence[SourceType] = ()
    symbol_kinds: Names = ()
    rerank: str | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager  # a search has no parts to report
        options = cast("Options", {name: getattr(self, name) for name in Options.__annotations__})
        return [
            Document(page_content=hit.text, id=hit.chunk_id, metadata=metadata_of(hit))
            for hit in self.index.search(query, **options)
        ]
