"""The provider `openai`: OpenAI's models, and those of any endpoint that speaks its API.

Texts go in requests within the API's limits. A text that is too long is cut; a request that is refused is halved until
the text is found that is to blame, so that one text costs no other its vector.
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
_TOKENS_A_TEXT = 8192
_TOKENS_A_REQUEST = 300_000
_MARGIN = 1.25  # tokens are counted about
_SHORTEST_CUT = 64  # bytes: a text that is refused for its length and is no longer is refused for something else
_CUT = 0.75  # of a text is left each time that it is refused for its length
_PROBE = "docindex"  # a text that every model takes
# A search waits for its query, and can do without.
_QUERY = Patience(5.0, Retry(1, first_wait_s=0.2, longest_wait_s=1.0, longest_asked_s=1.0))


@dataclass(frozen=True, slots=True)
class _Known:
    dimension: int
    price: float  # of a million tokens, in dollars
    takes_dimensions: bool


_MODELS = {
    "text-embedding-3-large": _Known(3072, 0.13, takes_dimensions=True),
    "text-embedding-3-small": _Known(1536, 0.02, takes_dimensions=True),
    "text-embedding-ada-002": _Known(1536, 0.10, takes_dimensions=False),
}


class OpenAIEmbedder:
    """A model behind an API. Nothing is asked, and no key looked for, before it embeds."""

    max_tokens = _TOKENS_A_TEXT

    def __init__(self, settings: EmbeddingSettings, *, first_wait_s: float = 0.5) -> None:
        """Read the settings.

        Args:
            settings: model, dimensions, endpoint, key, limits.
            first_wait_s: before a request is asked for the second time.

        Raises:
            EmbeddingError: the settings do not say the dimension, or the model cannot have it.
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
        self._budget = min(_TOKENS_A_REQUEST, settings.tokens_per_minute or _TOKENS_A_REQUEST)
        self._lock = Lock()
        self._api: OpenAIApi | None = None
        self._tokens = self._cut = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimension) and unit length.

        Raises:
            EmbeddingError: the API refuses some of the texts, or fails; it is a `PartialEmbeddingError`, which has the
                vectors of the others.
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
            raise PartialEmbeddingError(self._blamed(call), call.vectors, go_on=True)
        return call.vectors

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (dimension,) and unit length; it is not waited for long.

        Raises:
            EmbeddingError: the API fails.
        """
        call = _Call([text], np.empty((1, self.dimension), np.float32))
        tokens = self._shorten(call)
        try:
            vector: Vectors = self._ask(call.texts, tokens[0], Rate(), self._query_patience())[0]
        except RefusedError as error:
            raise EmbeddingError(f"{self._connected().name} refuses the query: {error}") from None
        return vector

    def usage(self) -> Usage:
        """What the API was asked for so far."""
        known = _MODELS.get(self._model) if _is_openai(_base_url(self._settings)) else None
        price = self._settings.price if self._settings.price is not None or known is None else known.price
        with self._lock:
            cost = None if price is None else self._tokens * price / 1e6
            return Usage(self._api.requests if self._api else 0, self._tokens, cost, self._cut)

    def _query_patience(self) -> Patience:
        own = self._patience
        retries = min(_QUERY.retry.retries, own.retry.retries)
        return Patience(min(_QUERY.timeout_s, own.timeout_s), replace(_QUERY.retry, retries=retries))

    def _shorten(self, call: "_Call") -> list[int]:
        """Cut what is too long by our count; returns about how many tokens each text is."""
        counted = count_tokens(call.texts)
        for at, count in enumerate(counted):
            text = call.texts[at] = call.texts[at] if call.texts[at].strip() else "-"  # an empty one is refused
            if count > self.max_tokens and len(text.encode()) > self.max_tokens:  # a token has a byte at least
                call.texts[at], counted[at] = _prefix(text, count, self.max_tokens)
                call.cut.add(at)
        return [
            min(len(text.encode()), int(count * _MARGIN) + 1) for text, count in zip(call.texts, counted, strict=True)
        ]

    def _embed(self, call: "_Call", batch: list[int], tokens: list[int]) -> None:
        """Embed some texts of a call in one request; halve it where it is refused."""
        try:
            call.vectors[batch] = self._ask(
                [call.texts[at] for at in batch], sum(tokens[at] for at in batch), self._rate, self._patience
            )
        except RefusedError as error:
            if len(batch) > 1:
                self._check_that_any_is_taken(error)
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
            self._check_that_any_is_taken(error)
            call.refused[at] = str(error)

    def _check_that_any_is_taken(self, refusal: RefusedError) -> None:
        """Distinguish a text that is refused from an API that takes none, which need not be asked for each.

        Raises:
            EmbeddingError: it takes none.
        """
        if self._tokens:
            return
        try:
            self._ask([_PROBE], 1, self._rate, self._patience)
        except RefusedError:
            name = self._connected().name
            raise EmbeddingError(f"{name} answers {refusal.status} to any text: {refusal}; see [embedding]") from None

    def _ask(self, texts: list[str], tokens: int, rate: Rate, patience: Patience) -> Vectors:
        answer = self._connected().ask(texts, tokens, rate, patience)
        counted = sum(count_tokens(texts)) if answer.tokens is None else answer.tokens
        with self._lock:
            self._tokens += max(1, counted)
        return answer.vectors

    def _connected(self) -> OpenAIApi:
        with self._lock:
            if self._api is None:
                url = _base_url(self._settings)
                options: dict[str, Any] = {"encoding_format": "base64"}
                instead: dict[str, Any] = {"encoding_format": "float"}
                known = _MODELS.get(self._model)
                if known is None or known.takes_dimensions:
                    options |= {"dimensions": self.dimension}
                    instead |= {} if self._model.startswith("text-embedding-3") else {"dimensions": None}
                key = _key(self._settings, url)
                self._api = OpenAIApi(url, key, self._model, self.dimension, options, instead)
            return self._api

    def _blamed(self, call: "_Call") -> str:
        at, why = next(iter(call.refused.items()))
        begin = call.texts[at].partition("\n")[0][:120]
        more = f", and {len(call.refused) - 1} more" if len(call.refused) > 1 else ""
        return (
            f"{self._connected().name} refuses the text that begins {begin!r}{more}: {why}. "
            "Leave its file out with source.exclude, or change it"
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """The texts of a call as they are sent, what came back, which were cut, and which are refused and why."""

    texts: list[str]
    vectors: Vectors
    cut: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


def _batches(tokens: Sequence[int], size: int, budget: int) -> Iterator[list[int]]:
    """Positions of texts that go together: so many at most, and of so many tokens unless one alone has more."""
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
    """The beginning of a text that counts at most so many tokens, and how many it counts."""
    while count > most:
        text = text[: min(len(text) - 1, int(len(text) * most / count))]
        (count,) = count_tokens([text])
    return text, count


def _dimension(model: str, wanted: int | None) -> int:
    known = _MODELS.get(model)
    if not model.isprintable():
        raise EmbeddingError("embedding.model is no name of a model")
    if known is None:
        if wanted is None:
            raise EmbeddingError(f"set embedding.dimensions: how many values a vector of {model} has")
        return wanted
    if wanted is not None and (wanted > known.dimension or (wanted != known.dimension and not known.takes_dimensions)):
        least = "2 to " if known.takes_dimensions else ""
        raise EmbeddingError(f"embedding.dimensions of {model} must be {least}{known.dimension}, not {wanted}")
    return wanted or known.dimension


def _base_url(settings: EmbeddingSettings) -> str:
    return settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI


def _endpoint(url: str) -> str:
    """A URL without user name, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def _is_openai(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and f".{parts.hostname}".endswith(".openai.com")


def _key(settings: EmbeddingSettings, url: str) -> str | None:
    """The key for an endpoint. `OPENAI_API_KEY` is OpenAI's: a place that a file of settings names does not get it.

    Raises:
        EmbeddingError: it is needed and not there, or is none.
    """
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    if not key and (_is_openai(url) or settings.base_url is None):
        key = os.environ.get("OPENAI_API_KEY", "")
    key = key.strip()
    if not key and _is_openai(url):
        raise EmbeddingError("OpenAI needs a key: set DOCINDEX_EMBEDDING__API_KEY or OPENAI_API_KEY in the environment")
    if not (key.isascii() and key.isprintable()):
        raise EmbeddingError("the key of the embedding API has characters that no key has")
    return key or None
