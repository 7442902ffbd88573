"""One request to an API of a language model: within a time limit, and again where that may help.

Both vendors' clients raise errors of the same names. What these say may repeat what was sent, and the key, so nothing
of it is told but the status.
"""

import math
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from types import ModuleType
from typing import Any, TypeVar

from docindex_dagster.deadline import within
from docindex_dagster.errors import LLMError

_Answer = TypeVar("_Answer")
_MOST_BYTES = 4 << 20  # of an answer
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 8.0
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
        for tried in count():
            try:
                return within(self.timeout_s, attempt)
            except Exception as error:  # noqa: BLE001 a library's own errors, and those of what it stands on
                problem, wait_s = self._explained(error), self._wait_s(error, tried)
            if wait_s is None or tried >= self.retries:
                break
            time.sleep(wait_s)
        raise LLMError(problem)

    def _wait_s(self, error: Exception, tried: int) -> float | None:
        """How long to wait before the next attempt; None where it would fail, too, or has taken long enough."""
        if isinstance(error, self.sdk.APIStatusError):
            if error.status_code not in _PASSING and error.status_code < _SERVER_ERROR:
                return None
            asked = _seconds(error.response.headers.get("retry-after"))
            if asked is not None:
                return asked if asked <= _LONGEST_ASKED_S else None
        elif not isinstance(error, self.sdk.APIConnectionError) or isinstance(error, self.sdk.APITimeoutError):
            return None
        longest = min(_FIRST_WAIT_S * 2.0**tried, _LONGEST_WAIT_S)
        return random.uniform(longest / 2, longest)  # noqa: S311 no secret

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


def _seconds(value: str | None) -> float | None:
    """The seconds of a `Retry-After`; None where it is none, or a date."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(seconds) else max(0.0, seconds)
