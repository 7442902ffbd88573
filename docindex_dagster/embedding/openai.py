"""The `openai` provider: OpenAI's models, and models behind any compatible endpoint.

Requests stay within the API's limits. Texts that are too long are truncated. A rejected request is halved until the
offending text is isolated, so that it does not cost other texts their vectors.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from docindex_dagster.core.errors import EmbeddingError, PartialEmbeddingError
from docindex_dagster.core.retry import Retry
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.embedding.concurrency import Rate
from docindex_dagster.embedding.openai_api import OpenAIApi, Patience, RefusedError
from docindex_dagster.embedding.protocol import Usage, Vectors

DEFAULT_MODEL = "text-embedding-3-large"
_OPENAI = "https://api.openai.com/v1"
_BATCH = 100
_TOKENS_PER_TEXT = 8192
_TOKENS_PER_REQUEST = 300_000
_MARGIN = 1.25  # token counts are estimates
_SHORTEST_CUT = 64  # bytes: length cannot be the reason for rejecting a text this short
_CUT = 0.75  # fraction of a text that is kept each time it is rejected as too long
_PROBE = "docindex"  # a text that every model accepts
# A search waits for the vector of its query, and works without it.
_QUERY = Patience(5.0, Retry(1, first_wait_s=0.2, longest_wait_s=1.0, max_requested_wait_s=1.0))


@dataclass(frozen=True, slots=True)
class _KnownModel:
    dimension: int
    price: float  # in dollars per million tokens
    supports_dimensions: bool


_MODELS = {
    "text-embedding-3-large": _KnownModel(3072, 0.13, supports_dimensions=True),
    "text-embedding-3-small": _KnownModel(1536, 0.02, supports_dimensions=True),
    "text-embedding-ada-002": _KnownModel(1536, 0.10, supports_dimensions=False),
}


class OpenAIEmbedder:
    """A model behind an API. It sends no request and looks up no key before the first text is embedded."""

    max_tokens = _TOKENS_PER_TEXT

    def __init__(self, settings: EmbeddingSettings, *, first_wait_s: float = 0.5) -> None:
        """Read the settings.

        Args:
            settings: model, dimensions, endpoint, key, limits.
            first_wait_s: delay before the first retry of a request.

        Raises:
            EmbeddingError: the settings lack the dimension, or the model does not support it.
        """
        self._settings = settings
        self._model = settings.model or DEFAULT_MODEL
        self.dimension = _dimension(self._model, settings.dimensions)
        self.name = f"openai/{self._model}/{self.dimension}"
        self.endpoint = _endpoint(_base_url(settings))
        self.batch_size = settings.batch_size or _BATCH
        self.concurrency = settings.concurrency
        self._patience = Patience(settings.timeout_s, Retry(settings.retries, first_wait_s))
        self._rate = Rate(settings.requests_per_minute, settings.tokens_per_minute)
        self._budget = min(_TOKENS_PER_REQUEST, settings.tokens_per_minute or _TOKENS_PER_REQUEST)
        self._lock = Lock()
        self._api: OpenAIApi | None = None
        self._tokens = self._cut = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of shape (len(texts), dimension) and unit length.

        Raises:
            EmbeddingError: the API rejects some of the texts, or fails; always a `PartialEmbeddingError` with the
                vectors of the other texts.
        """
        call = _Call(list(texts), np.full((len(texts), self.dimension), np.nan, np.float32))
        try:
            tokens = self._shorten(call)
            for batch in _batches(tokens, self.batch_size, self._budget):
                self._embed(call, batch, tokens)
        except EmbeddingError as error:
            raise PartialEmbeddingError(str(error), call.vectors, go_on=False) from None
        finally:
            with self._lock:
                self._cut += len(call.cut)
        if call.refused:
            raise PartialEmbeddingError(self._describe_refusal(call), call.vectors, go_on=True)
        return call.vectors

    def embed_query(self, text: str) -> Vectors:
        """Return a vector of shape (dimension,) and unit length, with short timeouts.

        Raises:
            EmbeddingError: the API fails or rejects the query.
        """
        call = _Call([text], np.empty((1, self.dimension), np.float32))
        tokens = self._shorten(call)
        try:
            vector: Vectors = self._request(call.texts, tokens[0], Rate(), self._query_patience())[0]
        except RefusedError as error:
            raise EmbeddingError(f"{self._connect().name} rejected the query: {error}") from None
        return vector

    def usage(self) -> Usage:
        """Return the usage so far."""
        known = _MODELS.get(self._model) if _is_openai(_base_url(self._settings)) else None
        price = self._settings.price if self._settings.price is not None or known is None else known.price
        with self._lock:
            cost = None if price is None else self._tokens * price / 1e6
            return Usage(self._api.requests if self._api else 0, self._tokens, cost, self._cut)

    def _query_patience(self) -> Patience:
        configured = self._patience
        retries = min(_QUERY.retry.retries, configured.retry.retries)
        return Patience(min(_QUERY.timeout_s, configured.timeout_s), replace(_QUERY.retry, retries=retries))

    def _shorten(self, call: "_Call") -> list[int]:
        """Truncate texts that are too long by our count; return the estimated number of tokens per text."""
        counted = count_tokens(call.texts)
        for at, count in enumerate(counted):
            text = call.texts[at] = call.texts[at] if call.texts[at].strip() else "-"  # the API rejects blank texts
            if count > self.max_tokens and len(text.encode()) > self.max_tokens:  # a token has at least one byte
                call.texts[at], counted[at] = _prefix(text, count, self.max_tokens)
                call.cut.add(at)
        return [
            min(len(text.encode()), int(count * _MARGIN) + 1) for text, count in zip(call.texts, counted, strict=True)
        ]

    def _embed(self, call: "_Call", batch: list[int], tokens: list[int]) -> None:
        """Embed texts of a call in one request; halve the batch if the API rejects it."""
        try:
            call.vectors[batch] = self._request(
                [call.texts[at] for at in batch], sum(tokens[at] for at in batch), self._rate, self._patience
            )
        except RefusedError as error:
            if len(batch) > 1:
                self._check_api_accepts_texts(error)
                middle = len(batch) // 2
                self._embed(call, batch[:middle], tokens)
                self._embed(call, batch[middle:], tokens)
                return
            (at,) = batch
            if error.is_too_long and len(call.texts[at].encode()) > _SHORTEST_CUT:
                call.texts[at] = call.texts[at][: int(len(call.texts[at]) * _CUT)]
                call.cut.add(at)
                self._embed(call, batch, tokens)
                return
            self._check_api_accepts_texts(error)
            call.refused[at] = str(error)

    def _check_api_accepts_texts(self, refusal: RefusedError) -> None:
        """Check that the API accepts some text, to avoid retrying each text with an API that rejects all.

        Raises:
            EmbeddingError: the API rejects every text.
        """
        if self._tokens:
            return
        try:
            self._request([_PROBE], 1, self._rate, self._patience)
        except RefusedError:
            name = self._connect().name
            raise EmbeddingError(f"{name} answers {refusal.status} to any text: {refusal}. Check [embedding]") from None

    def _request(self, texts: list[str], tokens: int, rate: Rate, patience: Patience) -> Vectors:
        answer = self._connect().ask(texts, tokens, rate, patience)
        counted = sum(count_tokens(texts)) if answer.tokens is None else answer.tokens
        with self._lock:
            self._tokens += max(1, counted)
        return answer.vectors

    def _connect(self) -> OpenAIApi:
        with self._lock:
            if self._api is None:
                url = _base_url(self._settings)
                options: dict[str, Any] = {"encoding_format": "base64"}
                fallbacks: dict[str, Any] = {"encoding_format": "float"}
                known = _MODELS.get(self._model)
                if known is None or known.supports_dimensions:
                    options |= {"dimensions": self.dimension}
                    fallbacks |= {} if self._model.startswith("text-embedding-3") else {"dimensions": None}
                key = _key(self._settings, url)
                self._api = OpenAIApi(url, key, self._model, self.dimension, options, fallbacks)
            return self._api

    def _describe_refusal(self, call: "_Call") -> str:
        at, why = next(iter(call.refused.items()))
        start = call.texts[at].partition("\n")[0][:120]
        more = f", and {len(call.refused) - 1} more" if len(call.refused) > 1 else ""
        return (
            f"{self._connect().name} rejected the text that starts with {start!r}{more}: {why}. "
            "Exclude its file with source.exclude, or change it"
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """The texts of a call as sent, the vectors received, and which texts were truncated or rejected (and why)."""

    texts: list[str]
    vectors: Vectors
    cut: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


def _batches(tokens: Sequence[int], size: int, budget: int) -> Iterator[list[int]]:
    """Yield the positions of the texts of each request, within `size` texts and `budget` tokens.

    A text over the budget gets its own request.
    """
    batch: list[int] = []
    total = 0
    for at, count in enumerate(tokens):
        if batch and (len(batch) >= size or total + count > budget):
            yield batch
            batch, total = [], 0
        batch.append(at)
        total += count
    if batch:
        yield batch


def _prefix(text: str, count: int, most: int) -> tuple[str, int]:
    """Return the start of a text with at most `most` tokens, and its token count."""
    while count > most:
        text = text[: min(len(text) - 1, int(len(text) * most / count))]
        (count,) = count_tokens([text])
    return text, count


def _dimension(model: str, requested: int | None) -> int:
    known = _MODELS.get(model)
    if not model.isprintable():
        raise EmbeddingError("invalid embedding.model: it contains unprintable characters")
    if known is None:
        if requested is None:
            raise EmbeddingError(f"the dimension of {model} is unknown: set embedding.dimensions")
        return requested
    if requested is not None and (
        requested > known.dimension or (requested != known.dimension and not known.supports_dimensions)
    ):
        least = "2 to " if known.supports_dimensions else ""
        raise EmbeddingError(f"embedding.dimensions of {model} must be {least}{known.dimension}, not {requested}")
    return requested or known.dimension


def _base_url(settings: EmbeddingSettings) -> str:
    return settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI


def _endpoint(url: str) -> str:
    """Return a URL without user name, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def _is_openai(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and f".{parts.hostname}".endswith(".openai.com")


def _key(settings: EmbeddingSettings, url: str) -> str | None:
    """Return the key for an endpoint. `OPENAI_API_KEY` is never sent to an endpoint named in the settings file.

    Raises:
        EmbeddingError: the key is required but missing, or invalid.
    """
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    if not key and (_is_openai(url) or settings.base_url is None):
        key = os.environ.get("OPENAI_API_KEY", "")
    key = key.strip()
    if not key and _is_openai(url):
        raise EmbeddingError("OpenAI needs a key: set DOCINDEX_EMBEDDING__API_KEY or OPENAI_API_KEY in the environment")
    if not (key.isascii() and key.isprintable()):
        raise EmbeddingError("invalid key for the embedding API: it contains non-ASCII or unprintable characters")
    return key or None
