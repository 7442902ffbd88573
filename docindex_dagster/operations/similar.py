"""Resemblance: what is like an indexed place, by the cosine of their vectors."""

from pydantic import Field

from docindex_dagster.operations.fields import Place
from docindex_dagster.operations.search import Where
from docindex_dagster.operations.view import View
from docindex_dagster.search.model import Hit


class SimilarRequest(Where):
    """What resembles a place; filters are of what is found."""

    place: Place
    same_file: bool = Field(default=False, description="Whether other places of the same file count.")


def similar(view: View, request: SimilarRequest, top_k: int) -> list[Hit]:
    """What resembles a place, nearest first.

    Raises:
        DocindexError: as `Where.filters` and `search.ask.similar_to`.
    """
    from docindex_dagster.search import ask

    wanted = ask.Request(request.place, top_k=top_k, filters=request.filters(view))
    return ask.similar_to(view.settings, view.reader, request.place, wanted, view.warn, same_file=request.same_file)
