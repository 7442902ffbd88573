"""Interface of language models that complete texts."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer and its billed tokens, in and out; both are 0 if the model does not report them."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


@runtime_checkable
class LLM(Protocol):
    """A model that answers questions from several threads concurrently.

    Instances are often created only for the name, so slow loading must wait until the first question.
    """

    @property
    def name(self) -> str:
        """The model's name. It is the cache key of answers, so it must change whenever new answers are needed."""
        ...

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        """Answer a text, within a time limit of the model's own.

        Args:
            system: the instructions; trusted.
            text: the text to process; untrusted.
            max_tokens: the limit of the answer.

        Raises:
            LLMError: the model was not reachable in time, rejected the request, or returned an unusable answer.
        """
        ...
