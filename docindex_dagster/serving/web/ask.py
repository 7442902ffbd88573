"""Page for asking questions with filters, and for feedback on answers.

Opening it sends no question: a link from elsewhere may contain one, and must not spend money.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse

from docindex_dagster.answering import feedback
from docindex_dagster.answering.citations import State
from docindex_dagster.answering.feedback import Cited, Feedback, Verdict
from docindex_dagster.answering.rendering import HOW_TO_SET
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import check_home
from docindex_dagster.operations.fields import LONGEST_QUERY
from docindex_dagster.render.html.templating import page
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.web import files
from docindex_dagster.serving.web.search import SearchQuery, choices_of

router = APIRouter()
_MAX_ANSWER, _MAX_COMMENT = 200_000, 4000
_MAX_CITATIONS = 1000
_Name = Annotated[str | None, Field(max_length=2000)]


class _SentModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SentCitation(_SentModel):
    """A citation of the rated answer."""

    number: Annotated[int, Field(ge=0, le=10**9)]
    state: State
    source: _Name = None
    path: _Name = None
    start_line: Annotated[int, Field(ge=0)] = 0
    end_line: Annotated[int, Field(ge=0)] = 0


class SentFeedback(_SentModel):
    """A verdict on an answer, as sent by the page."""

    verdict: Verdict
    question: Annotated[str, Field(max_length=LONGEST_QUERY)]
    answer: Annotated[str, Field(max_length=_MAX_ANSWER)]
    citations: Annotated[list[SentCitation], Field(max_length=_MAX_CITATIONS)] = []
    comment: Annotated[str, Field(max_length=_MAX_COMMENT)] = ""
    model: _Name = None
    generation: int | None = None

    def feedback(self) -> Feedback:
        """Convert it to the form that is stored."""
        citations = tuple(Cited(**citation.model_dump()) for citation in self.citations)
        return Feedback(**{**self.model_dump(), "citations": citations})


@router.get("/ask")
def ask(project: Project, request: Request, asked: Annotated[SearchQuery, Query()]) -> HTMLResponse:
    """Return the page, with the question from the URL in its form."""
    llm = project.settings.llm
    opened = files.opened(project, asked.at, asked.start, asked.end, asked.symbol) if asked.at else None
    return page(
        request,
        "ask.html",
        asked=asked,
        choices=choices_of(project),
        opened=opened,
        model=None if llm.provider == "none" else "/".join(filter(None, (llm.provider, llm.model))),
        how_to_set=HOW_TO_SET,
        longest=LONGEST_QUERY,
    )


@router.post("/ask/feedback", status_code=201)
def note(project: Project, sent: SentFeedback) -> dict[Literal["noted"], bool]:
    """Store a user's verdict on an answer in a file of this project."""
    settings = project.settings
    check_home(settings)
    feedback.note(Layout(settings.home), sent.feedback())
    return {"noted": True}
