"""What every language model offers."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer, and the tokens that were paid for it; both are 0 where the model does not say."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


@runtime_checkable
class LLM(Protocol):
    """A model that answers questions, from several threads at once.

    It is made often, for its name alone: what is slow waits until it is asked.
    """

    @property
    def name(self) -> str:
        """Of the model. Answers are kept under it, so it changes when other ones are to be asked for."""
        ...

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text, within a time of its own choice.

        Args:
            system: what to do, from us.
            text: what to do it with; untrusted.
            max_tokens: of the answer.

        Raises:
            LLMError: it cannot be reached in time, refuses, or answers what cannot be used.
        """
        ...
