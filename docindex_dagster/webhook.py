"""Posting to a webhook. Its URL is a secret: whoever knows it can post, so no log and no error tells it."""

import io
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from docindex_dagster.errors import AlertError

if TYPE_CHECKING:
    import requests

_TRIES = 3
_FIRST_WAIT_S = 1.0  # doubled each time
_TIMEOUT_S = (3, 7)  # to connect, and for the answer
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_REDIRECT = 300
# They log the path of each request at the level of debugging.
_TALKATIVE = ("urllib3.connectionpool", "urllib3.util.retry")


# Words by which some chat programs call everybody.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here)\b)")


def as_text(text: str) -> str:
    """A text in one line that chat programs show as it is: it makes no link, and calls nobody."""
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
    problem = ""
    for number in range(_TRIES):
        if number:
            sleep(_FIRST_WAIT_S * 2 ** (number - 1))
        outcome = _try(url, payload)
        if not outcome.problem:
            return outcome.is_answered
        problem = outcome.problem
        if outcome.is_final:
            break
    raise AlertError(f"the webhook {problem}; see whether DOCINDEX_ALERTS__WEBHOOK is right")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What went wrong, empty if nothing did; whether trying again would bring the same; and whether it answered."""

    problem: str = ""
    is_final: bool = True
    is_answered: bool = True


def _try(url: SecretStr, payload: Mapping[str, object]) -> _Outcome:
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
            return _verdict(answer)
    except (requests.ConnectionError, requests.Timeout) as error:
        # A TLS handshake that takes too long is a `ReadTimeout` as well, but then nothing of the body was read yet.
        if isinstance(error, requests.ReadTimeout) and body.tell():
            return _Outcome(is_answered=False)
        return _Outcome(f"cannot be reached ({type(error).__name__})", is_final=False)
    except (requests.RequestException, ValueError) as error:  # the message of either names the URL
        return _Outcome(f"cannot be used ({type(error).__name__})")


def _verdict(answer: "requests.Response") -> _Outcome:
    status = answer.status_code
    if status < _REDIRECT:
        return _Outcome()
    is_final = status != _TOO_MANY_REQUESTS and status < _SERVER_ERROR
    return _Outcome(f"answered with status {status}", is_final)


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
