"""A retriever for DSPy: a function, which is a step of a module, or a tool of an agent."""

from collections.abc import Callable
from typing import Unpack

from docindex_dagster.api import Index
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.integrations import Options, metadata_of

try:
    from dspy import Prediction
except ModuleNotFoundError as error:
    raise ImportError(needs_extra("the retriever for DSPy", "dspy")) from error


def retriever(index: Index, **options: Unpack[Options]) -> Callable[[str], Prediction]:
    """A function that finds chunks of an index for a query.

    Args:
        index: what is searched.
        options: those of `Index.search`.

    Returns:
        It gives `passages`, the texts, best first, and `metadata`, what `metadata_of` says of each.

    Example:
        >>> retriever(open_index(), top_k=4)("how are sessions signed").passages
    """

    def search(query: str) -> Prediction:
        """Search code and documentation: passages, best first, with the path and lines of each in `metadata`."""
        hits = index.search(query, **options)
        return Prediction(passages=[hit.text for hit in hits], metadata=[metadata_of(hit) for hit in hits])

    return search
