"""Log: the latest commits, or those about a topic."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from docindex_dagster.operations.fields import Moment, Name, Query
from docindex_dagster.operations.listing import Listing, ScopedRequest
from docindex_dagster.operations.view import View

if TYPE_CHECKING:
    from docindex_dagster.search.log import CommitFilters


class LogRequest(ScopedRequest):
    """List commits. A commit must match every filter that is set."""

    query: Query = Field(default="", description="The topic of the commits; empty for the latest.")
    author: Name | None = Field(default=None, description="Part of the author's name or email address.")
    since: Moment | None = Field(
        default=None, description="Earliest date or time, such as 2026-01-31 or 2026-01-31T12:00:00Z; UTC."
    )

    def filters(self, view: View) -> "CommitFilters":
        """Return the filters for the table of commits.

        Raises:
            DocindexError: As for `scope`.
        """
        from docindex_dagster.search.log import CommitFilters

        keys, glob = self.scope(view)
        return CommitFilters(keys, self.author, self.since, glob)


def log(view: View, request: LogRequest, top_k: int) -> list[dict[str, Any]]:
    """Return rows of the schema `COMMITS`: the best for a query, or the latest first.

    Raises:
        DocindexError: As for `LogRequest.filters` and `search.log.log`.
    """
    from docindex_dagster.search.log import commits_of

    filters = request.filters(view)
    return commits_of(view.settings, view.reader, request.query, top_k=top_k, filters=filters, warn=view.warn)


LOG: Listing[dict[str, Any]] = Listing(
    title="List commits",
    summary="List commits: the latest, or those about a topic.",
    guidance="Returns hash, date, author, subject and changed files. Use it to find out what changed, when and by "
    "whom; use `show` with a hash for the full message, and `search` for the current code.",
    request=LogRequest,
    run=log,
    nothing="No commits found. Try other words or fewer filters.",
)
