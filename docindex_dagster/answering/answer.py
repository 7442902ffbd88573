"""Answer to a question: a search, an answer with or without a model, and a check of its citations."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

from docindex_dagster.answering.agent import Toolbox, investigate
from docindex_dagster.answering.citations import Changes, check, flat
from docindex_dagster.answering.conversation import Conversation, Reading
from docindex_dagster.answering.events import Answer, Events, Found, Spent, Step
from docindex_dagster.answering.passages import Passage
from docindex_dagster.answering.prompt import AGENT_SYSTEM, SYSTEM, prompt, room
from docindex_dagster.answering.question import Question, Retrieved, retrieve
from docindex_dagster.answering.rendering import extractive
from docindex_dagster.core.errors import LLMError, LLMInvalidResponseError, QueryError, SourceError
from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.core.settings import Settings
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import ChatModel, Delta, Message, Tool, Usage
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, read_beneath
from docindex_dagster.sources.text import decode

_MAX_PASSAGES = 800  # marks have at most three digits, and one more answer must still fit
_MIN_PASSAGE_TOKENS = 500  # for passages, even if the model's window is smaller
# An answer is cut after this many characters, even if the model's server ignores `max_answer_tokens`.
_MIN_CHAR_LIMIT, _CHARS_PER_TOKEN = 100_000, 16
_Items: TypeAlias = AsyncGenerator[Delta | Step | Usage, None]


@dataclass(slots=True, eq=False)
class _Draft:
    """The part of an answer that has been written so far."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0  # of everything written, in characters
    usage: Usage = field(default_factory=Usage)
    began: float | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def take(self, item: Delta | Step | Usage) -> None:
        match item:
            case Delta(text):
                self.pieces.append(text)
                self.length += len(text)
                self.began = self.began or time.monotonic()
            case Step():
                self.pieces.clear()
            case Usage():
                self.usage = item


async def answer(
    live: Live,
    question: Question,
    conversation: Conversation,
    model: ChatModel | None,
    toolbox: Toolbox | None = None,
) -> Events:
    """Answer a question.

    Args:
        live: the project to search.
        question: the question.
        conversation: the conversation that the question continues.
        model: the model that answers; None to answer with the passages themselves.
        toolbox: the tools of an agent, if the model supports tools; None to answer from the search results only.

    Raises:
        StoreError: nothing is published, or the index cannot be read.
        QueryError: the question cannot be searched for, or the conversation has too many passages.
        SourceError: a filter names an unknown source.
        SettingsError: the settings are invalid.
        EmbeddingError: the question cannot be embedded.
        LLMError: the model failed; the subclass says how. If it wrote part of an answer, a broken `Answer` comes first.
    """
    if conversation.passages.last > _MAX_PASSAGES:
        raise QueryError(f"the conversation has reached {conversation.passages.last} passages: start a new one")
    started = time.monotonic()
    settings, reading, draft = live.settings, Reading(conversation), _Draft()
    toolbox = toolbox if model is not None and model.has_tools else None
    tools = toolbox.tools if toolbox else ()
    query, tokens = conversation.query(question.text), _passage_tokens(settings, model, question, conversation, tools)
    found = await asyncio.to_thread(live.reading, lambda reader: retrieve(settings, reader, question, query, tokens))
    passages = reading.begin(found.context)
    yield Found(query, passages, found.history.commits if found.history else (), found.generation, found.warnings)
    searched = time.monotonic()
    max_chars = max(_MIN_CHAR_LIMIT, _CHARS_PER_TOKEN * settings.llm.max_answer_tokens)
    chat = BudgetedChat(model, settings.llm) if model else None
    messages = _messages(question, conversation, passages, found, is_for_agent=toolbox is not None)
    written = _write_answer(chat, messages, reading, toolbox) if chat else _extract_answer(settings, passages, found)
    try:
        async with aclosing(written) as items:
            async for item in items:
                draft.take(item)
                if not isinstance(item, Usage):
                    yield item
                if draft.length > max_chars:
                    draft.usage = replace(draft.usage, is_answer_cut=True)
                    break
        if not draft.text.strip():
            raise LLMInvalidResponseError("the model returned an empty answer; see llm.model")
    except LLMError:
        if draft.text.strip():
            yield await _check_answer(settings, question, reading, draft, model, is_broken=True)
        raise
    yield await _check_answer(settings, question, reading, draft, model)
    yield Spent(
        prompt_tokens=chat.prompt_tokens if chat else 0,
        completion_tokens=chat.completion_tokens if chat else 0,
        dollars=chat.dollars if chat else None,
        search_s=searched - started,
        first_word_s=draft.began - searched if draft.began else None,
        total_s=time.monotonic() - started,
    )


