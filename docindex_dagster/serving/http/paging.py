"""Lists in pages: a cursor that clients pass back as it is, and that fits the request which gave it alone."""

from collections.abc import Sequence
from typing import Annotated, Generic, Self, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from docindex_dagster.core.hashing import digest
from docindex_dagster.serving.http.problems import ProblemError

_Item = TypeVar("_Item")
_MOST_START = 1_000_000
Limit = Annotated[int, Query(ge=1, le=200, description="How many items at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=200, description="Where to go on: `next` of the page before, with the same parameters."),
]


class Page(BaseModel, Generic[_Item]):
    """A part of a list."""

    items: list[_Item]
    next: str | None = Field(default=None, description="The cursor of the next page; null behind the last.")


class Answer(Page[_Item], Generic[_Item]):
    """Results of one generation, and what made them worse."""

    generation: int
    warnings: list[str]


class Paged(BaseModel):
    """A list of results in pages."""

    limit: int = Field(default=10, ge=1, le=200, description="How many results at most.")
    cursor: str | None = Field(default=None, max_length=200, description="`next` of the page before.")

    def about(self) -> Self:
        """The same list from its beginning, in pages of any size."""
        return self.model_copy(update={"cursor": None, "limit": 1})


def start_of(cursor: str | None, request: object) -> int:
    """How many items of a list stand before a page.

    Args:
        cursor: as a page gave it; None for the first page.
        request: what the list is of; its `repr` tells one request from another.

    Raises:
        ProblemError: no page of this list gave the cursor.
    """
    if cursor is None:
        return 0
    start, _, about = cursor.partition("-")
    fits = start.isascii() and start.isdecimal() and int(start) <= _MOST_START and about == _fingerprint(request)
    if not fits:
        raise ProblemError("invalid-request", "cursor: no page of this list gave it; leave it out to begin anew")
    return int(start)


def cursor_at(start: int, request: object) -> str:
    """The cursor of the page that begins behind so many items."""
    return f"{start}-{_fingerprint(request)}"


def page_of(items: Sequence[_Item], start: int, limit: int, request: object) -> "Page[_Item]":
    """A page of a list that is known whole."""
    rest = start + limit < len(items)
    return Page(items=list(items[start : start + limit]), next=cursor_at(start + limit, request) if rest else None)


def _fingerprint(request: object) -> str:
    return digest(repr(request).encode())[:12]
