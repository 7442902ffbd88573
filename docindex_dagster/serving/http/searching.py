"""Search, contexts, exact matches, and places that resemble one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Generic, TypeVar

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.search.ask import Request, context_of, hits_of, matches_of, similar_to
from docindex_dagster.search.context import ContextPassage
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.matches import Match
from docindex_dagster.search.model import Granularity, GranularityName, Hit, Mode, ModeName, SourceType
from docindex_dagster.search.scope import Narrowing, filters_of
from docindex_dagster.serving.http.leaving import until_it_leaves
from docindex_dagster.serving.http.paging import Page, cursor_at, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.stores.reader import Reader

router = APIRouter(tags=["search"], dependencies=[Depends(until_it_leaves)])
_PROBLEMS = documented("query", "source", "no-index", "settings", "upstream")
LONGEST_QUERY = 20_000
LONGEST_NAME, _MOST_NAMES = 1000, 100
MOST_RESULTS = 1000  # of a search, over all its pages
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Names = Annotated[list[Name], Field(max_length=_MOST_NAMES)]
_Answer = TypeVar("_Answer")


class Answer(Page[_Answer], Generic[_Answer]):
    """Results of one generation, and what made them worse."""

    generation: int
    warnings: list[str]


class Filtering(BaseModel):
    """Where to look; nothing of it need be said."""

    model_config = ConfigDict(extra="forbid")

    sources: Names = Field(default=[], description="Only these sources, by key or name. Default: all but branches.")
    languages: Names = Field(default=[], description="Only these languages, such as python or markdown.")
    human_languages: Names = Field(default=[], description="Only documents written in these, such as en.")
    types: Annotated[list[SourceType], Field(max_length=_MOST_NAMES)] = Field(
        default=[], description="Only files for this purpose. Commits are found only where they are asked for."
    )
    kinds: Names = Field(default=[], description="Only these kinds of symbols, such as function or class.")
    path: Name | None = Field(default=None, description="Only paths in this folder of a source, or that match a glob.")

    def filters(self, project: Served, reader: Reader) -> Filters:
        """The filters that are meant; a path is always one in a source, never one on the disk of the server."""
        narrowing = Narrowing(
            sources=self.sources,
            languages=self.languages,
            human_languages=self.human_languages,
            source_types=self.types,
            symbol_kinds=self.kinds,
        )
        glob = self.path.removeprefix("./") if self.path else None
        return replace(filters_of(project.settings, reader.generation, narrowing), path_glob=glob or None)


class _Listing(Filtering):
    """A list of results in pages."""

    limit: int = Field(default=10, ge=1, le=200, description="How many results at most.")
    cursor: str | None = Field(default=None, max_length=200, description="`next` of the page before.")

    def about(self) -> "_Listing":
        """The same list from its beginning, in pages of any size."""
        return self.model_copy(update={"cursor": None, "limit": 1})


class SearchRequest(_Listing):
    """A search."""

    query: Annotated[str, Field(max_length=LONGEST_QUERY, description="Words, a question, a name, a path, an error.")]
    mode: ModeName = Field(default="hybrid", description="Which retrievers answer; literal and regex read every text.")
    granularity: GranularityName = Field(default="chunk", description="The best chunks, or the best one of each file.")
    rerank: Name | None = Field(default=None, description="A reranker in place of the one in the settings.")


class MatchesRequest(_Listing):
    """A search for an exact text or a pattern."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    mode: Annotated[str, Field(pattern="^(literal|regex)$")] = "literal"
    limit: int = Field(default=100, ge=1, le=1000, description="How many matches at most.")


class SimilarRequest(_Listing):
    """What resembles a place."""

    place: Annotated[str, Field(max_length=LONGEST_NAME, description="SOURCE::PATH::INDEX, a chunk id, or PATH:LINE.")]
    same_file: bool = Field(default=False, description="Whether other places of the same file count.")


