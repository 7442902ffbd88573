"""The cells of an index on other machines, each behind its own `docindex serve`.

A question goes with the number of the generation that it is asked of. A cell that has published another one since says
so, and the whole search is made again: all of an answer is of one generation of each cell. A cell that does not answer
in time is left out for some seconds, so that it costs one search its time and not each.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from docindex_dagster.core.errors import CellError, DamagedStoreError, NoCellError, QueryError, StoreError, first_line
from docindex_dagster.search import wire
from docindex_dagster.search.cells import Cells, Question
from docindex_dagster.stores.generation import Generation, PublishedSource, parsed
from docindex_dagster.stores.together import generation_of

if TYPE_CHECKING:
    from httpx2 import Client, Response

PATH = "/api/v1/cell"
NUMBER = "X-Docindex-Generation"
OK, OUTDATED, REFUSED = 200, 409, 422
_CONNECT_S = 1.0
_GENERATION_S = 3.0  # to say what is published
_ANSWER_S = 10.0  # to answer a question; one that reads every text says how much longer it may take
_LEFT_OUT_S = 5.0  # for which a cell that did not answer is not asked again
_IDLE_S = 2.0  # after which a connection is not used again: a server closes it after five seconds
_CONNECTIONS = 256  # that are held open
_SHOWN = 5  # sources
_UNKNOWN = PublishedSource("", None, None, 0, 0, 0, 0, 0, {}, "")  # of a cell that never said what it has
_VERSION = "is it of another version?"

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
        longest_s = _ANSWER_S + getattr(question, "longest_s", 0.0)
        path = f"{PATH}/{type(question).__name__}"
        given = {"content": wire.written(question), "headers": {NUMBER: str(self.generation.number)}}
        response = _sent(self.client, "POST", self.url, path, longest_s, **given)
        if response.status_code == OUTDATED:
            raise DamagedStoreError(f"the cell at {self.url} has published another generation meanwhile")
        try:
            if response.status_code == REFUSED:
                raise QueryError(response.json()["detail"])
            found: _Answer = wire.answer(question, _accepted(self.url, response).content)
        except (ValueError, TypeError, KeyError) as error:
            raise CellError(self.url, f"answers what is no answer: {_VERSION}") from error
        return found


class LatestCells:
    """Gives the cells with what each has published last; for servers that answer many searches."""

    def __init__(self, urls: Sequence[str], token: str | None, sources: Mapping[str, frozenset[str]]) -> None:
        """Cells at some addresses, of which each is thought to hold some sources until it says so."""
        self._urls = urls
        self._token = token
        self._sources = sources
        self._known: dict[str, Generation] = {}
        self._failed: dict[str, tuple[float, CellError]] = {}
        self._cells: Cells | None = None
        self._lock = Lock()
        self._client: Client | None = None

    def cells(self) -> Cells:
        """The cells that answer.

        Raises:
            NoCellError: none answers.
            StoreError: they cannot be searched together.
        """
        found = self._cells
        is_due = found is None or (bool(found.missing) and not all(map(self._is_left_out, list(self._failed))))
        if found is not None and not (is_due and self._lock.acquire(blocking=False)):
            return found  # or another search looks whether more of them answer
        if found is None:
            self._lock.acquire()
        try:
            return self._opened_after(found)
        finally:
            self._lock.release()

    def after(self, cells: Cells, failure: CellError | None = None) -> Cells:
        """The cells anew, since one of those that were given has published another generation, or did not answer.

        Raises:
            StoreError: as `cells`, also if none answers.
        """
        with self._lock:
            if failure is not None:
                self._failed[failure.url] = time.monotonic(), failure
            return self._opened_after(cells)

    def _opened_after(self, before: Cells | None) -> Cells:
        """The cells that came after some, which another thread may have opened. The caller holds the lock."""
        if self._cells is None or self._cells is before:
            try:
                self._cells = self._opened()
            except StoreError:
                self._cells = None  # the next search asks again
                raise
        return self._cells

    def _opened(self) -> Cells:
        client = self._connections()
        with ThreadPoolExecutor(len(self._urls)) as threads:
            found = dict(zip(self._urls, threads.map(self._published, self._urls), strict=True))
        there = {url: one for url, one in found.items() if isinstance(one, Generation)}
        self._known |= there
        held = {url: self._held(url) for url in found.keys() - there.keys()}
        missing = "; ".join(f"{found[url]}; nothing is found of {_named(sorted(held[url]))}" for url in sorted(held))
        if not there:
            raise NoCellError(f"no cell answers: {missing}")
        generation = generation_of([*there.values()])
        lost = {key: source for sources in held.values() for key, source in sources.items()}
        number = sum(one.number for one in self._known.values())
        sources = dict(sorted({**lost, **generation.sources}.items()))
        cells = tuple(RemoteCell(url, client, one) for url, one in there.items())
        return Cells(cells, replace(generation, number=number, sources=sources), missing, frozenset(lost))

    def _published(self, url: str) -> Generation | CellError:
        """What a cell has published, or why that is not known."""
        if self._is_left_out(url):
            return self._failed[url][1]
        try:
            response = _accepted(url, _sent(self._connections(), "GET", url, PATH, _GENERATION_S))
            found = parsed(response.content)
        except (ValueError, TypeError, KeyError, AttributeError):
            failure = CellError(url, f"does not say what it has: {_VERSION}")
        except CellError as error:
            failure = error
        else:
            self._failed.pop(url, None)
            return found
        self._failed[url] = time.monotonic(), failure
        return failure

    def _is_left_out(self, url: str) -> bool:
        failed = self._failed.get(url)
        return failed is not None and time.monotonic() < failed[0] + _LEFT_OUT_S

    def _held(self, url: str) -> dict[str, PublishedSource]:
        """What a cell that does not answer is thought to hold."""
        return self._known[url].sources if url in self._known else dict.fromkeys(self._sources.get(url, ()), _UNKNOWN)

    def _connections(self) -> "Client":
        if self._client is None:
            import httpx2

            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            limits = httpx2.Limits(max_keepalive_connections=_CONNECTIONS, keepalive_expiry=_IDLE_S)
            self._client = httpx2.Client(headers=headers, limits=limits, follow_redirects=False)
            finalize(self, self._client.close)
        return self._client


def _named(sources: Sequence[str]) -> str:
    if not sources:
        return "what it holds"
    more = len(sources) - _SHOWN
    return ", ".join(sources[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _sent(client: "Client", method: str, url: str, path: str, longest_s: float, **given: Any) -> "Response":
    import httpx2

    try:
        timeout = httpx2.Timeout(longest_s, connect=_CONNECT_S)
        return client.request(method, url.rstrip("/") + path, timeout=timeout, **given)
    except httpx2.HTTPError as error:
        raise CellError(url, f"does not answer ({first_line(error)})") from error


def _accepted(url: str, response: "Response") -> "Response":
    if response.status_code != OK:
        raise CellError(url, f"does not answer: status {response.status_code}")
    return response
