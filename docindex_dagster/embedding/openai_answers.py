"""What an API that speaks OpenAI's `/embeddings` answers: vectors, or why there are none and what follows from that."""

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, NonNegativeInt, ValidationError

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.retry import retry_after_s
from docindex_dagster.core.urls import scrub
from docindex_dagster.embedding.protocol import Vectors

if TYPE_CHECKING:
    from openai import APIStatusError

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


class AgainError(Exception):
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


def read(body: bytes, texts: int, dimension: int) -> Answer:
    """The vectors of so many texts.

    Raises:
        AgainError: the answer cannot be used.
        EmbeddingError: the vectors have another dimension.
    """
    try:
        answer = _Body.model_validate_json(body)
        rows = [_values(item.embedding) for item in answer.data]
    except (ValidationError, ValueError):
        raise AgainError("answered what is not {data: [{index, embedding}]}", is_garbled=True) from None
    places = [at if item.index is None else item.index for at, item in enumerate(answer.data)]
    if sorted(places) != list(range(texts)):
        raise AgainError(f"answered {len(rows)} vectors for {texts} texts", is_garbled=True)
    if wrong := {len(row) for row in rows} - {dimension}:
        raise EmbeddingError(
            f"answered vectors of {min(wrong)} values, not of {dimension}: "
            f"set embedding.dimensions = {min(wrong)}, or another embedding.model"
        )
    vectors = np.empty((texts, dimension))
    vectors[places] = rows
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise AgainError("answered vectors that have no direction", is_garbled=True)
    usage = answer.usage or _Usage()
    return Answer((vectors / lengths).astype(np.float32), usage.prompt_tokens or usage.total_tokens)


def explained(error: "APIStatusError", key: str | None) -> AgainError | RefusedError | EmbeddingError:
    """What follows from a status that says of no success; messages go on from the name of the API."""
    status, message = error.status_code, _message_of(error.body, key)
    about = error.body if isinstance(error.body, dict) else {}
    if status in _REFUSED or (status >= _SERVER_FAILS and _TOO_LONG.search(message)):
        return RefusedError(message, status, str(about.get("param") or ""))
    if about.get("code") == "insufficient_quota":
        return EmbeddingError(f"answered {status}: the quota of the account is used up, see its billing")
    if status in _AGAIN or status >= _SERVER_FAILS:
        why = _WHY.get(status, "it fails: try again later")
        return AgainError(
            f"answered {status}: {why}", is_limit=status == _LIMIT, asked_s=retry_after_s(error.response.headers)
        )
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
