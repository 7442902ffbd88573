"""Memory: store messages in a server's domain, recall and forget them."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from docindex_dagster.core.errors import DomainError, QueryError
from docindex_dagster.memory.message import Role
from docindex_dagster.operations.fields import LastMoment, Name, Names, OneOrMore, Query, Request, Text

if TYPE_CHECKING:
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.memory.results import Forgotten, Ingested, Recalled

_MAX_INPUT_LENGTH = 100  # characters of a client's input that a message repeats
Domain = Annotated[
    Name | None, Field(description="The domain that this server writes to. It may be omitted; no other is accepted.")
]


class IngestRequest(Request):
    """Store a message of a conversation."""

    text: Text = Field(description="The full, unchanged text of the message. A blank text is not stored.")
    session: Name = Field(description="The conversation of the message: any name, the same for all its messages.")
    role: Name = Field(
        default="unknown", description="user, assistant, system or tool; anything else is stored as unknown."
    )
    tool: Name = Field(default="", description="Name of the tool that answered, cut to 64 characters.")
    message_id: Name | None = Field(
        default=None,
        description="Your own ID. A message with the same ID is stored once. Default: derived from its full text.",
    )
    domain: Domain = Field(default=None)


class ToolResultRequest(IngestRequest):
    """Store the output of a tool."""

    tool: Name = Field(description="Name of the tool that answered, cut to 64 characters.")


class RecallRequest(Request):
    """Search memory."""

    query: Query = Field(description="Words, or a question.")
    domains: Names = Field(
        default=[], description="Restrict to these domains, as listed by the memory status. Default: all of them."
    )
    sessions: Names = Field(default=[], description="Restrict to these conversations.")
    roles: Annotated[list[Role], OneOrMore] = Field(default=[], description="Restrict to messages of these roles.")
    as_of: LastMoment | None = Field(
        default=None,
        description="Recall what was known then, such as 2026-01-31 or 2026-01-31T12:00:00Z; UTC. Default: now.",
    )
    code: bool = Field(default=False, description="Also search the indexed code and documentation.")
    impact: bool = Field(default=False, description="Also list what depends on the code that the messages mention.")


class ForgetRequest(Request):
    """Forget exactly one of these."""

    message: Name | None = Field(default=None, description="A message, by its ID.")
    session: Name | None = Field(default=None, description="Every message of a conversation.")
    domain: Name | None = Field(default=None, description="Every message of this server's domain, given by its name.")


def ingest(memory: "Memory", request: IngestRequest) -> "Ingested":
    """Store a message.

    Raises:
        DomainError: The request names a domain that this server does not write to.
        DocindexError: As for `Memory.ingest`.
    """
    check_written(memory, request.domain)
    one = request
    return memory.ingest(one.text, session=one.session, role=one.role, tool=one.tool, message_id=one.message_id)


def recall(memory: "Memory", request: RecallRequest, top_k: int) -> "Recalled":
    """Return messages, best first.

    Raises:
        DocindexError: As for `Memory.recall`.
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
    """Hide a message, a conversation, or the entire domain, which must be named.

    Raises:
        QueryError: Not exactly one of the three is given.
        DomainError: This server does not write to the domain.
    """
    check_written(memory, request.domain)
    if sum(value is not None for value in (request.message, request.session, request.domain)) != 1:
        raise QueryError("pass exactly one of message, session and domain")
    return memory.forget(message=request.message, session=request.session, everything=request.domain is not None)


def check_written(memory: "Memory", domain: str | None) -> None:
    """Reject every domain except the bound one, without revealing whether it exists.

    Raises:
        DomainError: It is another domain.
    """
    if domain is not None and domain != memory.bound:
        raise DomainError(
            f"cannot write to domain {domain[:_MAX_INPUT_LENGTH]!r}: omit the domain, or use {memory.bound}"
        )
