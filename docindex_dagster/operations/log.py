"""Log: the latest commits, or those about a topic."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from docindex_dagster.operations.fields import AllSources, Moment, Name, PathFilter, Query, Request, Sources
from docindex_dagster.operations.view import View

if TYPE_CHECKING:
    from docindex_dagster.search.log import CommitFilters


class LogRequest(Request):
    """List commits. A commit must match every filter that is set."""

    query: Query = Field(default="", description="What the commits are about; empty for the latest.")
    sources: Sources = Field(default=[])
    all_sources: AllSources = Field(default=False)
    author: Name | None = Field(default=None, description="Part of the author's name or e-mail address.")
    since: Moment | None = Field(
        default=None, description="Not before this, as 2026-01-31 or 2026-01-31T12:00:00Z; UTC."
    )
    path: PathFilter = Field(default=None)

    def filters(self, view: View) -> "CommitFilters":
        """Return the filters for the table of commits.

        Raises:
            SourceError: a source is unknown or not indexed.
            QueryError: no source contains an absolute path.
        """
        from docindex_dagster.search.log import CommitFilters

        keys, glob = view.resolve_scope(self.sources, self.path, all_sources=self.all_sources)
        return CommitFilters(keys, self.author, self.since, glob)


def log(view: View, request: LogRequest, top_k: int) -> list[dict[str, Any]]:
    """Return rows of the schema `COMMITS`: the best for a query, or without one the latest first.

    Raises:
        DocindexError: as `LogRequest.filters` and `search.log.log`.
    """
    from docindex_dagster.search.log import commits_of

    filters = request.filters(view)
    return commits_of(view.settings, view.reader, request.query, top_k=top_k, filters=filters, warn=view.warn)
