"""What happens while a question is answered, in the order in which a user sees it.

`Found` comes first. Then come the pieces of the text, and an agent's steps between them: what was written before a step
is no part of the answer. `Answer` and `Spent` are the last two.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeAlias

from docindex_dagster.answering.citations import Citation
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.passages import Passage
from docindex_dagster.llm.chat import Delta


@dataclass(frozen=True, slots=True)
class Found:
    """What the search has found.

    Attributes:
        query: what was searched for; a further question's has names of the one before.
        passages: that a model reads, in its order.
        commits: of the history, where the question is about it; their hashes.
        generation: of the index.
        warnings: what makes the search worse.
    """

    query: str
    passages: tuple[Passage, ...]
    commits: tuple[str, ...]
    generation: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A tool that an agent has called.

    Attributes:
        tool: its name, as the model gave it.
        arguments: as the model gave them, JSON if it keeps to it.
        outcome: what came of it, in a line.
        passages: that it has found, and the model reads from now on.
        is_error: whether the call could not be done as asked.
    """

    tool: str
    arguments: str
    outcome: str
    passages: tuple[Passage, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer, with its citations checked.

    Attributes:
        text: Markdown.
        citations: in their order.
        conversation: with this answer; what a further question goes on from.
        model: who wrote it; None where it is made of passages as they are.
        is_broken: whether it broke off.
        is_cut: whether it stopped at a limit of tokens.
        is_prompt_cut: whether the model is held to have read a part of what was sent alone.
    """

    text: str
    citations: tuple[Citation, ...]
    conversation: Conversation
    model: str | None = None
    is_broken: bool = False
    is_cut: bool = False
    is_prompt_cut: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """What the answer took.

    Attributes:
        prompt_tokens: of all requests to the model; estimated where it does not count them.
        completion_tokens: of all its answers, likewise.
        dollars: by the prices of the settings; None where they name none.
        search_s: until the passages were there, in seconds.
        first_word_s: from then until the answer began; None where it did not.
        total_s: of everything.
    """

    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    search_s: float
    first_word_s: float | None
    total_s: float


Event: TypeAlias = Found | Delta | Step | Answer | Spent
Events: TypeAlias = AsyncGenerator[Event, None]
"""Closing it (`aclose`, `contextlib.aclosing`) ends what is asked of a model at once."""
