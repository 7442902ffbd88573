"""Pages of files, with marked lines and related code, and of commits."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pyarrow.compute as pc
from fastapi import APIRouter, Depends, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse

from docindex_dagster import operations
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.operations.fields import Name
from docindex_dagster.operations.log import LogRequest
from docindex_dagster.render.html import highlighting, links, pictures, prose
from docindex_dagster.render.html.templating import page, page_or_part
from docindex_dagster.search.file_text import Definition, FileText, read_file
from docindex_dagster.serving.http.client_disconnect import cancel_on_disconnect
from docindex_dagster.serving.http.files import split_place
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served_project import Project, ServedProject
from docindex_dagster.serving.web import relations
from docindex_dagster.serving.web.error_pages import trouble_of
from docindex_dagster.serving.web.relations import Relations
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.published_tables import read_commits
from docindex_dagster.stores.reader import Reader

router = APIRouter(dependencies=[Depends(cancel_on_disconnect)])
_MOST_LINES = 4000  # per page; a longer file is shown in parts
_BEFORE = 500  # lines shown before the marked ones in a part
_PROSE = frozenset({"markdown"})
_COMMITS = 40  # per page
_MAX_PAGES = 100


class Lines(BaseModel):
    """The lines of a file to mark, and how to show the file."""

    start: Annotated[int | None, Field(alias="from", ge=1)] = None
    end: Annotated[int | None, Field(alias="to", ge=1)] = None
    symbol: Annotated[str, Field(max_length=1000)] = ""
    form: Annotated[Literal["text", "prose"], Field(alias="as")] = "text"


@dataclass(frozen=True, slots=True)
class Line:
    """A line as HTML. `skipped` is the number of unindexed lines before it."""

    number: int
    html: Markup
    is_marked: bool
    is_first: bool  # the first piece with this number
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A file with everything that its template needs, or the reason why it cannot be shown."""

    file: FileText | None
    lines: Sequence[Line] = ()
    start: int | None = None
    end: int | None = None
    last: int = 0
    prose: Markup | None = None
    can_be_prose: bool = False
    relations: Relations | None = None
    picture: Markup | None = None
    trouble: ProblemError | None = None

    @property
    def address(self) -> str:
        """The URL of its page."""
        return links.to_file(self.file.source, self.file.path) if self.file else ""

    @property
    def outline(self) -> Sequence[Definition]:
        """The symbols or headings of the file."""
        return self.file.definitions if self.file else ()

    @property
    def folders(self) -> Sequence[tuple[str, str]]:
        """The folders above the file, each with its path."""
        if self.file is None:
            return ()
        names = self.file.path.split("/")[:-1]
        return [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)]

    @property
    def name(self) -> str:
        """The file name."""
        return posixpath.basename(self.file.path) if self.file else ""

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """The first and last line of each part of a file that is too long for one page."""
        if self.last <= _MOST_LINES:
            return ()
        return [(first, min(first + _MOST_LINES - 1, self.last)) for first in range(1, self.last + 1, _MOST_LINES)]


@router.get("/file/{place:path}")
@router.get("/part/file/{place:path}")
def file(project: Project, request: Request, place: str, asked: Annotated[Lines, Query()]) -> HTMLResponse:
    """Return the page of a file or a commit, or only the file, to be shown next to results."""
    is_page = not request.url.path.startswith("/part/")
    if is_page and f"/{COMMIT_PATH}" in place:
        return commit(project, request, place)
    return page_or_part(request, "file.html", opened=_opened(project, place, asked), is_page=is_page)


@router.get("/part/relations/{place:path}")
def around(project: Project, request: Request, place: str, asked: Annotated[Lines, Query()]) -> HTMLResponse:
    """Return only what is related to some lines of a file."""
    return page(request, "_relations.html", opened=_opened(project, place, asked))


def opened(project: ServedProject, place: str, start: int | None, end: int | None, symbol: str) -> Opened:
    """Return a file to be shown next to something else. An error must not hide the rest of the page."""
    lines = Lines.model_validate({"from": start, "to": end, "symbol": symbol})
    try:
        return _opened(project, place, lines)
    except (DocindexError, ProblemError) as error:
        return Opened(None, trouble=trouble_of(error))


