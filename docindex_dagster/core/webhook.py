"""Posting to a webhook. Its URL is a secret: who knows it can post, so no log and no error shows it."""

import io
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pydantic import SecretStr

from docindex_dagster.core.errors import AlertError
from docindex_dagster.core.retry import Retry

_RETRY = Retry(2, first_wait_s=1.0)
_TIMEOUT_S = (3, 7)  # to connect, and for the answer
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_REDIRECT = 300
# They log the path of each request at the level of debugging.
_TALKATIVE = ("urllib3.connectionpool", "urllib3.util.retry")


# Words by which some chat programs call everybody.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here)\b)")


def as_text(text: str) -> str:
    """A text in one line that chat programs show as it is: it makes no link, and mentions no user."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL.sub("@\u200b", plain)


def post(url: SecretStr, payload: Mapping[str, object], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Post JSON, and try again where the server cannot be reached or says that it is not able to answer now.

    A server that has the message and is slow to answer is not asked again: it would get the message again each time.

    Args:
        url: the webhook. It is not left for another place that it leads to.
        payload: what is sent.
        sleep: waits for so many seconds between two tries.

    Returns:
        Whether it answered that it took the message; if not, the message was sent whole, and no answer came in time.

    Raises:
        AlertError: it did not take the message; why, without the URL.
    """
    try:
        return _RETRY.call(lambda: _try(url, payload), _is_passing, lambda _: None, sleep)
    except _PostError as error:
        raise AlertError(f"the webhook {error}; see whether DOCINDEX_ALERTS__WEBHOOK is right") from None


class _PostError(Exception):
    """The message was not taken, and why."""

    def __init__(self, problem: str, *, is_passing: bool) -> None:
        self.is_passing = is_passing
        super().__init__(problem)


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, _PostError) and error.is_passing


def _try(url: SecretStr, payload: Mapping[str, object]) -> bool:
    """Post once; says whether an answer came in time.

    Raises:
        _PostError: the message was not taken.
    """
    import requests

    body = io.BytesIO(json.dumps(payload).encode())
    try:
        with (
            _silenced(),
            requests.post(
                url.get_secret_value(),
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=_TIMEOUT_S,
                allow_redirects=False,
                stream=True,  # what it answers is not read
            ) as answer,
        ):
            status = answer.status_code
    except (requests.ConnectionError, requests.Timeout) as error:
        # A TLS handshake that takes too long is a `ReadTimeout` as well, but then nothing of the body was read yet.
        if isinstance(error, requests.ReadTimeout) and body.tell():
            return False
        raise _PostError(f"cannot be reached ({type(error).__name__})", is_passing=True) from None
    except (requests.RequestException, ValueError) as error:  # the message of either names the URL
        raise _PostError(f"cannot be used ({type(error).__name__})", is_passing=False) from None
    if status >= _REDIRECT:
        is_passing = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
        raise _PostError(f"answered with status {status}", is_passing=is_passing)
    return True


@contextmanager
def _silenced() -> Iterator[None]:
    loggers = {logger: logger.disabled for logger in map(logging.getLogger, _TALKATIVE)}
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, before in loggers.items():
            logger.disabled = before
