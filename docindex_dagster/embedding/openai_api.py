"""Asking an API that speaks OpenAI's `/embeddings`, again and again while it is worth it.

The official client makes the requests. Whether and when one is made again is decided here: a limit that one thread
meets holds all of them back, an answer that cannot be used counts as a failure, and a run that ends waits no more.
"""

import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.retry import Retry
from docindex_dagster.embedding import openai_answers
from docindex_dagster.embedding.concurrency import Rate, pause
from docindex_dagster.embedding.openai_answers import AgainError, Answer, RefusedError

if TYPE_CHECKING:
    from openai import OpenAI

_MOST_BYTES_A_VALUE = 64  # of an answer: a number in decimal, and what stands around it
_LEAST_BYTES = 1 << 20
_LATE = "did not answer in time: see embedding.timeout_s"
_MOST_GARBLED = 2  # answers that cannot be used are paid for, too


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
    _client: "OpenAI | None" = field(default=None, init=False, repr=False)
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
            except AgainError as error:
                garbled += error.is_garbled
                is_limit = error.is_limit
                raise

        def is_passing(error: BaseException) -> bool:
            return isinstance(error, AgainError) and garbled <= _MOST_GARBLED

        def sleep(seconds: float) -> None:
            (rate.hold if is_limit else pause)(seconds)  # a limit is one for all threads

        try:
            return patience.retry.call(attempt, is_passing, _asked_s, sleep)
        except EmbeddingError as error:
            raise EmbeddingError(f"{self.name} {error}") from None
        except AgainError as error:
            asked = f"; it asks to wait for {error.asked_s:,.0f} s" if error.asked_s else ""
            times = f" ({tries} tries)" if tries > 1 else ""
            raise EmbeddingError(f"{self.name} {error}{asked}{times}") from None

    def _ask(self, texts: Sequence[str], timeout_s: float) -> Answer:
        options = self.options
        try:
            return openai_answers.read(self._post(texts, options, timeout_s), len(texts), self.dimension)
        except RefusedError as error:
            instead = {name: value for name, value in self.instead.items() if error.is_about(name)}
            others = {name: value for name, value in (options | instead).items() if value is not None}
            if others == options:
                raise
            self.options = others
            return self._ask(texts, timeout_s)

    def _post(self, texts: Sequence[str], options: dict[str, Any], timeout_s: float) -> bytes:
        import openai

        deadline = time.monotonic() + timeout_s
        client = self._connected()
        try:
            with client.embeddings.with_streaming_response.create(
                model=self.model, input=list(texts), timeout=timeout_s, **options
            ) as response:
                return self._received(response, len(texts), deadline)
        except openai.APIStatusError as error:
            raise openai_answers.explained(error, self.key) from None
        except openai.APITimeoutError:
            raise AgainError(f"did not answer within {timeout_s:g} s: see embedding.timeout_s") from None
        except openai.APIConnectionError:
            raise AgainError("cannot be reached: see embedding.base_url and the network") from None

    def _connected(self) -> "OpenAI":
        with self._lock:
            self.requests += 1
            if self._client is None:
                import openai

                # A redirect would carry the texts and the key to another place.
                http = openai.DefaultHttpxClient(follow_redirects=False)
                weakref.finalize(self, http.close)
                self._client = openai.OpenAI(
                    api_key=self.key or "none", base_url=self.base_url, max_retries=0, http_client=http
                )
            return self._client

    def _received(self, response: Any, texts: int, deadline: float) -> bytes:
        """An answer up to a size and within its time: a server may send for ever."""
        most = _LEAST_BYTES + texts * self.dimension * _MOST_BYTES_A_VALUE
        body = bytearray()
        for block in _blocks(response, deadline):
            body += block
            if len(body) > most:
                raise AgainError(f"answered more than {most:,} bytes", is_garbled=True)
            if time.monotonic() > deadline:
                raise AgainError(_LATE)
        return bytes(body)


def _blocks(response: Any, deadline: float) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except Exception as error:  # noqa: BLE001 the client's HTTP library is another one in each of its versions
        is_late = time.monotonic() > deadline
        raise AgainError(_LATE if is_late else f"broke off its answer ({type(error).__name__})") from None


def _asked_s(error: BaseException) -> float | None:
    return error.asked_s if isinstance(error, AgainError) else None
