"""What agents can write down and find again: five tools over the domain that their server is bound to."""

from collections.abc import Mapping
from typing import Any

from docindex_dagster import operations
from docindex_dagster.core.signatures import of_fields, with_parameters
from docindex_dagster.memory.memory import Memory
from docindex_dagster.operations.memory import ForgetRequest, IngestRequest, RecallRequest, ToolResultRequest
from docindex_dagster.render import budget, memory_markdown
from docindex_dagster.serving.arguments import offered
from docindex_dagster.serving.tools import Budget, Cursor, Limit

_NAMES = {"session": "session_id", "message": "message_id", "tool": "tool_name", "code": "include_code"}
_FIELDS = {name: field for field, name in _NAMES.items()}


class MemoryTools:
    """The tools over one memory, whose docstrings agents read."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @offered("Remember a message", writes=True)
    @with_parameters(of_fields(IngestRequest, without=["tool"], names=_NAMES))
    def ingest_message(self, **given: Any) -> str:
        """Remember a message of this conversation, so that `recall` finds it from now on, in any process.

        Use it for what is worth knowing later: decisions and their reasons, what the user wants, what was learned.
        The answer says what was found in it: chunks, concepts, edges, and the code that it names.
        """
        return self._ingest(given)

    @offered("Remember what a tool answered", writes=True)
    @with_parameters(of_fields(ToolResultRequest, without=["role"], names=_NAMES))
    def ingest_tool_result(self, **given: Any) -> str:
        """Remember what a tool answered: output of tests, errors, pages, queries.

        As `ingest_message`, with the role tool. Use it for results that cost time, or that show how things were then.
        """
        return self._ingest({**given, "role": "tool"})

    def _ingest(self, given: dict[str, Any]) -> str:
        message_id = given.pop("message_id")  # which is the client's here
        request = IngestRequest.parse(**_of_fields(given), message_id=message_id)
        return memory_markdown.of_ingested(operations.memory.ingest(self.memory, request))

    @offered("Find what was said or seen before")
    @with_parameters(of_fields(RecallRequest, names=_NAMES), before="top_k")
    def recall(
        self, *, top_k: Limit = 10, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None, **given: Any
    ) -> str:
        """Find what was said or seen before, in this conversation and others, by words and by meaning.

        Gives messages, best first: session, role, time, and the code that each names, which is fresh, changed, moved
        or gone since. Use it before you ask or work out again what may be known; use `search` for how the code is now.
        """
        start, request = budget.start_of(cursor), RecallRequest.parse(**_of_fields(given))
        found = operations.memory.recall(self.memory, request, start + top_k + 1)
        return memory_markdown.of_recalled(found, top_k, start, max_tokens)

    @offered("Forget a message, a conversation, or all", writes=True, destroys=True)
    @with_parameters(of_fields(ForgetRequest, names=_NAMES))
    def forget(self, **given: Any) -> str:
        """Forget a message, a conversation, or all: no search finds it from now on, and nothing brings it back.

        Give exactly one of them. Use it when the user wants it, or for what should never have been written down.
        """
        forgotten = operations.memory.forget(self.memory, ForgetRequest.parse(**_of_fields(given)))
        return memory_markdown.of_forgotten(forgotten)

    @offered("What is remembered")
    def memory_status(self, *, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None) -> str:
        """List the domains that can be recalled, and which of them is written: messages, sessions, size, times.

        Use it first, to learn which domains `recall` may be narrowed to.
        """
        return memory_markdown.of_status(self.memory.status(), budget.start_of(cursor), max_tokens)


def _of_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of fields."""
    return {_FIELDS.get(name, name): value for name, value in given.items()}
