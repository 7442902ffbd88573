"""Registry of language models by provider: the built-in ones and those of installed packages.

A provider returns a chat model, for answers and summaries, or a package's LLM, for summaries only.
See docs/how-to/write-a-plug-in.md.
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
from docindex_dagster.llm.endpoint import is_passing, requested_wait_s, retry_policy, unavailable
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
class ChatLLM:
    """An LLM on top of a chat model. It collects complete answers, and its threads share the model's connections.

    Attributes:
        model: must not retry by itself; this class retries broken answers even after receiving part of one.
        retries: attempts after the first.
    """

    model: ChatModel
    retries: int
    _is_prepared: bool = field(default=False, init=False, repr=False)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text.

        Raises:
            LLMError: every attempt failed.
        """
        messages = [Message("system", system), Message("user", text)]
        policy = retry_policy(self.retries)
        return policy.call(lambda: run_coroutine(self._answer(messages, max_tokens)), is_passing, requested_wait_s)

    async def _answer(self, messages: list[Message], max_tokens: int) -> Completion:
        if not self._is_prepared:
            self._is_prepared = True
            prepare(self.model)  # keep loading time out of the first answer's timeout
            closing = weakref.finalize(self, _close, self.model, asyncio.get_running_loop())
            closing.atexit = False  # process exit closes all connections anyway
        async with aclosing(self.model.stream(messages, max_tokens=max_tokens)) as stream:
            items = [item async for item in stream]
        usage = next((item for item in items if isinstance(item, Usage)), Usage())
        text = "".join(item.text for item in items if isinstance(item, Delta))
        return Completion(text, usage.prompt_tokens, usage.completion_tokens)


def _close(model: ChatModel, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(model.aclose(), loop)


@dataclass(frozen=True, slots=True)
class UnavailableLLM:
    """Placeholder for a model that cannot be loaded. It fails when used, like a model that cannot be reached."""

    name: str
    problem: str

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:  # noqa: ARG002 required by the protocol
        """Fail.

        Raises:
            LLMError: always.
        """
        raise LLMError(self.problem)


def load_llm(settings: LLMSettings) -> LLM:
    """Return the configured model. A loading error is raised only when the model is used, so that no run fails."""
    name = settings.provider
    try:
        return _llm(settings)
    except Exception as error:  # noqa: BLE001 raised by any package
        problem = str(error) if isinstance(error, LLMError) else f"{type(error).__name__}: {first_line(error)}"
        return UnavailableLLM(f"{name}/{settings.model}", f"cannot use the LLM provider {name!r}: {problem}")


def _llm(settings: LLMSettings) -> LLM:
    if settings.provider == "codex":
        raise LLMError("codex starts a program for each answer, so it supports only single questions")
    provider = PROVIDERS.load(settings.provider)
    model = provider(settings)
    if isinstance(model, LLM):
        return model
    chat = provider(settings.model_copy(update={"retries": 0}))
    if not isinstance(chat, ChatModel):
        raise LLMError("it returned neither an LLM nor a ChatModel; see docs/how-to/write-a-plug-in.md")
    return ChatLLM(chat, settings.retries)


def chat_model(settings: LLMSettings) -> ChatModel:
    """Return the configured model for answers. Nothing is sent, and the key is not looked up yet.

    Raises:
        LLMError: no model is configured, it cannot be loaded, or it is not a chat model.
    """
    name = settings.provider
    if name == "none":
        raise LLMError("no language model configured: set llm.provider and llm.model; see docs/how-to/ask-questions.md")
    try:
        model = PROVIDERS.load(name)(settings)
    except LLMError:
        raise
    except Exception as error:  # raised by another package
        problem = f"{type(error).__name__}: {first_line(error)}"
        raise LLMError(f"cannot use the LLM provider {name!r}: {problem}") from error
    if not isinstance(model, ChatModel):
        raise LLMError(
            f"the LLM provider {name!r} only writes summaries and cannot chat; see docs/how-to/write-a-plug-in.md"
        )
    return model


async def availability(settings: LLMSettings) -> Availability:
    """Check within seconds whether the configured model can answer. This function never raises."""
    try:
        model = chat_model(settings)
    except LLMError as error:
        return unavailable(str(error), settings.model)
    try:
        return await model.check()
    except Exception as error:  # noqa: BLE001 raised by any package
        return unavailable(f"the LLM provider {settings.provider!r} failed ({type(error).__name__})", settings.model)
    finally:
        await model.aclose()
