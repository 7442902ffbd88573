"""Endpoints for memory: what agents said and saw, in the domains that the server was started with."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from docindex_dagster import operations
from docindex_dagster.memory.fold import fold as fold_domain
from docindex_dagster.memory.memory import Memory
from docindex_dagster.memory.results import DomainStatus, Folding, Forgotten, Ingested, Receipt, Remembered
from docindex_dagster.operations.fields import LONGEST_NAME
from docindex_dagster.operations.memory import ForgetRequest, IngestRequest, RecallRequest
from docindex_dagster.search.model import Hit
from docindex_dagster.serving.http.client_disconnect import cancel_on_disconnect
from docindex_dagster.serving.http.paging import Page, Paged, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served_project import Project

router = APIRouter(prefix="/memory", tags=["memory"])
_JSON_LINES = "application/jsonl"
_READ_PROBLEMS = ("memory-off", "memory", "settings")
_WRITE_PROBLEMS = (*_READ_PROBLEMS, "unknown-domain", "full-disk")
_FOLD_PROBLEMS = (*_WRITE_PROBLEMS, "no-index", "upstream")
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "JSON Lines, one message per line, by time", "content": {_JSON_LINES: {"schema": {}}}}
}


class RecallListing(Paged, RecallRequest):
    """A search in memory."""

    limit: int = Field(default=10, ge=1, le=200, description="Maximum number of messages.")


class RecallAnswer(Page[Remembered]):
    """Messages, best first; on the first page also the requested code; and warnings about degraded results."""

    code: list[Hit]
    warnings: list[str]


def _memory(project: Project) -> Memory:
    if project.memory is None:
        raise ProblemError(
            "memory-off", "this server has no memory domain: start it with --domain memory/NAME to enable memory"
        )
    return project.memory


BoundMemory = Annotated[Memory, Depends(_memory)]


@router.post("/messages", responses=documented(*_WRITE_PROBLEMS, "message", "message-size", "rate", "quota"))
def ingest(memory: BoundMemory, new: IngestRequest) -> Ingested:
    """Store a message. It is on disk before the response, so any process finds it. Duplicates count once."""
    return operations.memory.ingest(memory, new)


@router.post(
    "/recall",
    dependencies=[Depends(cancel_on_disconnect)],
    responses=documented(*_READ_PROBLEMS, "unknown-domain", "query", "no-index", "upstream"),
)
def recall(memory: BoundMemory, request: RecallListing) -> RecallAnswer:
    """Find messages by words and by meaning, best first, with the current state of the code that they name."""
    about = request.about()
    start = start_of(request.cursor, about)
    found = operations.memory.recall(memory, request, start + request.limit + 1)
    page = page_of(found.messages, start, request.limit, about)
    code = [] if start else [*found.code]
    return RecallAnswer(items=page.items, next=page.next, code=code, warnings=[*found.warnings])


@router.post("/forget", responses=documented(*_WRITE_PROBLEMS, "query"))
def forget(memory: BoundMemory, request: ForgetRequest) -> Forgotten:
    """Hide a message, a session or the domain from all searches immediately. The next erasure deletes its bytes."""
    return operations.memory.forget(memory, request)


@router.get("/status", responses=documented(*_READ_PROBLEMS))
def memory_status(memory: BoundMemory) -> list[DomainStatus]:
    """List the domains that this server can reach, with their state. The one that it writes comes first."""
    return memory.status()


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={**documented(*_READ_PROBLEMS, "unknown-domain"), **_FILE},
)
def export(
    memory: BoundMemory,
    domain: Annotated[
        str | None,
        Query(max_length=LONGEST_NAME, description="A domain listed in the status. Default: the bound one."),
    ] = None,
) -> StreamingResponse:
    """Export all messages of a domain by time, as JSON Lines, with the number of repetitions of each."""
    return StreamingResponse(_with_first_line(memory.export(domain)), media_type=_JSON_LINES)


@router.post("/fold", responses=documented(*_FOLD_PROBLEMS))
def fold(memory: BoundMemory, project: Project) -> Folding:
    """Move waiting messages from the log to the stores, as runs do automatically. Returns when done.

    Forgotten messages are erased at the same time, which `receipt` confirms.
    """
    return fold_domain(project.settings, memory.bound)


@router.post("/erase", responses=documented(*_FOLD_PROBLEMS))
def erase(memory: BoundMemory, project: Project) -> Receipt:
    """Rewrite all files of the domain without forgotten messages, and read them again to prove it.

    Returns when done.
    """
    receipt = fold_domain(project.settings, memory.bound, erase=True).receipt
    assert receipt is not None  # noqa: S101 an erasure always returns one
    return receipt


def _with_first_line(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Wait for the first line, so that an error before it still becomes a problem, and return all lines."""
    first = next(lines, b"")

    def all_lines() -> Iterator[bytes]:
        yield first
        yield from lines

    return all_lines()
