"""Memory: write messages into the domain of a server, recall them, forget them."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from docindex_dagster.core.errors import DomainError, QueryError
from docindex_dagster.memory.message import Role
from docindex_dagster.operations.fields import LastMoment, Name, Names, OneOrMore, Query, Request, Text

if TYPE_CHECKING:
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.memory.results import Forgotten, Ingested, Recalled

_SHOWN = 100  # characters of what a client sent that are repeated
Domain = Annotated[
    Name | None, Field(description="The domain that this server writes, which need not be named; no other one.")
]


class IngestRequest(Request):
    """Write a message of a conversation."""

    text: Text = Field(description="What was said, whole and as it was; a blank one is not written.")
    session: Name = Field(description="The conversation that it belongs to: any name, the same each time.")
    role: Name = Field(
        default="unknown", description="Who said it: user, assistant, system or tool; anything else becomes unknown."
    )
    tool: Name = Field(default="", description="Which tool answered; what is longer than 64 characters is cut.")
    message_id: Name | None = Field(
        default=None,
        description="Your own id of it, by which it counts once if it is written again. Default: its whole text.",
    )
    domain: Domain = Field(default=None)


class ToolResultRequest(IngestRequest):
    """Write the output of a tool."""

    tool: Name = Field(description="Which tool answered; what is longer than 64 characters is cut.")


class RecallRequest(Request):
    """Search memory."""

    query: Query = Field(description="Words or a question.")
    domains: Names = Field(
        default=[], description="Only these domains, of those that the status of memory lists. Default: all of them."
    )
    sessions: Names = Field(default=[], description="Only these conversations.")
    roles: Annotated[list[Role], OneOrMore] = Field(default=[], description="Only what these said.")
    as_of: LastMoment | None = Field(
        default=None, description="What was known then, as 2026-01-31 or 2026-01-31T12:00:00Z; UTC. Default: now."
    )
    code: bool = Field(default=False, description="Whether to search the indexed code and documentation as well.")
    impact: bool = Field(default=False, description="Whether to add what depends on the code that the messages name.")


class ForgetRequest(Request):
    """Forget exactly one of these."""

    message: Name | None = Field(default=None, description="One message, by its id.")
    session: Name | None = Field(default=None, description="All of a conversation.")
    domain: Name | None = Field(default=None, description="All of the domain that this server writes, by its name.")


def ingest(memory: "Memory", request: IngestRequest) -> "Ingested":
    """Write a message.

    Raises:
        DomainError: it names another domain than the one that is written.
        DocindexError: as `Memory.ingest`.
    """
    check_written(memory, request.domain)
    one = request
    return memory.ingest(one.text, session=one.session, role=one.role, tool=one.tool, message_id=one.message_id)


def recall(memory: "Memory", request: RecallRequest, top_k: int) -> "Recalled":
    """Return messages, best first.

    Raises:
        DocindexError: as `Memory.recall`.
    """
    return memory.recall(
        request.query,
        domains=request.domains,
        sessions=request.sessions,
        roles=request.roles,
        as_of=request.as_of,
        top_k=top_k,
        with_code=request.code,
        with_impact=request.impact,
    )


def forget(memory: "Memory", request: ForgetRequest) -> "Forgotten":
    """Hide a message, a conversation, or the whole domain, which must be named.

    Raises:
        QueryError: none of the three is given, or several are.
        DomainError: the domain is not the one that is written.
    """
    check_written(memory, request.domain)
    if sum(given is not None for given in (request.message, request.session, request.domain)) != 1:
        raise QueryError("give either a message, or a session, or the domain: what is given is forgotten, and no more")
    return memory.forget(message=request.message, session=request.session, everything=request.domain is not None)


def check_written(memory: "Memory", domain: str | None) -> None:
    """Reject every domain but the bound one, without revealing whether it exists.

    Raises:
        DomainError: it is another domain.
    """
    if domain is not None and domain != memory.bound:
        raise DomainError(f"{domain[:_SHOWN]!r} cannot be written here: leave the domain out, or give {memory.bound}")
