"""The language models by the name of who provides them, ours and those of installed packages.

A provider makes an LLM of the settings. For those of packages see docs/summaries.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import LLMError, first_line
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.protocol import LLM, Completion

Provider = Callable[[LLMSettings], LLM]


def _openai(settings: LLMSettings) -> LLM:
    from docindex_dagster.llm.openai import OpenAILLM

    return OpenAILLM(settings)


def _anthropic(settings: LLMSettings) -> LLM:
    from docindex_dagster.llm.anthropic import AnthropicLLM

    return AnthropicLLM(settings)


PROVIDERS: Plugins[Provider] = Plugins(
    "LLM provider", plugins.LLMS, {"openai": _openai, "anthropic": _anthropic}, LLMError
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
