"""What fits into a model's window."""

from collections.abc import Iterable

from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.chat import Message, Tool

_SHARE = 0.75  # of a window by our count of tokens: each model has a tokenizer of its own


def room(context_tokens: int, beside: Iterable[str], max_tokens: int) -> int:
    """How many tokens fit into a window beside some texts and an answer; less than none where those do not fit.

    Args:
        context_tokens: of the window.
        beside: what is sent as well.
        max_tokens: of the answer.
    """
    return int(context_tokens * _SHARE) - max_tokens - sum(count_tokens([*beside]))


def texts_of(messages: Iterable[Message], tools: Iterable[Tool] = ()) -> list[str]:
    """What is sent of messages and tools."""
    return [*(message.content for message in messages), *map(str, tools)]
