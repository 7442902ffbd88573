"""A file as it was indexed: its lines, of which some are marked, and what is around them."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.render.html import highlighting, links, pictures, prose
from docindex_dagster.render.html.templating import page, page_or_part
from docindex_dagster.search.file_text import Definition, FileText, read_file
from docindex_dagster.serving.http.files import split_place
from docindex_dagster.serving.http.leaving import until_it_leaves
from docindex_dagster.serving.http.problems import ProblemError
from docindex_dagster.serving.http.served import Project, Served
from docindex_dagster.serving.web import commits, relations
from docindex_dagster.serving.web.mistakes import trouble_of
from docindex_dagster.serving.web.relations import Relations
from docindex_dagster.stores.reader import Reader

router = APIRouter(dependencies=[Depends(until_it_leaves)])
_MOST_LINES = 4000  # of a page; a longer file is shown in parts
_BEFORE = 500  # lines of a part that are before the marked ones
_PROSE = frozenset({"markdown"})


class Lines(BaseModel):
    """Which lines of a file are meant, and how it is shown."""

    start: Annotated[int | None, Field(alias="from", ge=1)] = None
    end: Annotated[int | None, Field(alias="to", ge=1)] = None
    symbol: Annotated[str, Field(max_length=1000)] = ""
    form: Annotated[Literal["text", "prose"], Field(alias="as")] = "text"


@dataclass(frozen=True, slots=True)
class Line:
    """A line as HTML; `skipped` counts those before it that are not indexed."""

    number: int
    html: Markup
    is_marked: bool
    is_first: bool  # of its number
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A file with what its template needs; or why there is none."""

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
        """Its page."""
        return links.to_file(self.file.source, self.file.path) if self.file else ""

    @property
    def outline(self) -> Sequence[Definition]:
        """Its symbols or headings."""
        return self.file.definitions if self.file else ()

    @property
    def folders(self) -> Sequence[tuple[str, str]]:
        """The folders that it lies in, each with its path."""
        if self.file is None:
            return ()
        names = self.file.path.split("/")[:-1]
        return [(name, "/".join(names[: at + 1])) for at, name in enumerate(names)]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return posixpath.basename(self.file.path) if self.file else ""

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """The first and last lines of each part of a file that is too long for one page."""
        if self.last <= _MOST_LINES:
            return ()
        return [(first, min(first + _MOST_LINES - 1, self.last)) for first in range(1, self.last + 1, _MOST_LINES)]


@router.get("/file/{place:path}")
@router.get("/part/file/{place:path}")
def file(project: Project, request: Request, place: str, asked: Annotated[Lines, Query()]) -> HTMLResponse:
    """The page of a file, or of a commit; or a file alone, to be shown beside results."""
    is_page = not request.url.path.startswith("/part/")
    if is_page and f"/{COMMIT_PATH}" in place:
        return commits.commit(project, request, place)
    return page_or_part(request, "file.html", opened=_opened(project, place, asked), is_page=is_page)


@router.get("/part/relations/{place:path}")
def around(project: Project, request: Request, place: str, asked: Annotated[Lines, Query()]) -> HTMLResponse:
    """What is around some lines of a file, alone."""
    return page(request, "_relations.html", opened=_opened(project, place, asked))


def opened(project: Served, place: str, start: int | None, end: int | None, symbol: str) -> Opened:
    """A file that is shown beside something else, which a mistake in its place must not hide."""
    lines = Lines.model_validate({"from": start, "to": end, "symbol": symbol})
    try:
        return _opened(project, place, lines)
    except (DocindexError, ProblemError) as error:
        return Opened(None, trouble=trouble_of(error))


def _opened(project: Served, place: str, asked: Lines) -> Opened:
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
        made = Opened(found, start=start, end=end, last=found.last_line, can_be_prose=can_be_prose, relations=near)
        picture = pictures.neighbourhood(near.symbol, near.callers, near.callees) if near.symbol else None
        made = replace(made, picture=picture)
        if asked.form == "prose" and can_be_prose:
            return replace(made, prose=prose.rendered(found.pieces[0].text, key, path))
        return replace(made, lines=list(_lines(found, start, end)))

    return project.reading(answer)


def _marked(found: FileText, asked: Lines) -> tuple[int, int] | None:
    """The lines that are marked: those that are asked for, as far as there are some; else those of the symbol."""
    if asked.start is None:
        return relations.lines_of(found.definitions, asked.symbol) if asked.symbol else None
    last = found.last_line
    if asked.start > last:
        raise ProblemError("invalid-request", f"from: the lines of {found.path} are 1 to {last}")
    return asked.start, min(max(asked.end or asked.start, asked.start), last)


def _lines(found: FileText, start: int | None, end: int | None) -> Iterator[Line]:
    """The lines that are shown: of a long file, a part around the marked ones."""
    last = found.last_line
    first = 1 if last <= _MOST_LINES else max(1, (start or 1) - _BEFORE)
    seen, ends_at = 0, highlighting.end_of_colours()
    for piece in found.pieces:
        text = piece.text.removesuffix("\n")
        for number, html in enumerate(highlighting.lines_of(text, found.language, (), ends_at), start=piece.start_line):
            if first <= number < first + _MOST_LINES:
                is_marked = start is not None and start <= number <= (end or start)
                skipped = max(0, number - seen - 1) if seen or number == piece.start_line else 0
                is_new = number > seen
                yield Line(number, html, is_marked, is_new, skipped if seen >= first or first == 1 else 0)
            seen = max(seen, number)
