"""Similar: the chunks nearest to an indexed chunk, by cosine similarity."""

from pydantic import Field

from docindex_dagster.operations.fields import Place
from docindex_dagster.operations.listing import Listing
from docindex_dagster.operations.search import Where
from docindex_dagster.operations.view import View
from docindex_dagster.search.model import Hit


class SimilarRequest(Where):
    """Find what resembles an indexed passage. The filters apply to the results."""

    place: Place
    same_file: bool = Field(default=False, description="Include results from the same file.")


def similar(view: View, request: SimilarRequest, top_k: int) -> list[Hit]:
    """Return hits, nearest first. Scores are cosine similarities, -1 to 1.

    Raises:
        DocindexError: As for `Where.filters` and `search.service.similar_to`.
    """
    from docindex_dagster.search import service

    resolved = service.Request(request.place, top_k=top_k, filters=request.filters(view))
    return service.similar_to(
        view.settings, view.reader, view.readings(request.place), resolved, view.warn, same_file=request.same_file
    )


SIMILAR: Listing[Hit] = Listing(
    title="Find similar passages",
    summary="Find duplicates and other passages similar to an indexed one.",
    guidance="Returns the same format as `search`; the score is the cosine similarity of the vectors. Filters apply to "
    "the results. Use it with a PATH:LINE from `search`; use `search` for what you can describe in words.",
    request=SimilarRequest,
    run=similar,
    nothing="No other passages are indexed there.",
)