class ContextRequest(Filtering):
    """A context for a prompt."""

    query: Annotated[str, Field(max_length=LONGEST_QUERY)]
    tokens: int = Field(default=4000, ge=1, le=200_000, description="The budget.")


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The best passages that fit into a budget, and the same as Markdown."""

    query: str
    found: int
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]
    markdown: str
    generation: int
    warnings: list[str]


class MatchesAnswer(Answer[Match]):
    """Places of an exact text, and how many there are in all."""

    total: int
    files: int


@router.get("/search", responses=_PROBLEMS)
def search(project: Project, request: Annotated[SearchRequest, Query()]) -> Answer[Hit]:
    """Find chunks, best first. The items are those of `docindex search --json`."""
    return _search(project, request)


@router.post("/search", operation_id="search_by_body", responses=_PROBLEMS)
def search_by_body(project: Project, request: SearchRequest) -> Answer[Hit]:
    """Find chunks as `GET /search` does, for queries that are long or private."""
    return _search(project, request)


def _search(project: Served, request: SearchRequest) -> Answer[Hit]:
    def ask(reader: Reader, most: int, warn: Callable[[str], None]) -> list[Hit]:
        granularity = Granularity(request.granularity)
        filters = request.filters(project, reader)
        asked = Request(request.query, Mode(request.mode), granularity, most, filters, request.rerank)
        try:
            return hits_of(project.settings, reader, asked, warn)
        except SettingsError as error:
            if request.rerank is None:
                raise
            raise ProblemError("query", f"rerank: {error}") from error

    return _listed(project, request, ask)


@router.get("/similar", responses=_PROBLEMS)
def similar(project: Project, request: Annotated[SimilarRequest, Query()]) -> Answer[Hit]:
    """Find what resembles an indexed place, by the cosine of their vectors; filters are of what is found."""

    def ask(reader: Reader, most: int, warn: Callable[[str], None]) -> list[Hit]:
        asked = Request(request.place, top_k=most, filters=request.filters(project, reader))
        settings = project.settings
        return similar_to(settings, reader, request.place, asked, warn, same_file=request.same_file)

    return _listed(project, request, ask)


def _listed(
    project: Served, request: _Listing, ask: Callable[[Reader, int, Callable[[str], None]], list[Hit]]
) -> Answer[Hit]:
    """A page of what is found, of one generation. `ask` gets how many results are wanted, those before included."""
    start = start_of(request.cursor, request.about())
    most = min(start + request.limit + 1, MOST_RESULTS)
    warnings: list[str] = []

    def page(reader: Reader) -> Answer[Hit]:
        part = page_of(ask(reader, most, warnings.append), start, request.limit, request.about())
        return Answer(**dict(part), generation=reader.generation.number, warnings=warnings)

    return project.reading(page)


@router.get("/matches", responses=_PROBLEMS)
def matches(project: Project, request: Annotated[MatchesRequest, Query()]) -> MatchesAnswer:
    """List every place of an exact text or of a pattern (RE2), in order of source, path and line."""
    start = start_of(request.cursor, request.about())
    end = start + request.limit
    warnings: list[str] = []

    def page(reader: Reader) -> MatchesAnswer:
        asked = Request(request.query, Mode(request.mode), top_k=end, filters=request.filters(project, reader))
        found = matches_of(project.settings, reader, asked, warnings.append)
        return MatchesAnswer(
            items=list(found.matches[start:end]),
            next=cursor_at(end, request.about()) if end < found.total else None,
            generation=reader.generation.number,
            warnings=warnings,
            total=found.total,
            files=found.files,
        )

    return project.reading(page)


@router.get("/context", responses=_PROBLEMS)
def context(project: Project, request: Annotated[ContextRequest, Query()]) -> PackedContext:
    """Pack the best passages into a budget of tokens, in reading order, without repeats."""
    return _context(project, request)


@router.post("/context", operation_id="context_by_body", responses=_PROBLEMS)
def context_by_body(project: Project, request: ContextRequest) -> PackedContext:
    """Pack passages as `GET /context` does, for queries that are long or private."""
    return _context(project, request)


def _context(project: Served, request: ContextRequest) -> PackedContext:
    warnings: list[str] = []

    def ask(reader: Reader) -> PackedContext:
        asked = Request(request.query, filters=request.filters(project, reader))
        packed = context_of(project.settings, reader, asked, request.tokens, warnings.append)
        values = (packed.query, packed.found, packed.budget, packed.tokens, packed.passages, packed.markdown)
        return PackedContext(*values, generation=reader.generation.number, warnings=warnings)

    return project.reading(ask)
