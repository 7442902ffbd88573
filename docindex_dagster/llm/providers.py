"""The language models by the name of who provides them, ours and those of installed packages.

A provider makes an LLM of the settings, for summaries, or one that chats, for answers, or one that is both. For those
of packages see docs/plugins.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import LLMError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, ChatModel
from docindex_dagster.llm.checking import unset
from docindex_dagster.llm.protocol import LLM, Completion

Provider = Callable[[LLMSettings], LLM]
ChatProvider = Callable[[LLMSettings], object]
"""What it gives is a ChatModel, or else a package's LLM for summaries alone."""


def _openai(settings: LLMSettings) -> LLM:
    from docindex_dagster.llm.openai import OpenAILLM

    return OpenAILLM(settings)


def _anthropic(settings: LLMSettings) -> LLM:
    from docindex_dagster.llm.anthropic import AnthropicLLM

    return AnthropicLLM(settings)


def _ollama(settings: LLMSettings) -> LLM:
    from docindex_dagster.llm.ollama import OllamaChat
    from docindex_dagster.llm.whole import WholeAnswers

    return WholeAnswers(OllamaChat(settings).name, lambda: OllamaChat(settings))


def _codex(_: LLMSettings) -> LLM:
    raise LLMError("codex starts a program for each answer, so it is for single questions alone")


def _openai_chat(settings: LLMSettings) -> ChatModel:
    from docindex_dagster.llm.openai_chat import OpenAIChat

    return OpenAIChat(settings)


def _anthropic_chat(settings: LLMSettings) -> ChatModel:
    from docindex_dagster.llm.anthropic_chat import AnthropicChat

    return AnthropicChat(settings)


def _ollama_chat(settings: LLMSettings) -> ChatModel:
    from docindex_dagster.llm.ollama import OllamaChat

    return OllamaChat(settings)


def _codex_chat(settings: LLMSettings) -> ChatModel:
    from docindex_dagster.llm.codex import CodexChat

    return CodexChat(settings)


PROVIDERS: Plugins[Provider] = Plugins(
    "LLM provider",
    plugins.LLMS,
    {"openai": _openai, "anthropic": _anthropic, "ollama": _ollama, "codex": _codex},
    LLMError,
)
CHAT_PROVIDERS: Plugins[ChatProvider] = Plugins(
    "LLM provider",
    plugins.LLMS,
    {"openai": _openai_chat, "anthropic": _anthropic_chat, "ollama": _ollama_chat, "codex": _codex_chat},
    LLMError,
)


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
        return PROVIDERS.load(name)(settings)
    except Exception as error:  # noqa: BLE001 it may be of another package
        problem = str(error) if isinstance(error, LLMError) else f"{type(error).__name__}: {first_line(error)}"
        return UnavailableLLM(f"{name}/{settings.model}", f"the LLM provider {name!r} cannot be used: {problem}")


def chat_model(settings: LLMSettings) -> ChatModel:
    """The model that the settings name, for answers. Nothing is asked yet, and no key looked for.

    Raises:
        LLMError: there is none, it cannot be loaded, or it does not chat.
    """
    name = settings.provider
    if name == "none":
        raise LLMError("no language model is set: set llm.provider and llm.model; see docs/answers.md")
    try:
        model = CHAT_PROVIDERS.load(name)(settings)
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
