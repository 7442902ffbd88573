"""What agents can write down and find again: five tools over the domain that their server is bound to."""

from typing import Annotated

from pydantic import Field

from docindex_dagster.memory.memory import Memory
from docindex_dagster.memory.message import Role
from docindex_dagster.serving import binding, budget, memory_answers
from docindex_dagster.serving.moments import LastMoment
from docindex_dagster.serving.tools import Budget, Cursor, Limit, OneOrMore, Query

Session = Annotated[str, Field(description="The conversation that it belongs to: any name, the same each time.")]
MessageId = Annotated[
    str | None,
    Field(description="Your own id of it, by which it counts once if it is written again. Default: its whole text."),
]
Written = Annotated[
    str | None, Field(description="The domain that this server writes, which need not be named; no other one.")
]


class MemoryTools:
    """The tools over one memory, whose docstrings agents read."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def ingest_message(
        self,
        text: Annotated[str, Field(description="What was said, whole and as it was.")],
        session_id: Session,
        *,
        role: Annotated[
            str, Field(description="Who said it: user, assistant, system or tool; anything else becomes unknown.")
        ] = "unknown",
        message_id: MessageId = None,
        domain: Written = None,
    ) -> str:
        """Remember a message of this conversation, so that `recall` finds it from now on, in any process.

        Use it for what is worth knowing later: decisions and their reasons, what the user wants, what was learned.
        The answer says what was found in it: chunks, concepts, edges, and the code that it names.
        """
        binding.check_written(self.memory, domain)
        return memory_answers.of_ingested(
            self.memory.ingest(text, session=session_id, role=role, message_id=message_id)
        )

    def ingest_tool_result(
        self,
        text: Annotated[str, Field(description="What the tool answered, whole and as it was.")],
        session_id: Session,
        tool_name: Annotated[str, Field(description="Which tool answered; what is longer than 64 characters is cut.")],
        *,
        message_id: MessageId = None,
        domain: Written = None,
    ) -> str:
        """Remember what a tool answered: output of tests, errors, pages, queries.

        As `ingest_message`, with the role tool. Use it for results that cost time, or that show how things were then.
        """
        binding.check_written(self.memory, domain)
        return memory_answers.of_ingested(
            self.memory.ingest(text, session=session_id, role="tool", tool=tool_name, message_id=message_id)
        )

    def recall(
        self,
        query: Query,
        *,
        domains: Annotated[
            list[str] | None,
            OneOrMore,
            Field(description="Only these domains, of those that `memory_status` lists. Default: all of them."),
        ] = None,
        sessions: Annotated[list[str] | None, OneOrMore, Field(description="Only these conversations.")] = None,
        roles: Annotated[list[Role] | None, OneOrMore, Field(description="Only what these said.")] = None,
        as_of: Annotated[
            LastMoment | None,
            Field(description="What was known then, as 2026-01-31 or 2026-01-31T12:00:00Z; UTC. Default: now."),
        ] = None,
        include_code: Annotated[
            bool, Field(description="Whether to search the indexed code and documentation as well.")
        ] = False,
        impact: Annotated[
            bool, Field(description="Whether to add what depends on the code that the messages name.")
        ] = False,
        top_k: Limit = 10,
        max_tokens: Budget = budget.DEFAULT,
        cursor: Cursor = None,
    ) -> str:
        """Find what was said or seen before, in this conversation and others, by words and by meaning.

        Gives messages, best first: session, role, time, and the code that each names, which is fresh, changed, moved
        or gone since. Use it before you ask or work out again what may be known; use `search` for how the code is now.
        """
        start = budget.start_of(cursor)
        found = self.memory.recall(
            query,
            domains=domains or (),
            sessions=sessions or (),
            roles=roles or (),
            as_of=as_of,
            top_k=start + top_k + 1,
            with_code=include_code,
            with_impact=impact,
        )
        return memory_answers.of_recalled(found, top_k, start, max_tokens)

    def forget(
        self,
        *,
        message_id: Annotated[str | None, Field(description="This message, by the id that `recall` gives.")] = None,
        session_id: Annotated[str | None, Field(description="All of this conversation.")] = None,
        domain: Annotated[
            str | None, Field(description="All of the domain that this server writes, by its name.")
        ] = None,
    ) -> str:
        """Forget a message, a conversation, or all: no search finds it from now on, and nothing brings it back.

        Give exactly one of them. Use it when the user wants it, or for what should never have been written down.
        """
        return memory_answers.of_forgotten(
            binding.forget(self.memory, message=message_id, session=session_id, domain=domain)
        )

    def memory_status(self, *, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None) -> str:
        """List the domains that can be recalled, and which of them is written: messages, sessions, size, times.

        Use it first, to learn which domains `recall` may be narrowed to.
        """
        return memory_answers.of_status(self.memory.status(), budget.start_of(cursor), max_tokens)
