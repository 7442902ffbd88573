"""Posting to a webhook. Its URL is a secret: whoever knows it can post, so no log and no error tells it."""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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


def post(url: SecretStr, payload: Mapping[str, object], sleep: Callable[[float], None] = time.sleep) -> None:
    """Post JSON, and try again where the server cannot be reached or says that it is not able to answer now.

    Args:
        url: the webhook. It is not left for another place that it leads to.
        payload: what is sent.
        sleep: waits for so many seconds between two tries.

    Raises:
        AlertError: it did not take the message; why, without the URL.
    """
    problem = ""
    for number in range(_TRIES):
        if number:
            sleep(_FIRST_WAIT_S * 2 ** (number - 1))
        problem, is_final = _try(url, payload)
        if not problem:
            return
        if is_final:
            break
    raise AlertError(f"the webhook {problem}; see whether DOCINDEX_ALERTS__WEBHOOK is right")


def _try(url: SecretStr, payload: Mapping[str, object]) -> tuple[str, bool]:
    """What went wrong, empty if nothing did, and whether trying again would bring the same."""
    import requests

    try:
        with (
            _silenced(),
            requests.post(
                url.get_secret_value(),
                json=payload,
                timeout=_TIMEOUT_S,
                allow_redirects=False,
                stream=True,  # what it answers is not read
            ) as answer,
        ):
            return _verdict(answer)
    except (requests.ConnectionError, requests.Timeout) as error:
        return f"cannot be reached ({type(error).__name__})", False
    except (requests.RequestException, ValueError) as error:  # the message of either names the URL
        return f"cannot be used ({type(error).__name__})", True


def _verdict(answer: "requests.Response") -> tuple[str, bool]:
    status = answer.status_code
    if status < _REDIRECT:
        return "", True
    return f"answered with status {status}", status != _TOO_MANY_REQUESTS and status < _SERVER_ERROR


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
