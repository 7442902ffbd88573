"""An API of a language model: what its failures mean, and which of them may pass.

What a client or server says may repeat what was sent, and the key, so nothing of it is reported but the status.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from docindex_dagster.core.errors import (
    LLMBrokenError,
    LLMError,
    LLMFailedError,
    LLMKeyError,
    LLMLimitError,
    LLMNonsenseError,
    LLMTimeoutError,
    LLMUnreachableError,
)
from docindex_dagster.core.retry import Retry, retry_after_s

OUR_KEY = "DOCINDEX_LLM__API_KEY"
_LONGEST_WAIT_S = 8.0
_LONGEST_ASKED_S = 60.0  # a server that asks for a longer wait is not waited for
_PASSING_ERRORS = (LLMUnreachableError, LLMFailedError, LLMBrokenError)
_PASSING_STATUSES = {408, 409}
_SERVER_ERROR = 500
_REASONS = {
    400: "it refuses the request; see llm.model",
    404: "there is no such path or model; see llm.base_url and llm.model",
}


def is_passing(error: BaseException) -> bool:
    """Whether another attempt may succeed; one that took all its time has taken long enough."""
    return isinstance(error, _PASSING_ERRORS)


def asked_s(error: BaseException) -> float | None:
    """How many seconds the server asked to wait; None where it did not."""
    return error.retry_after_s if isinstance(error, LLMFailedError) else None


def retry_policy(retries: int) -> Retry:
    """Return how long to wait before each of so many retries."""
    return Retry(retries, longest_wait_s=_LONGEST_WAIT_S, longest_asked_s=_LONGEST_ASKED_S)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and how patient to be with it.

    Attributes:
        host: as messages call it.
        key_variable: where its key is looked for.
        timeout_s: for one answer.
        retries: attempts after the first.
    """

    host: str
    key_variable: str
    timeout_s: float
    retries: int

    def unreadable(self, error: Exception) -> LLMError:
        """What an error means that came while an answer was read."""
        if isinstance(error, LLMError):
            return error
        return self.nonsense() if isinstance(error, ValueError) else self.broken(type(error).__name__)

    def refusal(self, status: int, headers: Mapping[str, str]) -> LLMError:
        """What a status means that is not of success."""
        answered = f"{self.host} answered {status}: "
        if status in {401, 403}:
            return LLMKeyError(f"{answered}it does not accept the key in {self.key_variable}")
        if status == 429:  # noqa: PLR2004 a status of HTTP
            reason = "it is asked too often, or the account is used up; see llm.concurrency"
            return LLMLimitError(answered + reason, retry_after_s(headers))
        if status in _PASSING_STATUSES or status >= _SERVER_ERROR:
            return LLMFailedError(f"{answered}it failed", retry_after_s(headers))
        return LLMError(answered + _REASONS.get(status, "it failed"))

    def late(self) -> LLMTimeoutError:
        """It took too long."""
        return LLMTimeoutError(f"{self.host} did not answer within {self.timeout_s:g} s (llm.timeout_s)")

    def unreachable(self) -> LLMUnreachableError:
        """No connection was made, or none that held until an answer."""
        return LLMUnreachableError(f"{self.host} cannot be reached; see llm.base_url")

    def broken(self, why: str) -> LLMBrokenError:
        """An answer ended before its end."""
        return LLMBrokenError(f"the answer of {self.host} broke off ({why})")

    def nonsense(self) -> LLMNonsenseError:
        """It is no API of a language model, or another one."""
        return LLMNonsenseError(f"{self.host} answered what is no completion; see llm.provider and llm.base_url")
