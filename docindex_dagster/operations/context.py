"""Reading: the best passages for a query, within a budget of tokens."""

from pydantic import Field

from docindex_dagster.operations.search import SearchRequest
from docindex_dagster.operations.view import View
from docindex_dagster.search.context import Context


class ContextRequest(SearchRequest):
    """A context for a prompt or a reader."""

    tokens: int = Field(
        default=4000, ge=1, le=1_000_000, description="The budget: how many tokens the passages may have."
    )


def context(view: View, request: ContextRequest) -> Context:
    """Passages in reading order, without repeats.

    Raises:
        DocindexError: as `Where.filters` and `search.ask.context_of`.
    """
    from docindex_dagster.search import ask

    return ask.context_of(view.settings, view.reader, request.asked(view, 0), request.tokens, view.warn)
