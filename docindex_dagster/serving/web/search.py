"""Search page, with a file next to the results, and the results alone for updates while the user types."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse

from docindex_dagster.code.symbols import SYMBOL_KINDS
from docindex_dagster.core.errors import DocindexError, StoreError
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.evaluation.collected_questions import noted_places, target_of
from docindex_dagster.operations.fields import Name
from docindex_dagster.render.html import highlighting, pictures
from docindex_dagster.render.html.templating import page
from docindex_dagster.search.model import RETRIEVING, Hit, ModeName, Signal, SourceType
from docindex_dagster.serving.http import search
from docindex_dagster.serving.http.client_disconnect import cancel_on_disconnect
from docindex_dagster.serving.http.paging import Answer
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.search import SearchRequest
from docindex_dagster.serving.http.served_project import Project, ServedProject
from docindex_dagster.serving.web import files
from docindex_dagster.serving.web.error_pages import trouble_of
from docindex_dagster.sources import registry
from docindex_dagster.status import catalog
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.stores.reader import Reader

router = APIRouter(dependencies=[Depends(cancel_on_disconnect)])
_RESULTS = 15
MODES: Mapping[ModeName, str] = {
    "hybrid": "Words and meaning",
    "bm25": "Words",
    "vector": "Meaning",
    "graph": "Linked code",
    "literal": "Exact text",
    "regex": "Pattern (RE2)",
}
TYPES: Mapping[SourceType, str] = {
    "code": "Code",
    "doc": "Documents",
    "test": "Tests",
    "config": "Configuration",
    "commit": "Commits",
}


class SearchQuery(BaseModel):
    """A search and the file next to its results, as given in the URL. Empty fields are ignored."""

    q: Annotated[str, Field(max_length=20_000)] = ""
    source: Name = ""
    language: Name = ""
    type: SourceType | Literal[""] = ""
    kind: Name = ""
    path: Name = ""
    mode: ModeName | Literal[""] = ""
    cursor: Annotated[str, Field(max_length=200)] = ""
    at: Annotated[str, Field(max_length=2000)] = ""  # KIND/NAME/PATH of the file next to the results
    start: Annotated[int | None, Field(alias="from", ge=1)] = None
    end: Annotated[int | None, Field(alias="to", ge=1)] = None
    symbol: Name = ""

    @property
    def search(self) -> dict[str, str]:
        """The URL parameters that determine the results."""
        named = {
            "q": self.q,
            "source": self.source,
            "language": self.language,
            "type": self.type,
            "kind": self.kind,
            "path": self.path,
            "mode": "" if self.mode == "hybrid" else self.mode,
        }
        return {name: value for name, value in named.items() if value}

    @property
    def is_filtered(self) -> bool:
        """Whether filters limit the search."""
        return bool(self.source or self.language or self.type or self.kind or self.path)

    def request(self) -> SearchRequest:
        """Convert it to a request for the API."""
        return SearchRequest(
            query=self.q,
            mode=self.mode or "hybrid",
            sources=[self.source] if self.source else [],
            languages=[self.language] if self.language else [],
            types=[self.type] if self.type else [],
            kinds=[self.kind] if self.kind else [],
            path=self.path or None,
            limit=_RESULTS,
            cursor=self.cursor or None,
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """A result, with the lines of its snippet as HTML and the number of the first one."""

    hit: Hit
    lines: list[Markup]
    first_line: int
    largest: float  # the largest contribution of a signal
    is_noted: bool | None = None  # whether it is recorded as an answer to the query; None if that is not possible

    @property
    def folder(self) -> str:
        """The path without the file name."""
        return self.hit.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The file name."""
        return self.hit.path.rpartition("/")[2]

    def width(self, signal: Signal) -> float:
        """Return the contribution of a signal, in percent of the largest one."""
        return round(100 * abs(signal.contribution) / self.largest, 1) if self.largest else 0.0


