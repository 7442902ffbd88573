"""A reranking API in Cohere's format, which Jina, vLLM, TEI's proxies and others speak, too.

A search waits for it. So it is asked once, within a time limit, and the search goes on without it if it fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, FiniteFloat, NonNegativeInt, SecretStr

from docindex_dagster.core.background import within
from docindex_dagster.core.errors import RerankError
from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking.protocol import Passage, blend

if TYPE_CHECKING:
    import requests

_MOST_BYTES = 8 << 20  # of an answer
_BLOCK = 1 << 16
_OK = 200
_WHY = {
    401: "it does not accept the key in DOCINDEX_RERANK__API_KEY",
    403: "it does not accept the key in DOCINDEX_RERANK__API_KEY",
    404: "there is no such path; see rerank.url",
    429: "it is asked too often",
}


class _Scored(BaseModel):
    index: NonNegativeInt
    relevance_score: FiniteFloat


class _Answer(BaseModel):
    results: list[_Scored] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class RemoteReranker:
    """Asks an API how relevant each passage is."""

    url: str
    model: str | None
    api_key: SecretStr | None = None
    candidates: int = 50
    weight: float = 0.5
    timeout_s: float = 5.0

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        """All of the passages, by the blend of their scores and the API's.

        Raises:
            RerankError: it cannot be reached in time, refuses, or answers what cannot be used.
        """
        texts = [passage.text for passage in passages]
        asked: dict[str, Any] = {"query": query, "documents": texts, "top_n": len(texts)}
        answer = self._post(asked | ({"model": self.model} if self.model else {}))
        opinions = {item.index: item.relevance_score for item in answer.results}
        if max(opinions) >= len(texts):
            raise RerankError(f"{self._host} scored what it was not asked about")
        lowest = min(opinions.values())  # for those that the answer leaves out
        return blend("rerank", passages, [opinions.get(at, lowest) for at in range(len(texts))], self.weight)

    def _post(self, payload: dict[str, Any]) -> _Answer:
        try:
            return within(self.timeout_s, lambda: self._ask(payload))
        except Exception as error:
            raise self._explained(error) from error

    def _ask(self, payload: dict[str, Any]) -> _Answer:
        import requests

        headers = {"Authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}
        with requests.post(
            self.url, json=payload, headers=headers, timeout=self.timeout_s, stream=True, allow_redirects=False
        ) as response:
            if response.status_code != _OK:
                why = _WHY.get(response.status_code, "it failed")
                raise RerankError(f"{self._host} answered {response.status_code}: {why}")
            return _Answer.model_validate_json(_body(response))

    def _explained(self, error: Exception) -> RerankError:
        """Why there is no answer, in words that hold nothing of the URL but its host."""
        from requests import ConnectionError as NotReachedError
        from requests import Timeout

        if isinstance(error, RerankError):
            return error
        if isinstance(error, TimeoutError | Timeout):
            return RerankError(f"{self._host} did not answer within {self.timeout_s:g} s")
        if isinstance(error, NotReachedError):
            return RerankError(f"{self._host} cannot be reached")
        if isinstance(error, ValueError):
            return RerankError(f"{self._host} answered what is not {{results: [{{index, relevance_score}}]}}")
        return RerankError(f"the answer of {self._host} broke off ({type(error).__name__})")

    @property
    def _host(self) -> str:
        """The host alone: a path or query may hold a secret."""
        from urllib.parse import urlsplit

        return urlsplit(self.url).hostname or "the reranker"


def _body(response: "requests.Response") -> bytes:
    """An answer, up to a size: a server may send for ever."""
    body = b""
    for block in response.iter_content(_BLOCK):
        body += block
        if len(body) > _MOST_BYTES:
            raise ValueError("too long")
    return body
