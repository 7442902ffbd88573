"""Reranker for an API in Cohere's format, which Jina, vLLM, TEI's proxies and others also support.

A search waits for the response. So the API gets one request with a time limit, and the search continues without it if
it fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, FiniteFloat, NonNegativeInt, SecretStr

from docindex_dagster.core.background import call_with_deadline
from docindex_dagster.core.errors import RerankError
from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking.protocol import Passage, blend

if TYPE_CHECKING:
    import requests

_MAX_BYTES = 8 << 20  # of a response
_BLOCK = 1 << 16
_OK = 200
_WHY = {
    401: "it rejects the key in DOCINDEX_RERANK__API_KEY",
    403: "it rejects the key in DOCINDEX_RERANK__API_KEY",
    404: "path not found: check rerank.url",
    429: "too many requests",
}


class _Scored(BaseModel):
    index: NonNegativeInt
    relevance_score: FiniteFloat


class _Response(BaseModel):
    results: list[_Scored] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class RemoteReranker:
    """Reranker that requests the relevance of each passage from an API."""

    url: str
    model: str | None
    api_key: SecretStr | None = None
    candidates: int = 50
    weight: float = 0.5
    timeout_s: float = 5.0

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """Return all passages, ordered by the blend of their scores and the API's.

        Raises:
            RerankError: the API does not answer in time, refuses the request, or sends an invalid response.
        """
        texts = [passage.text for passage in passages]
        payload: dict[str, Any] = {"query": query, "documents": texts, "top_n": len(texts)}
        answer = self._post(payload | ({"model": self.model} if self.model else {}))
        opinions = {item.index: item.relevance_score for item in answer.results}
        if max(opinions) >= len(texts):
            raise RerankError(f"{self._host} scored passages that were not sent")
        lowest = min(opinions.values())  # for passages missing from the response
        return blend("rerank", passages, [opinions.get(at, lowest) for at in range(len(texts))], self.weight)

    def _post(self, payload: dict[str, Any]) -> _Response:
        try:
            return call_with_deadline(self.timeout_s, lambda: self._request(payload))
        except Exception as error:
            raise self._error_for(error) from error

    def _request(self, payload: dict[str, Any]) -> _Response:
        import requests

        headers = {"Authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}
        with requests.post(
            self.url, json=payload, headers=headers, timeout=self.timeout_s, stream=True, allow_redirects=False
        ) as response:
            if response.status_code != _OK:
                why = _WHY.get(response.status_code, "it failed")
                raise RerankError(f"{self._host} answered {response.status_code}: {why}")
            return _Response.model_validate_json(_read_body(response))

    def _error_for(self, error: Exception) -> RerankError:
        """Return the error for a failed request; its message reveals only the host of the URL."""
        from requests import ConnectionError as RequestsConnectionError
        from requests import Timeout

        if isinstance(error, RerankError):
            return error
        if isinstance(error, TimeoutError | Timeout):
            return RerankError(f"{self._host} did not answer within {self.timeout_s:g} s")
        if isinstance(error, RequestsConnectionError):
            return RerankError(f"{self._host} cannot be reached")
        if isinstance(error, ValueError):
            return RerankError(f"{self._host} answered with JSON other than {{results: [{{index, relevance_score}}]}}")
        return RerankError(f"{self._host} closed the connection during its response ({type(error).__name__})")

    @property
    def _host(self) -> str:
        """The host only: a path or query may contain a secret."""
        from urllib.parse import urlsplit

        return urlsplit(self.url).hostname or "the reranker"


def _read_body(response: "requests.Response") -> bytes:
    """Read a response with a size limit: a server may send data forever."""
    body = b""
    for block in response.iter_content(_BLOCK):
        body += block
        if len(body) > _MAX_BYTES:
            raise ValueError("too long")
    return body
