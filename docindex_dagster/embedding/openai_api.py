"""Client for OpenAI's `/embeddings` API and compatible ones, with retries.

OpenAI's own library takes 0.85 seconds to load, so it is not used. Retry policy: a rate limit hit by one thread holds
back all threads, an unusable response counts as a failure, and a run that is ending stops waiting.
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

_MAX_BYTES_PER_VALUE = 64  # in a response: a decimal number and its separators
_MIN_BODY_BYTES = 1 << 20
# Headers from the environment variables that OpenAI's own library reads.
_HEADERS = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
_LATE = "did not answer in time: see embedding.timeout_s"
_MAX_GARBLED = 2  # unusable responses, which cost money too
_MAX_MESSAGE = 200  # characters shown of an API's message
_REDIRECTS, _LIMIT, _SERVER_FAILS = range(300, 400), 429, 500
_REFUSED = {400, 413, 422}
_RETRYABLE = {408, 409, _LIMIT}
_TOO_LONG = re.compile(
    r"context.?length|too (long|large)|(maximum|max|exceed|less than).{0,60}(token|length)", re.IGNORECASE | re.DOTALL
)
_NO_KEY = (
    "it requires a key or rejects this one: see DOCINDEX_EMBEDDING__API_KEY and "
    "docs/how-to/use-another-embedding-model.md"
)
_WHY = {
    401: _NO_KEY,
    403: _NO_KEY,
    404: "model or path not found: check embedding.model and embedding.base_url",
    _LIMIT: "too many requests: set embedding.requests_per_minute, embedding.tokens_per_minute or a lower "
    "embedding.concurrency",
}


@dataclass(frozen=True, slots=True)
class EmbeddingResponse:
    """The unit vectors of a request's texts, and their number of tokens if the API reports it."""

    vectors: Vectors
    tokens: int | None


class _RetryableError(Exception):
    """A failed attempt that is worth retrying."""

    def __init__(
        self, what: str, *, is_limit: bool = False, asked_s: float | None = None, is_garbled: bool = False
    ) -> None:
        self.is_limit = is_limit  # a rate limit: other threads should wait too
        self.asked_s = asked_s  # seconds to wait, if the API says
        self.is_garbled = is_garbled  # the API sent an unusable response, and bills it
        super().__init__(what)


class RefusedError(Exception):
    """The API rejects the request as it is; the message is the API's."""

    def __init__(self, message: str, status: int, param: str) -> None:
        self.status, self.param = status, param
        super().__init__(message)

    @property
    def is_too_long(self) -> bool:
        """Whether the API rejects the request for its length."""
        return _TOO_LONG.search(str(self)) is not None

    def is_about(self, option: str) -> bool:
        """Whether the API rejects the request because of this option."""
        message = str(self).lower()
        return option == self.param or option in message or (option == "dimensions" and "matryoshka" in message)


def _read_answer(body: bytes, texts: int, dimension: int) -> EmbeddingResponse:
    """Return the vectors in a response.

    Raises:
        _AgainError: the response is unusable.
        EmbeddingError: the vectors have another dimension.
    """
    try:
        answer = _Body.model_validate_json(body)
        rows = [_values(item.embedding) for item in answer.data]
    except (ValidationError, ValueError):
        raise _RetryableError("answered with JSON other than {data: [{index, embedding}]}", is_garbled=True) from None
    positions = [at if item.index is None else item.index for at, item in enumerate(answer.data)]
    if sorted(positions) != list(range(texts)):
        raise _RetryableError(f"answered with {len(rows)} vectors for {texts} texts", is_garbled=True)
    if wrong := {len(row) for row in rows} - {dimension}:
        raise EmbeddingError(
            f"answered with vectors of {min(wrong)} values, not {dimension}: "
            f"set embedding.dimensions = {min(wrong)}, or change embedding.model"
        )
    vectors = np.empty((texts, dimension))
    vectors[positions] = rows
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise _RetryableError("answered with vectors that are zero or not finite", is_garbled=True)
    usage = answer.usage or _Usage()
    return EmbeddingResponse((vectors / lengths).astype(np.float32), usage.prompt_tokens or usage.total_tokens)


def _error_for(
    status: int, headers: Mapping[str, str], body: bytes, key: str | None
) -> _RetryableError | RefusedError | EmbeddingError:
    """Return the error for an unsuccessful status; the caller prefixes its message with the name of the API."""
    try:
        payload: object = json.loads(body)
    except (ValueError, RecursionError):
        payload = body.decode("utf-8", "replace")
    message = _message_of(payload, key)
    detail = payload.get("error", payload) if isinstance(payload, dict) else {}
    detail = detail if isinstance(detail, dict) else {}
    if status in _REFUSED or (status >= _SERVER_FAILS and _TOO_LONG.search(message)):
        return RefusedError(message, status, str(detail.get("param") or ""))
    if detail.get("code") == "insufficient_quota":
        return EmbeddingError(f"answered {status}: the account's quota is used up. Check its billing")
    if status in _RETRYABLE or status >= _SERVER_FAILS:
        why = _WHY.get(status, "temporary failure, try again later")
        return _RetryableError(f"answered {status}: {why}", is_limit=status == _LIMIT, asked_s=retry_after_s(headers))
    if status in _REDIRECTS:
        return EmbeddingError(f"answered {status}: set embedding.base_url to the URL it redirects to")
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
    """Return a vector, shape (d,), from numbers or from base64 of 32-bit floats, which takes a quarter of the size."""
    if isinstance(embedding, list):
        return np.array(embedding, np.float64)
    return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")


