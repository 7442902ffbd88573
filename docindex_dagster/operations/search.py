"""Searching: the best chunks for a query, or every place of an exact text."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from docindex_dagster.operations.fields import Name, Names, NamesOf, PathOf, Query, Request, Sources
from docindex_dagster.operations.view import View
from docindex_dagster.search.model import RETRIEVING, Granularity, GranularityName, Hit, Mode, ModeName, SourceType

if TYPE_CHECKING:
    from docindex_dagster.search import ask
    from docindex_dagster.search.filters import Filters
    from docindex_dagster.search.matches import Matches


class Where(Request):
    """Which chunks count. Each filter that is set must be met, by any of its values."""

    sources: Sources = Field(default=[])
    all_sources: bool = Field(default=False, description="Also further branches, and not the default source alone.")
    languages: Names = Field(default=[], description="Only these languages, such as python or markdown.")
    human_languages: Names = Field(
        default=[], description="Only documents that are written in these, such as en or pt."
    )
    types: Annotated[list[SourceType], NamesOf] = Field(
        default=[], description="Only files for this purpose. Commits are found only where they are asked for."
    )
    kinds: Names = Field(default=[], description="Only these kinds of symbols, such as function or class.")
    path: PathOf = Field(default=None)

    def filters(self, view: View) -> "Filters":
        """The filters that are meant.

        Raises:
            SourceError: a source is not known or not indexed.
            QueryError: nothing is indexed in a language, documents are written in no such language, there is no such
                kind of symbol, or a path from the root lies in no source.
        """
        from docindex_dagster.search.filters import Filters
        from docindex_dagster.search.scope import human_language, indexed_language, symbol_kind

        keys, glob = view.narrowed(self.sources, self.path, all_sources=self.all_sources)
        return Filters(
            sources=keys,
            languages=tuple(indexed_language(view.reader.generation, name) for name in self.languages),
            human_languages=tuple(map(human_language, self.human_languages)),
            source_types=tuple(self.types),
            symbol_kinds=tuple(map(symbol_kind, self.kinds)),
            path_glob=glob,
            places=view.places,
        )

    def has_several(self, view: View) -> bool:
        """Whether more than one source is searched.

        Raises:
            DocindexError: as `filters`.
        """
        return len(self.filters(view).sources) != 1


class SearchRequest(Where):
    """A search."""

    query: Query = Field(description="What to look for: a question, words, a name, a path or an error message.")
    mode: ModeName = Field(
        default="hybrid",
        description="hybrid suits nearly always; graph goes on from matches to what they call or inherit, and to who "
        "calls them; literal and regex (RE2) list every match, by path and line.",
    )
    granularity: GranularityName = Field(
        default="chunk", description="The best passages, or the best passage of each file."
    )
    rerank: Name | None = Field(
        default=None,
        description="Reorders the best results: none, mmr, cross-encoder, remote, or one of a package.",
    )

    @property
    def is_listing(self) -> bool:
        """Whether matches are asked for, and not ranked results."""
        return Mode(self.mode) not in RETRIEVING and self.granularity == "chunk" and not self.rerank

    def asked(self, view: View, top_k: int) -> "ask.Request":
        """The request with the filters that are meant.

        Raises:
            DocindexError: as `Where.filters`.
        """
        from docindex_dagster.search import ask

        mode, granularity = Mode(self.mode), Granularity(self.granularity)
        return ask.Request(self.query, mode, granularity, top_k, self.filters(view), self.rerank)


def search(view: View, request: SearchRequest, top_k: int) -> list[Hit]:
    """The best hits, best first.

    Raises:
        DocindexError: as `Where.filters` and `search.ask.hits_of`.
    """
    from docindex_dagster.search import ask

    return ask.hits_of(view.settings, view.reader, request.asked(view, top_k), view.warn)


def matches(view: View, request: SearchRequest, limit: int) -> "Matches":
    """Every place of an exact text or a pattern, the first `limit` of them with their files; 0 for all.

    Raises:
        DocindexError: as `Where.filters` and `search.ask.matches_of`.
    """
    from docindex_dagster.search import ask

    return ask.matches_of(view.settings, view.reader, request.asked(view, limit), view.warn)
