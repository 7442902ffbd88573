"""Memory: what agents said and saw, of the domains that the server was started with."""

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
from docindex_dagster.serving.http.client_disconnect import until_it_leaves
from docindex_dagster.serving.http.paging import Page, Paged, page_of, start_of
from docindex_dagster.serving.http.problems import ProblemError, documented
from docindex_dagster.serving.http.served_project import Project

router = APIRouter(prefix="/memory", tags=["memory"])
_JSON_LINES = "application/jsonl"
_READING = ("memory-off", "memory", "settings")
_WRITING = (*_READING, "unknown-domain", "full-disk")
_FOLDING = (*_WRITING, "no-index", "upstream")
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A line of JSON for each message, by time", "content": {_JSON_LINES: {"schema": {}}}}
}


class RecallListing(Paged, RecallRequest):
    """A search in memory."""

    limit: int = Field(default=10, ge=1, le=200, description="How many messages at most.")


class RecallAnswer(Page[Remembered]):
    """Messages, best first; on the first page the code that was asked for with them; and what made them worse."""

    code: list[Hit]
    warnings: list[str]


def _memory(project: Project) -> Memory:
    if project.memory is None:
        raise ProblemError(
            "memory-off", "this server is bound to no domain: start it with --domain memory/NAME to let it remember"
        )
    return project.memory


Remembering = Annotated[Memory, Depends(_memory)]


@router.post("/messages", responses=documented(*_WRITING, "message", "message-size", "rate", "quota"))
def ingest(memory: Remembering, new: IngestRequest) -> Ingested:
    """Write a message, on the disk before it is answered, so that any process finds it. The same again counts once."""
    return operations.memory.ingest(memory, new)


@router.post(
    "/recall",
    dependencies=[Depends(until_it_leaves)],
    responses=documented(*_READING, "unknown-domain", "query", "no-index", "upstream"),
)
def recall(memory: Remembering, request: RecallListing) -> RecallAnswer:
    """Find messages by words and by meaning, best first, and what has become of the code that they name."""
    about = request.about()
    start = start_of(request.cursor, about)
    found = operations.memory.recall(memory, request, start + request.limit + 1)
    page = page_of(found.messages, start, request.limit, about)
    code = [] if start else [*found.code]
    return RecallAnswer(items=page.items, next=page.next, code=code, warnings=[*found.warnings])


@router.post("/forget", responses=documented(*_WRITING, "query"))
def forget(memory: Remembering, request: ForgetRequest) -> Forgotten:
    """Hide a message, a session or the domain from every search, at once. Its bytes go with the next erasure."""
    return operations.memory.forget(memory, request)


@router.get("/status", responses=documented(*_READING))
def memory_status(memory: Remembering) -> list[DomainStatus]:
    """List the domains that this server reaches, the one that it writes first, and how each is."""
    return memory.status()


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={**documented(*_READING, "unknown-domain"), **_FILE},
)
def export(
    memory: Remembering,
    domain: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Of those that the status lists; default: the written.")
    ] = None,
) -> StreamingResponse:
    """Give all messages of a domain by time, a line of JSON for each, with how often it came again."""
    return StreamingResponse(_begun(memory.export(domain)), media_type=_JSON_LINES)


@router.post("/fold", responses=documented(*_FOLDING))
def fold(memory: Remembering, project: Project) -> Folding:
    """Put what waits in the log into the stores, as runs do by themselves. It answers when it is done.

    What was forgotten is erased by it, and `receipt` says so.
    """
    return fold_domain(project.settings, memory.bound)


@router.post("/erase", responses=documented(*_FOLDING))
def erase(memory: Remembering, project: Project) -> Receipt:
    """Rewrite all files of the domain without what was forgotten, and read them to prove it.

    It answers when it is done.
    """
    receipt = fold_domain(project.settings, memory.bound, erase=True).receipt
    assert receipt is not None  # noqa: S101 an erasure gives one
    return receipt


def _begun(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The same lines, once the first is there: what goes wrong before it is answered as a problem."""
    first = next(lines, b"")

    def every() -> Iterator[bytes]:
        yield first
        yield from lines

    return every()
