"""Answering a question: a search, a model or none, and the check of what is cited."""

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
from docindex_dagster.core.errors import LLMError, LLMNonsenseError, QueryError, SourceError
from docindex_dagster.core.safe_text import visible
from docindex_dagster.core.settings import Settings
from docindex_dagster.llm.budget import BudgetedChat
from docindex_dagster.llm.chat import ChatModel, Delta, Message, Tool, Usage
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, read_beneath
from docindex_dagster.sources.text import decode

_MOST_NUMBERS = 800  # marks have three digits, and an answer may need some numbers more
_LEAST_TOKENS = 500  # of passages, however small the model's window is
# Characters after which an answer is cut, whatever the model's server makes of `max_answer_tokens`.
_LEAST_CUT, _TOKEN = 100_000, 16
_Items: TypeAlias = AsyncGenerator[Delta | Step | Usage, None]


@dataclass(slots=True, eq=False)
class _Writing:
    """An answer, as far as it is written."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0  # of all that was written, in characters
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
        live: the project that is searched.
        question: what is asked.
        conversation: that it goes on from.
        model: who answers; None for an answer of passages as they are.
        toolbox: what an agent may call, if its model can; None for an answer from what the search finds.

    Raises:
        StoreError: nothing is published, or it cannot be read.
        QueryError: the question cannot be searched for, or the conversation has had too many passages.
        SourceError: a filter names a source that there is not.
        SettingsError: the settings are wrong.
        EmbeddingError: the question cannot be embedded.
        LLMError: of a subclass by what happened to the model; what it had written comes first, as a broken `Answer`.
    """
    if conversation.passages.last > _MOST_NUMBERS:
        raise QueryError(f"the conversation has had {conversation.passages.last} passages: begin another one")
    started = time.monotonic()
    settings, reading, writing = live.settings, Reading(conversation), _Writing()
    toolbox = toolbox if model is not None and model.has_tools else None
    tools = toolbox.tools if toolbox else ()
    query, tokens = conversation.query(question.text), _room(settings, model, question, conversation, tools)
    found = await asyncio.to_thread(live.reading, lambda reader: retrieve(settings, reader, question, query, tokens))
    passages = reading.begin(found.context)
    yield Found(query, passages, found.history.commits if found.history else (), found.generation, found.warnings)
    searched = time.monotonic()
    most = max(_LEAST_CUT, _TOKEN * settings.llm.max_answer_tokens)
    asked = BudgetedChat(model, settings.llm) if model else None
    messages = _messages(question, conversation, passages, found, is_for_agent=toolbox is not None)
    written = _written(asked, messages, reading, toolbox) if asked else _extracted(settings, passages, found)
    try:
        async with aclosing(written) as items:
            async for item in items:
                writing.take(item)
                if not isinstance(item, Usage):
                    yield item
                if writing.length > most:
                    writing.usage = replace(writing.usage, is_answer_cut=True)
                    break
        if not writing.text.strip():
            raise LLMNonsenseError("the model has answered nothing; see llm.model")
    except LLMError:
        if writing.text.strip():
            yield await _checked(settings, question, reading, writing, model, is_broken=True)
        raise
    yield await _checked(settings, question, reading, writing, model)
    yield Spent(
        prompt_tokens=asked.prompt_tokens if asked else 0,
        completion_tokens=asked.completion_tokens if asked else 0,
        dollars=asked.dollars if asked else None,
        search_s=searched - started,
        first_word_s=writing.began - searched if writing.began else None,
        total_s=time.monotonic() - started,
    )


def _room(
    settings: Settings,
    model: ChatModel | None,
    question: Question,
    conversation: Conversation,
    tools: Sequence[Tool],
) -> int:
    """How many tokens of passages fit into the model's window beside the rest; what tools find gets as much of it."""
    if model is None or model.context_tokens is None:
        return question.tokens
    turns = [text for turn in conversation.recent for text in (turn.question, turn.answer)]
    beside = [AGENT_SYSTEM if tools else SYSTEM, question.text, *turns, *map(str, tools)]
    left = room(model.context_tokens, beside, settings.llm.max_answer_tokens)
    return min(question.tokens, max(_LEAST_TOKENS, left // 2 if tools else left))


def _messages(
    question: Question,
    conversation: Conversation,
    passages: Sequence[Passage],
    found: Retrieved,
    *,
    is_for_agent: bool,
) -> list[Message]:
    history = found.history.text if found.history else ""
    asked = prompt(question.text, passages, history, is_for_agent=is_for_agent)
    turns = [
        message
        for turn in conversation.recent
        for message in (Message("user", turn.question), Message("assistant", turn.answer))
    ]
    return [Message("system", asked.system), *turns, Message("user", asked.user)]


async def _extracted(settings: Settings, passages: Sequence[Passage], found: Retrieved) -> _Items:
    """The answer without a model."""
    history = found.history.text if found.history else ""
    yield Delta(extractive(passages, history, is_model_set=settings.llm.provider != "none"))


def _written(model: BudgetedChat, messages: Sequence[Message], reading: Reading, toolbox: Toolbox | None) -> _Items:
    """The answer as a model writes it."""
    most = model.settings.max_answer_tokens
    if toolbox is not None:
        return investigate(model, messages, toolbox, reading, max_tokens=most)
    return _plain(model, messages, most)


async def _plain(model: BudgetedChat, messages: Sequence[Message], most: int) -> _Items:
    async with aclosing(model.stream(messages, max_tokens=most)) as items:
        async for item in items:
            if isinstance(item, Delta | Usage):
                yield item


async def _checked(
    settings: Settings,
    question: Question,
    reading: Reading,
    writing: _Writing,
    model: ChatModel | None,
    *,
    is_broken: bool = False,
) -> Answer:
    """The answer with its citations, and the conversation that has it."""
    text, going_on = writing.text, reading.conversation

    def checked() -> Answer:
        changes = changes_on_disk(registry.sources(settings))
        citations = tuple(check(text, going_on.passages.kept, changes))
        return Answer(
            text=text,
            citations=citations,
            conversation=going_on.answered(question.text, text, citations),
            model=model.name if model else None,
            is_broken=is_broken,
            is_cut=writing.usage.is_answer_cut,
            is_prompt_cut=writing.usage.is_prompt_cut,
        )

    return await asyncio.to_thread(checked)


def changes_on_disk(sources: Mapping[str, Source]) -> Changes:
    """Says whether lines of a passage have gone from their file; they may stand elsewhere in it.

    Files are read once, so it is made for each answer anew.
    """

    @cache
    def text(key: str, path: str) -> str:
        source, name = sources[key], name_to_path(path)
        try:
            return flat(visible(decode(read_beneath(os.fsencode(source.folder()), name, source.most_bytes(name))).text))
        except (OSError, SourceError):
            return ""

    def changes(passage: Passage, first: int, last: int) -> bool | None:
        if not passage.stale or passage.source not in sources:
            return passage.stale
        return flat(passage.lines(first, last)) not in text(passage.source, passage.path)

    return changes
