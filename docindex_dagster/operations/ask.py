"""Ask: answer a question from passages, with or without a language model."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field

from docindex_dagster.answering import DEFAULT_TOKENS
from docindex_dagster.operations.fields import Query
from docindex_dagster.operations.search import Where
from docindex_dagster.operations.view import View

if TYPE_CHECKING:
    from docindex_dagster.answering.question import Question
    from docindex_dagster.stores.reader import Reader


class AskOptions(Where):
    """Options of a question. The filters apply to everything that is read for it."""

    agent: bool = Field(default=False, description="Let the model run further searches itself.")
    tokens: int = Field(
        default=DEFAULT_TOKENS, ge=100, le=100_000, description="Token budget of the passages that the model reads."
    )


class AskRequest(AskOptions):
    """Ask a question."""

    question: Query = Field(min_length=1, description="The question, in words.")


def question(request: AskRequest, view_of: "Callable[[Reader], View]") -> "Question":
    """Return the question for `answering.answer.answer`; `view_of` returns the view of a generation."""
    from docindex_dagster.answering.question import Question

    return Question(
        request.question, lambda reader: request.filters(view_of(reader)), request.tokens, is_for_agent=request.agent
    )
