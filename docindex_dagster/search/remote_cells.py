"""The cells of an index on other machines, each behind its own `docindex serve`.

A question goes with the number of the generation that it is asked of. A cell that has published another one since says
so, and the whole search is made again: all of an answer is of one generation of each cell.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from docindex_dagster.core.errors import CellError, DamagedStoreError, QueryError, StoreError, first_line
from docindex_dagster.search import wire
from docindex_dagster.search.cells import Cells, Question
from docindex_dagster.stores.generation import Generation, parsed
from docindex_dagster.stores.together import generation_of

if TYPE_CHECKING:
    from httpx2 import Client, Response

PATH = "/api/v1/cell"
NUMBER = "X-Docindex-Generation"
OK, OUTDATED, REFUSED = 200, 409, 422
_CONNECT_S, _LONGEST_S = 1.0, 40.0  # a search that reads every text may take 30 seconds
_ASKED_AGAIN_S = 5.0  # after which a cell that did not answer is asked again
_SHOWN = 5  # sources

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class RemoteCell:
    """A generation that another server has published."""

    url: str
    client: "Client" = field(repr=False)
    generation: Generation

    def ask(self, question: Question[_Answer]) -> _Answer:
        """Its answer.

        Raises:
            DamagedStoreError: it has published another generation meanwhile.
            CellError: it does not answer.
            QueryError: it cannot answer the question.
        """
        headers = {NUMBER: str(self.generation.number)}
        url = f"{self.url}{PATH}/{type(question).__name__}"
        response = _sent(self.client, "POST", url, content=wire.written(question), headers=headers)
        if response.status_code == OUTDATED:
            raise DamagedStoreError(f"the cell at {self.url} has published another generation meanwhile")
        if response.status_code == REFUSED:
            raise QueryError(response.json()["detail"])
        try:
            found: _Answer = wire.answer(question, _accepted(self.url, response).content)
        except ValueError as error:
            raise CellError(f"the cell at {self.url} answers what is no answer: is it of another version?") from error
        return found


class LatestCells:
    """Gives the cells with what each has published last; for servers that answer many searches."""

    def __init__(self, urls: Sequence[str], token: str | None, sources: Mapping[str, frozenset[str]]) -> None:
        """Cells at some addresses, of which each is thought to hold some sources until it says so."""
        self._urls = [url.rstrip("/") for url in urls]
        self._token = token
        self._sources = sources
        self._known: dict[str, Generation] = {}
        self._cells: Cells | None = None
        self._asked_at = 0.0
        self._lock = Lock()
        self._client: Client | None = None

    def cells(self, *, anew: bool = False) -> Cells:
        """The cells that answer; `anew` where one of those that were given did not.

        Raises:
            StoreError: none answers, or they cannot be searched together.
        """
        with self._lock:
            is_due = (
                self._cells is not None and self._cells.missing and time.monotonic() > self._asked_at + _ASKED_AGAIN_S
            )
            if self._cells is None or anew or is_due:
                self._cells = self._opened()
                self._asked_at = time.monotonic()
            return self._cells

    def _opened(self) -> Cells:
        cells: list[RemoteCell] = []
        missing: list[str] = []
        lost: set[str] = set()
        for url in self._urls:
            try:
                self._known[url] = self._generation(url)
                cells.append(RemoteCell(url, self._connections(), self._known[url]))
            except CellError as error:
                held = self._known[url].sources if url in self._known else self._sources.get(url, ())
                lost |= {*held}
                missing.append(f"{error}; nothing is found of {_named(sorted(held))}")
        if not cells:
            raise StoreError(f"no cell answers: {'; '.join(missing)}")
        generation = generation_of([*self._known.values()])
        return Cells(tuple(cells), generation, "; ".join(missing), frozenset(lost))

    def _generation(self, url: str) -> Generation:
        response = _accepted(url, _sent(self._connections(), "GET", f"{url}{PATH}"))
        try:
            return parsed(response.content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CellError(f"what answers at {url} is no cell: is it of another version?") from error

    def _connections(self) -> "Client":
        if self._client is None:
            import httpx2

            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            timeout = httpx2.Timeout(_LONGEST_S, connect=_CONNECT_S)
            self._client = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)
        return self._client


def _named(sources: Sequence[str]) -> str:
    if not sources:
        return "what it holds"
    more = len(sources) - _SHOWN
    return ", ".join(sources[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _sent(client: "Client", method: str, url: str, **given: Any) -> "Response":
    import httpx2

    try:
        return client.request(method, url, **given)
    except httpx2.HTTPError as error:
        raise CellError(f"the cell at {url.removesuffix(PATH)} does not answer ({first_line(error)})") from error


def _accepted(url: str, response: "Response") -> "Response":
    if response.status_code != OK:
        raise CellError(f"the cell at {url} does not answer: status {response.status_code}")
    return response
