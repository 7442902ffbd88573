"""Context: the best passages for a query, within a token budget."""

from pydantic import Field

from docindex_dagster.operations.search import SearchRequest
from docindex_dagster.operations.view import View
from docindex_dagster.search.context import Context


class ContextRequest(SearchRequest):
    """Collect passages to read or to put into a prompt."""

    tokens: int = Field(default=4000, ge=1, le=1_000_000, description="Token budget of the passages.")


def context(view: View, request: ContextRequest) -> Context:
    """Return passages in reading order, without duplicates.

    Raises:
        DocindexError: As for `Where.filters` and `search.service.context_of`.
    """
    from docindex_dagster.search import service

    return service.context_of(view.settings, view.reader, request.resolve(view, 0), request.tokens, view.warn)
