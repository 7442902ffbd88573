"""Search: the best chunks for a query, or every match of a literal text or a regular expression."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from docindex_dagster.operations.fields import Name, Names, OneOrMore, Query
from docindex_dagster.operations.listing import ScopedRequest
from docindex_dagster.operations.view import View
from docindex_dagster.search.model import (
    RETRIEVING,
    Granularity,
    GranularityName,
    Hit,
    Intent,
    IntentName,
    Mode,
    ModeName,
    SourceType,
)

if TYPE_CHECKING:
    from docindex_dagster.search import service
    from docindex_dagster.search.filters import Filters
    from docindex_dagster.search.matches import Matches


class Where(ScopedRequest):
    """Filters on chunks. A chunk must match every filter that is set, with any of its values."""

    languages: Names = Field(default=[], description="Restrict to these languages, such as python or markdown.")
    human_languages: Names = Field(
        default=[], description="Restrict to documents written in these languages, such as en or pt."
    )
    types: Annotated[list[SourceType], OneOrMore] = Field(
        default=[], description="Restrict to these types of content. Commits are found only if requested."
    )
    kinds: Names = Field(default=[], description="Restrict to these kinds of symbols, such as function or class.")

    def filters(self, view: View) -> "Filters":
        """Return the filters for the stores.

        Raises:
            DocindexError: As for `scope`.
            QueryError: A language or kind of symbol is unknown.
        """
        from docindex_dagster.search.filters import Filters
        from docindex_dagster.search.scope import human_language, indexed_language, symbol_kind

        keys, glob = self.scope(view)
        return Filters(
            sources=keys,
            languages=tuple(indexed_language(view.reader.generation, name) for name in self.languages),
            human_languages=tuple(map(human_language, self.human_languages)),
            source_types=tuple(self.types),
            symbol_kinds=tuple(map(symbol_kind, self.kinds)),
            path_glob=glob,
            places=view.places,
        )


class SearchRequest(Where):
    """Search for the best chunks, or the best files."""

    query: Query = Field(description="What to search for: a question, words, a name, a path or an error message.")
    mode: ModeName = Field(
        default="hybrid",
        description="hybrid suits most queries; graph also follows calls and inheritance from the matches; literal and "
        "regex (RE2) list every match, by path and line.",
    )
    granularity: GranularityName = Field(default="chunk", description="Rank passages, or files by their best passage.")
    intent: IntentName | None = Field(
        default=None,
        description="Purpose of the query: look up a name, find the origin of an error, explain how something works, "
        "show an example, find the code to change (for a pasted bug report), or find text about a topic. By default, "
        "the form of the query decides.",
    )
    rerank: Name | None = Field(
        default=None,
        description="Reranker for the best results: none, mmr, cross-encoder, remote, or one from a plugin.",
    )

    @property
    def is_listing(self) -> bool:
        """Whether matches are listed instead of ranked results."""
        return Mode(self.mode) not in RETRIEVING and self.granularity == "chunk" and not self.rerank

    def resolve(self, view: View, top_k: int) -> "service.Request":
        """Return the request with filters for the stores.

        Raises:
            DocindexError: As for `Where.filters`.
        """
        from docindex_dagster.search import service

        mode, granularity = Mode(self.mode), Granularity(self.granularity)
        intent = Intent(self.intent) if self.intent else None
        return service.Request(self.query, mode, granularity, top_k, self.filters(view), self.rerank, intent)


class MatchesRequest(Where):
    """List every match of a literal text or a regular expression."""

    query: Query = Field(description="A literal text, or a regular expression (RE2).")
    mode: Literal["literal", "regex"] = Field(
        default="literal", description="Whether the query is a literal text or a regular expression."
    )


def search(view: View, request: SearchRequest, top_k: int) -> list[Hit]:
    """Return hits, best first.

    Raises:
        DocindexError: As for `Where.filters` and `search.service.hits_of`.
    """
    from docindex_dagster.search import service

    return service.hits_of(view.settings, view.reader, request.resolve(view, top_k), view.warn)


def matches(view: View, request: MatchesRequest | SearchRequest, limit: int) -> "Matches":
    """Return the first `limit` matches by source, path and line (0 for all), and the total number.

    Raises:
        DocindexError: As for `Where.filters` and `search.service.matches_of`.
    """
    from docindex_dagster.search import service

    resolved = service.Request(request.query, Mode(request.mode), top_k=limit, filters=request.filters(view))
    return service.matches_of(view.settings, view.reader, resolved, view.warn)
