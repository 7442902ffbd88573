"""Events of answering a question, in the order in which a user sees them.

`Found` comes first. Pieces of text follow, interleaved with an agent's steps; text before a step is not part of the
answer. `Answer` and `Spent` come last.
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
    """The results of the search.

    Attributes:
        query: the query; for a follow-up question it includes names from the previous one.
        passages: the passages that the model reads, in its order.
        commits: the hashes of the commits in the prompt, if the question is about the history.
        generation: the generation of the index.
        warnings: problems that degraded the search.
    """

    query: str
    passages: tuple[Passage, ...]
    commits: tuple[str, ...]
    generation: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call of an agent.

    Attributes:
        tool: the tool's name, as the model wrote it.
        arguments: the arguments as the model wrote them; JSON if it followed the format.
        outcome: the result, in one line.
        passages: the passages found, which the model can read from now on.
        is_error: whether the call failed.
    """

    tool: str
    arguments: str
    outcome: str
    passages: tuple[Passage, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer with its checked citations.

    Attributes:
        text: the answer, in Markdown.
        citations: the citations, in order.
        conversation: the conversation including this answer, for a follow-up question.
        model: the model that wrote it; None if it consists of the passages themselves.
        is_broken: whether the answer broke off.
        is_cut: whether it stopped at a token limit.
        is_prompt_cut: whether the model probably read only part of the prompt.
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
    """The tokens, cost and time of an answer.

    Attributes:
        prompt_tokens: prompt tokens of all requests to the model; estimated if the model does not report them.
        completion_tokens: tokens of all its responses; estimated in the same way.
        dollars: the cost at the prices in the settings; None if they name none.
        search_s: seconds until the passages were found.
        first_word_s: seconds from then until the answer began; None if it did not begin.
        total_s: seconds in total.
    """

    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    search_s: float
    first_word_s: float | None
    total_s: float


Event: TypeAlias = Found | Delta | Step | Answer | Spent
Events: TypeAlias = AsyncGenerator[Event, None]
"""Closing it (`aclose`, `contextlib.aclosing`) immediately ends the request to the model."""
