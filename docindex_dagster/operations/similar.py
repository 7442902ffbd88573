"""Similar chunks: those nearest to an indexed place, by cosine similarity."""

from pydantic import Field

from docindex_dagster.operations.fields import Place
from docindex_dagster.operations.listing import Listing
from docindex_dagster.operations.search import Where
from docindex_dagster.operations.view import View
from docindex_dagster.search.model import Hit


class SimilarRequest(Where):
    """Find what resembles a place; filters apply to the results."""

    place: Place
    same_file: bool = Field(default=False, description="Whether other places of the same file count.")


def similar(view: View, request: SimilarRequest, top_k: int) -> list[Hit]:
    """Return hits, nearest first; scores are cosines, -1 to 1.

    Raises:
        DocindexError: as `Where.filters` and `search.service.similar_to`.
    """
    from docindex_dagster.search import service

    wanted = service.Request(request.place, top_k=top_k, filters=request.filters(view))
    return service.similar_to(
        view.settings, view.reader, view.readings(request.place), wanted, view.warn, same_file=request.same_file
    )


SIMILAR: Listing[Hit] = Listing(
    title="Find what resembles a place",
    summary="Find what resembles an indexed place: duplicates, other ways to do the same, a page that explains it.",
    guidance="Gives places as `search` does; the score is the cosine of the vectors. Filters are of what is found. Use "
    "it with a place that `search` gave, as PATH:LINE; use `search` for what you can put into words.",
    request=SimilarRequest,
    run=similar,
    nothing="Nothing else is indexed there.",
)
