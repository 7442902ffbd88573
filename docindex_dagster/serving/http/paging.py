"""Paged lists. Clients pass a cursor back unchanged, and it is valid only for the same request."""

from collections.abc import Sequence
from typing import Annotated, Generic, Self, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from docindex_dagster.core.hashing import digest
from docindex_dagster.serving.http.problems import ProblemError

_Item = TypeVar("_Item")
_MAX_START = 1_000_000
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of items.")]
Cursor = Annotated[
    str | None,
    Query(max_length=200, description="`next` of the previous page, with the same parameters."),
]


class Page(BaseModel, Generic[_Item]):
    """A page of a list."""

    items: list[_Item]
    next: str | None = Field(default=None, description="The cursor of the next page; null on the last page.")


class Answer(Page[_Item], Generic[_Item]):
    """Results from one generation, with warnings about degraded results."""

    generation: int
    warnings: list[str]


class Paged(BaseModel):
    """A paged list of results."""

    limit: int = Field(default=10, ge=1, le=200, description="Maximum number of results.")
    cursor: str | None = Field(default=None, max_length=200, description="`next` of the previous page.")

    def about(self) -> Self:
        """Return the request without its cursor and limit, which identifies the list."""
        return self.model_copy(update={"cursor": None, "limit": 1})


def start_of(cursor: str | None, request: object) -> int:
    """Return how many items of a list precede a page.

    Args:
        cursor: the cursor from a page; None for the first page.
        request: identifies the list; its `repr` must differ between requests.

    Raises:
        ProblemError: the cursor is not from a page of this list.
    """
    if cursor is None:
        return 0
    start, _, about = cursor.partition("-")
    fits = start.isascii() and start.isdecimal() and int(start) <= _MAX_START and about == _fingerprint(request)
    if not fits:
        raise ProblemError("invalid-request", "cursor: not from a page of this list; leave it out to start again")
    return int(start)


def cursor_at(start: int, request: object) -> str:
    """Return the cursor of the page that starts after a number of items."""
    return f"{start}-{_fingerprint(request)}"


def page_of(items: Sequence[_Item], start: int, limit: int, request: object) -> "Page[_Item]":
    """Return a page of a list that is completely known."""
    has_more = start + limit < len(items)
    return Page(items=list(items[start : start + limit]), next=cursor_at(start + limit, request) if has_more else None)


def _fingerprint(request: object) -> str:
    return digest(repr(request).encode())[:12]