def _message_of(body: object, key: str | None) -> str:
    """Return the API's message as one line, without the key, which some APIs repeat."""
    while isinstance(body, dict):
        body = next((body[name] for name in ("message", "error", "detail") if name in body), None)
    text = str(body or "no reason given").replace(key or "\0", "…")
    text = " ".join(scrub(text).split())
    return "".join(char for char in text if char.isprintable())[:_MAX_MESSAGE]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try: the timeout per response in seconds, and the retry policy."""

    timeout_s: float
    retry: Retry


@dataclass(slots=True, weakref_slot=True, eq=False)
class OpenAIApi:
    """A client for one model at an endpoint; thread-safe."""

    base_url: str
    key: str | None = field(repr=False)
    model: str
    dimension: int
    options: dict[str, Any]  # of a request, in addition to the model and the texts
    instead: dict[str, Any] = field(default_factory=dict)  # fallbacks for options the API may reject; None: omit
    requests: int = field(default=0, init=False)  # sent so far
    _client: "Client | None" = field(default=None, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the API in messages."""
        return f"the embedding API {urlsplit(self.base_url).netloc.rpartition('@')[2]}"

    def ask(self, texts: Sequence[str], tokens: int, rate: Rate, patience: Patience) -> EmbeddingResponse:
        """Return the vectors of texts that have about `tokens` tokens.

        Raises:
            RefusedError: the API rejects these texts.
            EmbeddingError: the API fails, or its response is unusable.
        """
        tries = garbled = 0
        is_limit = False

        def attempt() -> EmbeddingResponse:
            nonlocal tries, garbled, is_limit
            rate.wait(tokens)
            tries += 1
            try:
                return self._attempt(texts, patience.timeout_s)
            except _RetryableError as error:
                garbled += error.is_garbled
                is_limit = error.is_limit
                raise

        def is_transient(error: BaseException) -> bool:
            return isinstance(error, _RetryableError) and garbled <= _MAX_GARBLED

        def sleep(seconds: float) -> None:
            (rate.hold if is_limit else pause)(seconds)  # a rate limit applies to all threads

        try:
            return patience.retry.call(attempt, is_transient, _asked_s, sleep)
        except EmbeddingError as error:
            raise EmbeddingError(f"{self.name} {error}") from None
        except _RetryableError as error:
            retry_hint = f". Retry after {error.asked_s:,.0f} s" if error.asked_s else ""
            times = f" ({tries} tries)" if tries > 1 else ""
            raise EmbeddingError(f"{self.name} {error}{retry_hint}{times}") from None

    def _attempt(self, texts: Sequence[str], timeout_s: float) -> EmbeddingResponse:
        options = self.options
        try:
            return _read_answer(self._post(texts, options, timeout_s), len(texts), self.dimension)
        except RefusedError as error:
            instead = {name: value for name, value in self.instead.items() if error.is_about(name)}
            adjusted = {name: value for name, value in (options | instead).items() if value is not None}
            if adjusted == options:
                raise
            self.options = adjusted
            return self._attempt(texts, timeout_s)

    def _post(self, texts: Sequence[str], options: dict[str, Any], timeout_s: float) -> bytes:
        import httpx2

        deadline = time.monotonic() + timeout_s
        client = self._connect()
        try:
            payload = {"input": list(texts), "model": self.model, **options}
            request = client.build_request("POST", "/embeddings", json=payload, timeout=timeout_s)
            response = client.send(request, stream=True)
        except httpx2.TimeoutException:
            raise _RetryableError(f"did not answer within {timeout_s:g} s: see embedding.timeout_s") from None
        except Exception:  # noqa: BLE001 errors of httpx2 and the libraries it uses
            raise _RetryableError("cannot be reached: check embedding.base_url and the network") from None
        with closing(response):
            body = self._receive(response, len(texts), deadline)
        if response.is_success:
            return body
        raise _error_for(response.status_code, response.headers, body, self.key)

    def _connect(self) -> "Client":
        with self._lock:
            self.requests += 1
            if self._client is None:
                import httpx2

                headers = {header: os.environ[name] for name, header in _HEADERS.items() if name in os.environ}
                headers["Authorization"] = f"Bearer {self.key or 'none'}"
                # Following a redirect would send the texts and the key to another server.
                self._client = httpx2.Client(base_url=self.base_url, headers=headers, follow_redirects=False)
                weakref.finalize(self, self._client.close)
            return self._client

    def _receive(self, response: "Response", texts: int, deadline: float) -> bytes:
        """Read a response with limits on size and time: a server may send data forever."""
        limit = _MIN_BODY_BYTES + texts * self.dimension * _MAX_BYTES_PER_VALUE
        body = bytearray()
        for block in _blocks(response, deadline):
            body += block
            if len(body) > limit:
                raise _RetryableError(f"answered more than {limit:,} bytes", is_garbled=True)
            if time.monotonic() > deadline:
                raise _RetryableError(_LATE)
        return bytes(body)


def _blocks(response: "Response", deadline: float) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except Exception as error:  # noqa: BLE001 errors of httpx2 and the libraries it uses
        is_late = time.monotonic() > deadline
        problem = f"closed the connection during its response ({type(error).__name__})"
        raise _RetryableError(_LATE if is_late else problem) from None


def _asked_s(error: BaseException) -> float | None:
    return error.asked_s if isinstance(error, _RetryableError) else None
