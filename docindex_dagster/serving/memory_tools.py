"""MCP tools for memory: five tools for the domain that their server is bound to."""

from collections.abc import Mapping
from typing import Any

from docindex_dagster import operations
from docindex_dagster.core.signatures import parameters_from_fields, with_parameters
from docindex_dagster.memory.memory import Memory
from docindex_dagster.operations.memory import ForgetRequest, IngestRequest, RecallRequest, ToolResultRequest
from docindex_dagster.render import budget, memory_markdown
from docindex_dagster.serving.arguments import mcp_tool
from docindex_dagster.serving.tools import Budget, Cursor, Limit

_NAMES = {"session": "session_id", "message": "message_id", "tool": "tool_name", "code": "include_code"}
_FIELDS = {name: field for field, name in _NAMES.items()}


class MemoryTools:
    """The tools for one memory. Agents read their docstrings."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @mcp_tool("Remember a message", writes=True)
    @with_parameters(parameters_from_fields(IngestRequest, without=["tool"], names=_NAMES))
    def ingest_message(self, **given: Any) -> str:
        """Remember a message of this conversation. `recall` finds it immediately, in any process.

        Use it for what is worth knowing later: decisions and their reasons, what the user wants, what was learned.
        The answer lists what was found in it: chunks, concepts, edges, and the code that it names.
        """
        return self._ingest(given)

    @mcp_tool("Remember a tool result", writes=True)
    @with_parameters(parameters_from_fields(ToolResultRequest, without=["role"], names=_NAMES))
    def ingest_tool_result(self, **given: Any) -> str:
        """Remember a tool result: test output, errors, pages, queries.

        Like `ingest_message`, with the role tool. Use it for results that cost time or show how things were then.
        """
        return self._ingest({**given, "role": "tool"})

    def _ingest(self, given: dict[str, Any]) -> str:
        message_id = given.pop("message_id")  # chosen by the client
        request = IngestRequest.parse(**_of_fields(given), message_id=message_id)
        return memory_markdown.of_ingested(operations.memory.ingest(self.memory, request))

    @mcp_tool("Find earlier messages and tool results")
    @with_parameters(parameters_from_fields(RecallRequest, names=_NAMES), before="top_k")
    def recall(
        self, *, top_k: Limit = 10, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None, **given: Any
    ) -> str:
        """Find earlier messages and tool results, in this and other conversations, by words and by meaning.

        Returns messages, best first: session, role, time, and the code that each names, marked fresh, changed, moved
        or gone. Use it before you ask or work out again what may be known; use `search` for the code as it is now.
        """
        start, request = budget.start_of(cursor), RecallRequest.parse(**_of_fields(given))
        found = operations.memory.recall(self.memory, request, start + top_k + 1)
        return memory_markdown.of_recalled(found, top_k, start, max_tokens)

    @mcp_tool("Forget a message, a conversation or everything", writes=True, destroys=True)
    @with_parameters(parameters_from_fields(ForgetRequest, names=_NAMES))
    def forget(self, **given: Any) -> str:
        """Forget a message, a conversation or everything: searches no longer find it, and it cannot be restored.

        Give exactly one of them. Use it when the user asks, or for what should never have been stored.
        """
        forgotten = operations.memory.forget(self.memory, ForgetRequest.parse(**_of_fields(given)))
        return memory_markdown.of_forgotten(forgotten)

    @mcp_tool("Status of memory")
    def memory_status(self, *, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None) -> str:
        """List the domains that can be recalled, and which one is written: messages, sessions, size, times.

        Use it first, to learn which domains you can pass to `recall`.
        """
        return memory_markdown.of_status(self.memory.status(), budget.start_of(cursor), max_tokens)


def _of_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the names of the request's fields."""
    return {_FIELDS.get(name, name): value for name, value in given.items()}
