"""One request to an API of a language model: within a time limit, and again where that may help.

Both vendors' clients raise errors of the same names. What these say may repeat what was sent, and the key, so nothing
of it is reported but the status.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from docindex_dagster.core.deadline import within
from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.retry import Retry, retry_after_s

_Answer = TypeVar("_Answer")
_MOST_BYTES = 4 << 20  # of an answer
_LONGEST_WAIT_S = 8.0
_LONGEST_ASKED_S = 60.0  # what asks for more patience is asked again in the next run
_PASSING = {408, 409, 429}
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Api:
    """An endpoint, and how patient to be with it."""

    sdk: ModuleType  # the vendor's client
    host: str
    key_variable: str  # where its key is looked for
    timeout_s: float
    retries: int

    def answer(self, attempt: Callable[[], _Answer]) -> _Answer:
        """What an attempt gives, the first that succeeds.

        Raises:
            LLMError: none did.
        """
        patience = Retry(self.retries, longest_wait_s=_LONGEST_WAIT_S, longest_asked_s=_LONGEST_ASKED_S)
        try:
            return patience.call(lambda: within(self.timeout_s, attempt), self._is_passing, self._asked_s)
        except Exception as error:  # noqa: BLE001 a library's own errors, and those of what it stands on
            raise LLMError(self._explained(error)) from None

    def _is_passing(self, error: BaseException) -> bool:
        """Whether another attempt may succeed; one that took all its time has taken long enough."""
        if isinstance(error, self.sdk.APIStatusError):
            return error.status_code in _PASSING or error.status_code >= _SERVER_ERROR
        return isinstance(error, self.sdk.APIConnectionError) and not isinstance(error, self.sdk.APITimeoutError)

    def _asked_s(self, error: BaseException) -> float | None:
        return retry_after_s(error.response.headers) if isinstance(error, self.sdk.APIStatusError) else None

    def _explained(self, error: Exception) -> str:
        if isinstance(error, LLMError):
            return str(error)
        if isinstance(error, (TimeoutError, self.sdk.APITimeoutError)):
            return f"{self.host} did not answer within {self.timeout_s:g} s (llm.timeout_s)"
        if isinstance(error, self.sdk.APIConnectionError):
            return f"{self.host} cannot be reached; see llm.base_url"
        if isinstance(error, self.sdk.APIStatusError):
            return f"{self.host} answered {error.status_code}: {self._why(error.status_code)}"
        if isinstance(error, ValueError):
            return f"{self.host} answered what is no completion"
        return f"the answer of {self.host} broke off ({type(error).__name__})"

    def _why(self, status: int) -> str:
        if status in {401, 403}:
            return f"it does not accept the key in {self.key_variable}"
        reasons = {
            400: "it refuses the request; see llm.model",
            404: "there is no such path or model; see llm.base_url and llm.model",
            429: "it is asked too often, or the account is used up; see llm.concurrency",
        }
        return reasons.get(status, "it failed")


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