def _opened(project: ServedProject, place: str, asked: Lines) -> Opened:
    def answer(reader: Reader) -> Opened:
        key, path = split_place(place, reader.generation.sources)
        try:
            found = read_file(project.settings, reader, key, path)
        except DocindexError as error:
            raise ProblemError("unknown-file", str(error)) from error
        lines = _marked(found, asked)
        start, end = lines or (None, None)
        near = relations.around(project.settings, reader, found, lines, asked.symbol)
        can_be_prose = (
            found.language in _PROSE and len(found.pieces) == 1 and len(found.pieces[0].text) <= prose.LONGEST
        )
        result = Opened(found, start=start, end=end, last=found.last_line, can_be_prose=can_be_prose, relations=near)
        picture = pictures.neighbourhood(near.symbol, near.callers, near.callees) if near.symbol else None
        result = replace(result, picture=picture)
        if asked.form == "prose" and can_be_prose:
            return replace(result, prose=prose.render_markdown(found.pieces[0].text, key, path))
        return replace(result, lines=list(_lines(found, start, end)))

    return project.reading(answer)


def _marked(found: FileText, asked: Lines) -> tuple[int, int] | None:
    """Return the lines to mark: the requested ones that exist, else those of the symbol."""
    if asked.start is None:
        return relations.lines_of(found.definitions, asked.symbol) if asked.symbol else None
    last = found.last_line
    if asked.start > last:
        raise ProblemError("invalid-request", f"from: {found.path} has lines 1 to {last}")
    return asked.start, min(max(asked.end or asked.start, asked.start), last)


def _lines(found: FileText, start: int | None, end: int | None) -> Iterator[Line]:
    """Yield the lines to show. For a long file, that is a part around the marked ones."""
    last = found.last_line
    first = 1 if last <= _MOST_LINES else max(1, (start or 1) - _BEFORE)
    seen, ends_at = 0, highlighting.highlighting_deadline()
    for piece in found.pieces:
        text = piece.text.removesuffix("\n")
        for number, html in enumerate(highlighting.lines_of(text, found.language, (), ends_at), start=piece.start_line):
            if first <= number < first + _MOST_LINES:
                is_marked = start is not None and start <= number <= (end or start)
                skipped = max(0, number - seen - 1) if seen or number == piece.start_line else 0
                is_new = number > seen
                yield Line(number, html, is_marked, is_new, skipped if seen >= first or first == 1 else 0)
            seen = max(seen, number)


class CommitQuery(BaseModel):
    """Filters for the commits to show. Empty fields are ignored."""

    q: Annotated[str, Field(max_length=20_000)] = ""
    source: Name = ""
    author: Name = ""
    since: Annotated[str, Field(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    path: Name = ""
    page: Annotated[int, Field(ge=1, le=_MAX_PAGES)] = 1

    def request(self) -> LogRequest:
        """Convert it to a request for the operation.

        Raises:
            QueryError: invalid date.
        """
        sources = [self.source] if self.source else []
        filters = {"author": self.author, "since": self.since, "path": self.path}
        return LogRequest.parse(query=self.q, sources=sources, **{name: text for name, text in filters.items() if text})


@dataclass(frozen=True, slots=True)
class Commits:
    """A page of the history."""

    rows: list[dict[str, Any]]
    has_more: bool = False


@router.get("/log")
def log(project: Project, request: Request, asked: Annotated[CommitQuery, Query()]) -> HTMLResponse:
    """Return the page with the newest commits, or with those that match a query."""
    found, trouble = Commits([]), None
    try:
        if read_generation(Layout(project.settings.home)) is not None:
            found = _found(project, asked)
    except (DocindexError, ProblemError) as error:
        trouble = trouble_of(error)
    status = trouble.kind.status if trouble else 200
    return page(request, "log.html", status, asked=asked, found=found, trouble=trouble, keys=_keys(project))


def newest(project: ServedProject, key: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest commits of a source."""
    return _found(project, CommitQuery(source=key)).rows[:limit]


def _found(project: ServedProject, asked: CommitQuery) -> Commits:
    start = (asked.page - 1) * _COMMITS
    end = start + _COMMITS

    request = asked.request()
    rows = project.viewing(lambda view: operations.log.log(view, request, end + 1))
    return Commits(rows[start:end], len(rows) > end)


def commit(project: ServedProject, request: Request, place: str) -> HTMLResponse:
    """Return the page of a commit."""

    def ask(reader: Reader) -> tuple[dict[str, Any], frozenset[str]]:
        key, path = split_place(place, reader.generation.sources)
        commits = read_commits(reader.layout, key)
        matching = commits.filter(pc.equal(commits["commit"], path.removeprefix(COMMIT_PATH))).to_pylist()
        if not matching:
            raise ProblemError("unknown-file", f"{key} has no indexed commit {path.removeprefix(COMMIT_PATH)}")
        return matching[0], frozenset(commits["commit"].to_pylist())

    found, known = project.reading(ask)
    return page(request, "commit.html", commit=found, parents=[(name, name in known) for name in found["parents"]])


def _keys(project: ServedProject) -> list[str]:
    try:
        return project.reading(
            lambda reader: [key for key, source in reader.generation.sources.items() if source.commits]
        )
    except DocindexError:
        return []