@dataclass(frozen=True, slots=True)
class Choices:
    """The filters that a search offers."""

    sources: Sequence[str]
    languages: Sequence[str]
    types: Mapping[SourceType, str]
    kinds: Sequence[str]
    modes: Mapping[ModeName, str]


@router.get("/")
def home(project: Project, request: Request, asked: Annotated[SearchQuery, Query()]) -> HTMLResponse:
    """Return the search page."""
    values = _results(project, asked)
    opened = files.opened(project, asked.at, asked.start, asked.end, asked.symbol) if asked.at else None
    return page(request, "search.html", **values, opened=opened, query=asked.q)


@router.get("/part/results")
def results(project: Project, request: Request, asked: Annotated[SearchQuery, Query()]) -> HTMLResponse:
    """Return only the results."""
    return page(request, "_results.html", **_results(project, asked))


def shown(hit: Hit, *, is_noted: bool | None = None) -> Shown:
    """Return a result with everything that its template needs."""
    lines = _snippet(hit)
    largest = max((abs(signal.contribution) for signal in hit.signals), default=0.0)
    return Shown(hit, lines, hit.start_line + hit.snippet.offset, largest, is_noted)


def _show_all(project: ServedProject, asked: SearchQuery, hits: Sequence[Hit]) -> list[Shown]:
    """Return results. If questions are collected, ranked results show whether they are recorded as answers."""
    if not project.settings.evaluation.collect or asked.mode not in {"", *RETRIEVING}:
        return [shown(hit) for hit in hits]
    noted = noted_places(project.settings, asked.q)
    return [shown(hit, is_noted=_is_noted(hit, noted)) for hit in hits]


def _is_noted(hit: Hit, noted: Collection[tuple[str, str]]) -> bool | None:
    return None if hit.source_type == COMMIT else (hit.source, str(target_of(hit))) in noted


def _snippet(hit: Hit) -> list[Markup]:
    """Return the lines of the snippet, highlighted in the context of the chunk if they appear there unchanged."""
    snippet = hit.snippet
    count = snippet.text.count("\n") + 1
    if hit.text.split("\n")[snippet.offset : snippet.offset + count] != snippet.text.split("\n"):
        return highlighting.lines_of(snippet.text, hit.language, snippet.highlights)
    return highlighting.window_of(hit.text, hit.language, snippet.highlights, snippet.offset, count)


def _results(project: ServedProject, asked: SearchQuery) -> dict[str, Any]:
    """Return the results, or the indexed sources if there is no query, or the problem."""
    answer: Answer[Hit] | None = None
    trouble: ProblemError | None = None
    entries: list[CatalogEntry] = []
    choices = choices_of(project)
    if asked.q.strip():
        try:
            answer = search.search(project, asked.request())
        except (DocindexError, ProblemError) as error:
            trouble = trouble_of(error)
    else:
        entries = catalog.entries_of(project.settings)
    return {
        "asked": asked,
        "answer": answer,
        "hits": _show_all(project, asked, answer.items) if answer else [],
        "trouble": trouble,
        "entries": entries,
        "bars": {entry.source: pictures.languages(entry.languages) for entry in entries},
        "is_declared": bool(registry.sources(project.settings)),
        "choices": choices,
    }


def choices_of(project: ServedProject) -> Choices:
    """Return the filters for the published generation; without sources and languages if there is none."""

    def ask(reader: Reader) -> Choices:
        counts: dict[str, int] = {}
        for source in reader.generation.sources.values():
            for language, count in source.languages.items():
                counts[language] = counts.get(language, 0) + count
        languages = sorted(counts, key=lambda name: (-counts[name], name))
        return Choices(tuple(reader.generation.sources), languages, TYPES, SYMBOL_KINDS, MODES)

    try:
        return project.reading(ask)
    except StoreError:
        return Choices((), (), TYPES, SYMBOL_KINDS, MODES)
