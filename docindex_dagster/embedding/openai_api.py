"""Asking an API that speaks OpenAI's `/embeddings`, again and again while it is worth it.

OpenAI's own library is not used, since it takes 0.85 seconds to load. The retry policy: a rate limit that one thread
meets holds back all threads, an unusable answer counts as a failure, and a run that ends stops waiting.
"""

import base64
import json
import os
import re
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, NonNegativeInt, ValidationError

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.retry import Retry, retry_after_s
from docindex_dagster.core.urls import scrub
from docindex_dagster.embedding.concurrency import Rate, pause
from docindex_dagster.embedding.protocol import Vectors

if TYPE_CHECKING:
    from httpx2 import Client, Response

_MOST_BYTES_A_VALUE = 64  # of an answer: a number in decimal, and what stands around it
_LEAST_BYTES = 1 << 20
# What OpenAI takes from variables that its own library reads.
_HEADERS = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
_LATE = "did not answer in time: see embedding.timeout_s"
_MOST_GARBLED = 2  # answers that cannot be used are paid for, too
_LONGEST_MESSAGE = 200  # characters that are shown of an API's message
_REDIRECTS, _LIMIT, _SERVER_FAILS = range(300, 400), 429, 500
_REFUSED = {400, 413, 422}
_AGAIN = {408, 409, _LIMIT}
_TOO_LONG = re.compile(
    r"context.?length|too (long|large)|(maximum|max|exceed|less than).{0,60}(token|length)", re.IGNORECASE | re.DOTALL
)
_NO_KEY = "it does not accept the key, or wants one: see DOCINDEX_EMBEDDING__API_KEY and docs/embedders.md"
_WHY = {
    401: _NO_KEY,
    403: _NO_KEY,
    404: "there is no such model or path: see embedding.model and embedding.base_url",
    _LIMIT: "it is asked too often: set embedding.requests_per_minute, embedding.tokens_per_minute or a lower "
    "embedding.concurrency",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The vectors of a request's texts, of unit length, and how many tokens these were, if the API says so."""

    vectors: Vectors
    tokens: int | None


class _AgainError(Exception):
    """A try failed, and the next one may not."""

    def __init__(
        self, what: str, *, is_limit: bool = False, asked_s: float | None = None, is_garbled: bool = False
    ) -> None:
        self.is_limit = is_limit  # others had better wait, too
        self.asked_s = asked_s  # how long the API asks to wait
        self.is_garbled = is_garbled  # it answered, and wants to be paid
        super().__init__(what)


class RefusedError(Exception):
    """The API does not take a request as it is; the message is what it says."""

    def __init__(self, message: str, status: int, param: str) -> None:
        self.status, self.param = status, param
        super().__init__(message)

    @property
    def is_too_long(self) -> bool:
        """It is a matter of length."""
        return _TOO_LONG.search(str(self)) is not None

    def is_about(self, option: str) -> bool:
        """It is a matter of an option of the request."""
        message = str(self).lower()
        return option == self.param or option in message or (option == "dimensions" and "matryoshka" in message)


def _read_answer(body: bytes, texts: int, dimension: int) -> Answer:
    """The vectors of so many texts.

    Raises:
        _AgainError: the answer cannot be used.
        EmbeddingError: the vectors have another dimension.
    """
    try:
        answer = _Body.model_validate_json(body)
        rows = [_values(item.embedding) for item in answer.data]
    except (ValidationError, ValueError):
        raise _AgainError("answered what is not {data: [{index, embedding}]}", is_garbled=True) from None
    places = [at if item.index is None else item.index for at, item in enumerate(answer.data)]
    if sorted(places) != list(range(texts)):
        raise _AgainError(f"answered {len(rows)} vectors for {texts} texts", is_garbled=True)
    if wrong := {len(row) for row in rows} - {dimension}:
        raise EmbeddingError(
            f"answered vectors of {min(wrong)} values, not of {dimension}: "
            f"set embedding.dimensions = {min(wrong)}, or another embedding.model"
        )
    vectors = np.empty((texts, dimension))
    vectors[places] = rows
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise _AgainError("answered vectors that have no direction", is_garbled=True)
    usage = answer.usage or _Usage()
    return Answer((vectors / lengths).astype(np.float32), usage.prompt_tokens or usage.total_tokens)


def _explained(
    status: int, headers: Mapping[str, str], body: bytes, key: str | None
) -> _AgainError | RefusedError | EmbeddingError:
    """What follows from a status that says of no success; messages go on from the name of the API."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        found = body.decode("utf-8", "replace")
    message = _message_of(found, key)
    about = found.get("error", found) if isinstance(found, dict) else {}
    about = about if isinstance(about, dict) else {}
    if status in _REFUSED or (status >= _SERVER_FAILS and _TOO_LONG.search(message)):
        return RefusedError(message, status, str(about.get("param") or ""))
    if about.get("code") == "insufficient_quota":
        return EmbeddingError(f"answered {status}: the quota of the account is used up, see its billing")
    if status in _AGAIN or status >= _SERVER_FAILS:
        why = _WHY.get(status, "it fails: try again later")
        return _AgainError(f"answered {status}: {why}", is_limit=status == _LIMIT, asked_s=retry_after_s(headers))
    if status in _REDIRECTS:
        return EmbeddingError(f"answered {status}: embedding.base_url must name the place that it redirects to")
    return EmbeddingError(f"answered {status}: {_WHY.get(status, message)}")


class _Vector(BaseModel):
    index: NonNegativeInt | None = None
    embedding: str | list[float]


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt | None = None
    total_tokens: NonNegativeInt | None = None


class _Body(BaseModel):
    data: list[_Vector]
    usage: _Usage | None = None


def _values(embedding: str | list[float]) -> NDArray[np.float64 | np.float32]:
    """A vector, shape (d,), of numbers, or of the base64 of 32-bit ones, which is a quarter as long."""
    if isinstance(embedding, list):
        return np.array(embedding, np.float64)
    return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")


def _message_of(body: object, key: str | None) -> str:
    """What the API says, in a line and without the key, which some repeat."""
    while isinstance(body, dict):
        body = next((body[name] for name in ("message", "error", "detail") if name in body), None)
    text = str(body or "it does not say why").replace(key or "\0", "…")
    text = " ".join(scrub(text).split())
    return "".join(char for char in text if char.isprintable())[:_LONGEST_MESSAGE]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try: so long for one answer, in seconds, and so often."""

    timeout_s: float
    retry: Retry


@dataclass(slots=True, weakref_slot=True, eq=False)
class OpenAIApi:
    """An endpoint and a model of it. It may be asked from several threads."""

    base_url: str
    key: str | None = field(repr=False)
    model: str
    dimension: int
    options: dict[str, Any]  # of a request, besides the model and the texts
    instead: dict[str, Any] = field(default_factory=dict)  # of those that an API may refuse; None: nothing
    requests: int = field(default=0, init=False)  # so far
    _client: "Client | None" = field(default=None, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the embedding API {urlsplit(self.base_url).netloc.rpartition('@')[2]}"

    def ask(self, texts: Sequence[str], tokens: int, rate: Rate, patience: Patience) -> Answer:
        """The vectors of some texts, which are about so many tokens.

        Raises:
            RefusedError: the API does not take these texts.
            EmbeddingError: it fails, or answers what cannot be used.
        """
        tries = garbled = 0
        is_limit = False

        def attempt() -> Answer:
            nonlocal tries, garbled, is_limit
            rate.wait(tokens)
            tries += 1
            try:
                return self._ask(texts, patience.timeout_s)
            except _AgainError as error:
                garbled += error.is_garbled
                is_limit = error.is_limit
                raise

        def is_passing(error: BaseException) -> bool:
            return isinstance(error, _AgainError) and garbled <= _MOST_GARBLED

        def sleep(seconds: float) -> None:
            (rate.hold if is_limit else pause)(seconds)  # a limit is one for all threads

        try:
            return patience.retry.call(attempt, is_passing, _asked_s, sleep)
        except EmbeddingError as error:
            raise EmbeddingError(f"{self.name} {error}") from None
        except _AgainError as error:
            asked = f"; it asks to wait for {error.asked_s:,.0f} s" if error.asked_s else ""
            times = f" ({tries} tries)" if tries > 1 else ""
            raise EmbeddingError(f"{self.name} {error}{asked}{times}") from None

    def _ask(self, texts: Sequence[str], timeout_s: float) -> Answer:
        options = self.options
        try:
            return _read_answer(self._post(texts, options, timeout_s), len(texts), self.dimension)
        except RefusedError as error:
            instead = {name: value for name, value in self.instead.items() if error.is_about(name)}
            others = {name: value for name, value in (options | instead).items() if value is not None}
            if others == options:
                raise
            self.options = others
            return self._ask(texts, timeout_s)

    def _post(self, texts: Sequence[str], options: dict[str, Any], timeout_s: float) -> bytes:
        import httpx2

        deadline = time.monotonic() + timeout_s
        client = self._connected()
        try:
            asked = {"input": list(texts), "model": self.model, **options}
            request = client.build_request("POST", "/embeddings", json=asked, timeout=timeout_s)
            response = client.send(request, stream=True)
        except httpx2.TimeoutException:
            raise _AgainError(f"did not answer within {timeout_s:g} s: see embedding.timeout_s") from None
        except Exception:  # noqa: BLE001 the library's own errors, and those of what it stands on
            raise _AgainError("cannot be reached: see embedding.base_url and the network") from None
        with closing(response):
            body = self._received(response, len(texts), deadline)
        if response.is_success:
            return body
        raise _explained(response.status_code, response.headers, body, self.key)

    def _connected(self) -> "Client":
        with self._lock:
            self.requests += 1
            if self._client is None:
                import httpx2

                headers = {header: os.environ[name] for name, header in _HEADERS.items() if name in os.environ}
                headers["Authorization"] = f"Bearer {self.key or 'none'}"
                # A redirect would carry the texts and the key to another place.
                self._client = httpx2.Client(base_url=self.base_url, headers=headers, follow_redirects=False)
                weakref.finalize(self, self._client.close)
            return self._client

    def _received(self, response: "Response", texts: int, deadline: float) -> bytes:
        """An answer up to a size and within its time: a server may send for ever."""
        most = _LEAST_BYTES + texts * self.dimension * _MOST_BYTES_A_VALUE
        body = bytearray()
        for block in _blocks(response, deadline):
            body += block
            if len(body) > most:
                raise _AgainError(f"answered more than {most:,} bytes", is_garbled=True)
            if time.monotonic() > deadline:
                raise _AgainError(_LATE)
        return bytes(body)


def _blocks(response: "Response", deadline: float) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except Exception as error:  # noqa: BLE001 the library's own errors, and those of what it stands on
        is_late = time.monotonic() > deadline
        raise _AgainError(_LATE if is_late else f"broke off its answer ({type(error).__name__})") from None


def _asked_s(error: BaseException) -> float | None:
    return error.asked_s if isinstance(error, _AgainError) else None
