"""Retriever for DSPy: a function that works as a step of a module or as a tool of an agent."""

from collections.abc import Callable
from typing import Unpack

from docindex_dagster.api import Index
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.integrations import Options, metadata_of

try:
    from dspy import Prediction
except ModuleNotFoundError as error:
    raise ImportError(missing_extra_message("the retriever for DSPy", "dspy")) from error


def retriever(index: Index, **options: Unpack[Options]) -> Callable[[str], Prediction]:
    """Return a function that finds the chunks of an index that match a query.

    Args:
        index: the index to search.
        options: the options of `Index.search`.

    Returns:
        A function whose prediction holds `passages`, the texts, best first, and `metadata`, one `metadata_of` each.

    Example:
        >>> retriever(open_index(), top_k=4)("how are sessions signed").passages
    """

    def search(query: str) -> Prediction:
        """Search code and documentation. Returns passages, best first; `metadata` holds the path and lines of each."""
        hits = index.search(query, **options)
        return Prediction(passages=[hit.text for hit in hits], metadata=[metadata_of(hit) for hit in hits])

    return search
