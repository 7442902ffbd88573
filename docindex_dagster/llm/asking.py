"""One request to an API of a language model: within a time limit, and again where that may help."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from docindex_dagster.core.background import within
from docindex_dagster.llm.endpoint import Endpoint, asked_s, is_passing

_Answer = TypeVar("_Answer")
_MOST_BYTES = 4 << 20  # of an answer


@dataclass(frozen=True, slots=True)
class Api:
    """An endpoint, and the vendor's client that asks it."""

    sdk: ModuleType
    endpoint: Endpoint

    def answer(self, attempt: Callable[[], _Answer]) -> _Answer:
        """What an attempt gives, the first that succeeds.

        Raises:
            LLMError: none did.
        """

        def explained() -> _Answer:
            try:
                return within(self.endpoint.timeout_s, attempt)
            except Exception as error:  # noqa: BLE001 a library's own errors, and those of what it stands on
                raise self.endpoint.explained(error, self.sdk) from None

        return self.endpoint.retry.call(explained, is_passing, asked_s)


def body_of(streamed: AbstractContextManager[Any]) -> bytes:
    """The body of an answer, up to a size: a server may send for ever.

    Raises:
        ValueError: it is longer.
    """
    body = b""
    with streamed as response:
        for block in response.iter_bytes():
            body += block
            if len(body) > _MOST_BYTES:
                raise ValueError("too long")
    return body
