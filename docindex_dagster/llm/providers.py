"""The language models by the name of who provides them, ours and those of installed packages.

A provider makes a chat model, for answers and summaries, or an LLM of a package, for summaries alone: docs/plugins.md.
"""

import asyncio
import weakref
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from docindex_dagster.core import plugins
from docindex_dagster.core.background import run_coroutine
from docindex_dagster.core.errors import LLMError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, ChatModel, Delta, Message, Usage, prepare
from docindex_dagster.llm.endpoint import asked_s, is_passing, retry_policy, unset
from docindex_dagster.llm.protocol import LLM, Completion

Provider = Callable[[LLMSettings], object]
"""Returns a ChatModel, an LLM, or an object that is both."""


PROVIDERS: Plugins[Provider] = Plugins(
    "LLM provider",
    plugins.LLMS,
    {
        "openai": "docindex_dagster.llm.openai:OpenAIChat",
        "anthropic": "docindex_dagster.llm.anthropic:AnthropicChat",
        "ollama": "docindex_dagster.llm.ollama:OllamaChat",
        "codex": "docindex_dagster.llm.codex:CodexChat",
    },
    LLMError,
)


@dataclass(slots=True, weakref_slot=True, eq=False)
class WholeAnswers:
    """A chat model that is asked for whole answers, from several threads that share its connections.

    Attributes:
        model: makes no retries of its own: a broken answer is retried here, whatever came of it.
        retries: attempts after the first.
    """

    model: ChatModel
    retries: int
    _is_asked: bool = field(default=False, init=False, repr=False)

    @property
    def name(self) -> str:
        """Of the model."""
        return self.model.name

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text.

        Raises:
            LLMError: no attempt gave a completion.
        """
        messages = [Message("system", system), Message("user", text)]
        policy = retry_policy(self.retries)
        return policy.call(lambda: run_coroutine(self._answer(messages, max_tokens)), is_passing, asked_s)

    async def _answer(self, messages: list[Message], max_tokens: int) -> Completion:
        if not self._is_asked:
            self._is_asked = True
            prepare(self.model)  # so that loading does not count towards the time limit of the first answer
            closing = weakref.finalize(self, _close, self.model, asyncio.get_running_loop())
            closing.atexit = False  # the end of the process closes all connections
        async with aclosing(self.model.stream(messages, max_tokens=max_tokens)) as stream:
            items = [item async for item in stream]
        usage = next((item for item in items if isinstance(item, Usage)), Usage())
        text = "".join(item.text for item in items if isinstance(item, Delta))
        return Completion(text, usage.prompt_tokens, usage.completion_tokens)


def _close(model: ChatModel, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(model.aclose(), loop)


@dataclass(frozen=True, slots=True)
class UnavailableLLM:
    """Stands for a model that cannot be loaded: it fails when it is asked, as one that cannot be reached does."""

    name: str
    problem: str

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:  # noqa: ARG002 of the protocol
        """Fail.

        Raises:
            LLMError: always.
        """
        raise LLMError(self.problem)


def load_llm(settings: LLMSettings) -> LLM:
    """The model that the settings name. An error in loading it is raised when it is asked: no run fails for it."""
    name = settings.provider
    try:
        return _llm(settings)
    except Exception as error:  # noqa: BLE001 it may be of another package
        problem = str(error) if isinstance(error, LLMError) else f"{type(error).__name__}: {first_line(error)}"
        return UnavailableLLM(f"{name}/{settings.model}", f"the LLM provider {name!r} cannot be used: {problem}")


def _llm(settings: LLMSettings) -> LLM:
    if settings.provider == "codex":
        raise LLMError("codex starts a program for each answer, so it is for single questions alone")
    provider = PROVIDERS.load(settings.provider)
    model = provider(settings)
    if isinstance(model, LLM):
        return model
    chat = provider(settings.model_copy(update={"retries": 0}))
    if not isinstance(chat, ChatModel):
        raise LLMError("it gives neither an LLM nor a ChatModel; see docs/plugins.md")
    return WholeAnswers(chat, settings.retries)


def chat_model(settings: LLMSettings) -> ChatModel:
    """The model that the settings name, for answers. Nothing is asked yet, and no key looked for.

    Raises:
        LLMError: there is none, it cannot be loaded, or it does not chat.
    """
    name = settings.provider
    if name == "none":
        raise LLMError("no language model is set: set llm.provider and llm.model; see docs/answers.md")
    try:
        model = PROVIDERS.load(name)(settings)
    except LLMError:
        raise
    except Exception as error:  # it is of another package
        problem = f"{type(error).__name__}: {first_line(error)}"
        raise LLMError(f"the LLM provider {name!r} cannot be used: {problem}") from error
    if not isinstance(model, ChatModel):
        raise LLMError(f"the LLM provider {name!r} writes summaries, and does not chat; see docs/plugins.md")
    return model


async def availability(settings: LLMSettings) -> Availability:
    """Whether the model that the settings name can be asked, looked for within seconds. It never raises."""
    try:
        model = chat_model(settings)
    except LLMError as error:
        return unset(str(error), settings.model)
    try:
        return await model.check()
    except Exception as error:  # noqa: BLE001 it may be of another package
        return unset(f"the LLM provider {settings.provider!r} failed ({type(error).__name__})", settings.model)
    finally:
        await model.aclose()