def _passage_tokens(
    settings: Settings,
    model: ChatModel | None,
    question: Question,
    conversation: Conversation,
    tools: Sequence[Tool],
) -> int:
    """Return how many passage tokens fit into the model's window. With tools, their results get half of the space."""
    if model is None or model.context_tokens is None:
        return question.tokens
    turns = [text for turn in conversation.recent for text in (turn.question, turn.answer)]
    other = [AGENT_SYSTEM if tools else SYSTEM, question.text, *turns, *map(str, tools)]
    left = room(model.context_tokens, other, settings.llm.max_answer_tokens)
    return min(question.tokens, max(_MIN_PASSAGE_TOKENS, left // 2 if tools else left))


def _messages(
    question: Question,
    conversation: Conversation,
    passages: Sequence[Passage],
    found: Retrieved,
    *,
    is_for_agent: bool,
) -> list[Message]:
    history = found.history.text if found.history else ""
    request = prompt(question.text, passages, history, is_for_agent=is_for_agent)
    turns = [
        message
        for turn in conversation.recent
        for message in (Message("user", turn.question), Message("assistant", turn.answer))
    ]
    return [Message("system", request.system), *turns, Message("user", request.user)]


async def _extract_answer(settings: Settings, passages: Sequence[Passage], found: Retrieved) -> _Items:
    """Yield the answer without a model."""
    history = found.history.text if found.history else ""
    yield Delta(extractive(passages, history, is_model_set=settings.llm.provider != "none"))


def _write_answer(
    model: BudgetedChat, messages: Sequence[Message], reading: Reading, toolbox: Toolbox | None
) -> _Items:
    """Return the answer stream of a model, with or without tools."""
    limit = model.settings.max_answer_tokens
    if toolbox is not None:
        return investigate(model, messages, toolbox, reading, max_tokens=limit)
    return _stream_answer(model, messages, limit)


async def _stream_answer(model: BudgetedChat, messages: Sequence[Message], limit: int) -> _Items:
    async with aclosing(model.stream(messages, max_tokens=limit)) as items:
        async for item in items:
            if isinstance(item, Delta | Usage):
                yield item


async def _check_answer(
    settings: Settings,
    question: Question,
    reading: Reading,
    draft: _Draft,
    model: ChatModel | None,
    *,
    is_broken: bool = False,
) -> Answer:
    """Return the answer with its citations and with the conversation that includes it."""
    text, conversation = draft.text, reading.conversation

    def checked() -> Answer:
        changes = changes_on_disk(registry.sources(settings))
        citations = tuple(check(text, conversation.passages.kept, changes))
        return Answer(
            text=text,
            citations=citations,
            conversation=conversation.answered(question.text, text, citations),
            model=model.name if model else None,
            is_broken=is_broken,
            is_cut=draft.usage.is_answer_cut,
            is_prompt_cut=draft.usage.is_prompt_cut,
        )

    return await asyncio.to_thread(checked)


def changes_on_disk(sources: Mapping[str, Source]) -> Changes:
    """Return a function that tells whether cited lines are gone from their file; lines that merely moved are not.

    It reads each file only once, so create a new function for each answer.
    """

    @cache
    def text(key: str, path: str) -> str:
        source, name = sources[key], name_to_path(path)
        try:
            return flat(
                make_visible(decode(read_beneath(os.fsencode(source.folder()), name, source.max_bytes_of(name))).text)
            )
        except (OSError, SourceError):
            return ""

    def changes(passage: Passage, first: int, last: int) -> bool | None:
        if not passage.stale or passage.source not in sources:
            return passage.stale
        return flat(passage.lines(first, last)) not in text(passage.source, passage.path)

    return changes
