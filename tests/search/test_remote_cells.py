"""Cells on other machines: what a search does while one of them is slow, down, or of another version."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SourceError, StoreError
from docindex_dagster.core.settings import Settings, check_settings
from docindex_dagster.objects.cells import cell_of
from docindex_dagster.search import remote_cells
from docindex_dagster.search.ask import Request, hits_of
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.cells import Index
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.live import Live
from docindex_dagster.search.matches import find_matches
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.scan import Pattern
from docindex_dagster.search.scope import Narrowing, filters_of
from docindex_dagster.stores.reader import Reader
from tests.search.cell_server import KEYS, LONGEST_S, CellServer, indexed, serving


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> list[Reader]:
    return indexed(tmp_path_factory.mktemp("cells"))


@pytest.fixture
def cells(readers: list[Reader]) -> Iterator[list[CellServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(reader)) for reader in readers]


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_cells, "_GENERATION_S", 1.0)
    monkeypatch.setattr(remote_cells, "_ANSWER_S", 1.0)


def settings_of(root: Path, *urls: str) -> Settings:
    return check_settings(root, {"serve": {"cells": urls}, "search": {"look_s": 0}})


def live_of(root: Path, cells: list[CellServer]) -> Live:
    return Live(settings_of(root, *(cell.url for cell in cells)))


def search(live: Live, *sources: str) -> tuple[list[str], list[str]]:
    """The sources in which something is found, and the warnings."""
    warnings: list[str] = []

    def ask(index: Index) -> list[Hit]:
        warnings.clear()
        filters = filters_of(live.settings, index.generation, Narrowing(sources))
        return hits_of(live.settings, index, Request("wheat", Mode.BM25, filters=filters), warnings.append)

    return sorted(hit.source for hit in live.asking(ask)), warnings


def test_all_cells_are_searched(tmp_path: Path, cells: list[CellServer]) -> None:
    assert search(live_of(tmp_path, cells)) == ([*KEYS], [])


@pytest.mark.parametrize("name", ["AskWords", ""])
@pytest.mark.parametrize("state", ["slow", "broken"])
def test_a_cell_that_does_not_answer_costs_one_search_its_time(
    tmp_path: Path, cells: list[CellServer], state: str, name: str
) -> None:
    live = live_of(tmp_path, cells)
    if name:
        search(live)
    setattr(cells[1], state, frozenset({name}))

    found, warnings = search(live)
    asked = len(cells[1].asked)

    assert found == [KEYS[0]]
    assert cells[1].url in warnings[0]
    assert search(live) == (found, warnings)
    assert len(cells[1].asked) == asked


def test_a_cell_that_answers_again_is_searched_again(
    tmp_path: Path, cells: list[CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    live = live_of(tmp_path, cells)
    cells[1].broken = frozenset({""})
    assert search(live)[0] == [KEYS[0]]
    cells[1].broken = frozenset()
    monkeypatch.setattr(remote_cells, "_LEFT_OUT_S", 0.0)

    assert search(live) == ([*KEYS], [])


def test_no_search_waits_while_another_one_asks_whether_a_cell_answers_again(
    tmp_path: Path, cells: list[CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_cells, "_GENERATION_S", LONGEST_S)
    live = live_of(tmp_path, cells)
    cells[1].broken = frozenset({""})
    search(live)
    cells[1].slow = frozenset({""})
    monkeypatch.setattr(remote_cells, "_LEFT_OUT_S", 0.0)

    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(search, live)
        wait_until(lambda: cells[1].asked.count("") > 1)
        assert search(live)[0] == [KEYS[0]]
        assert not waiting.done()
        cells[1].goes_on.set()
        waiting.result()


def test_a_slow_question_keeps_no_other_one_waiting(tmp_path: Path, cells: list[CellServer], monkeypatch) -> None:
    monkeypatch.setattr(remote_cells, "_ANSWER_S", LONGEST_S)
    live = live_of(tmp_path, cells)
    search(live)
    for cell in cells:
        cell.slow = frozenset({"AskMatches"})

    with ThreadPoolExecutor(4) as others:
        waiting = [others.submit(live.asking, matches) for _ in range(4)]
        wait_until(lambda: all(cell.asked.count("AskMatches") == 4 for cell in cells))
        assert search(live) == ([*KEYS], [])
        assert not any(one.done() for one in waiting)
        for cell in cells:
            cell.goes_on.set()
        assert [one.result() for one in waiting] == [2] * 4


def matches(index: Index) -> int:
    return find_matches(Pool(index, Filters(), 10), Pattern("wheat", is_regex=False)).total


def wait_until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_where_no_cell_answers_an_error_names_each(tmp_path: Path, cells: list[CellServer]) -> None:
    live = live_of(tmp_path, cells)
    for cell in cells:
        cell.broken = frozenset({""})

    with pytest.raises(StoreError, match="no cell answers") as raised:
        search(live)

    assert all(cell.url in str(raised.value) for cell in cells)


def test_a_source_of_a_cell_that_never_answered_is_not_taken_for_one_that_is_not_indexed(
    tmp_path: Path, cells: list[CellServer]
) -> None:
    """The address ends as people write it."""
    names = ["c", "d", "e", "f", "g"]
    lost = next(f"library/{name}" for name in names if cell_of(f"library/{name}", 2) == 1)
    sources = [{"kind": "library", "path": str(tmp_path), "name": name} for name in names]
    values = {"serve": {"cells": [f"{cell.url}/" for cell in cells]}, "search": {"look_s": 0}, "source": sources}
    cells[1].broken = frozenset({""})

    found, warnings = search(Live(check_settings(tmp_path, values)), lost)

    assert found == []
    assert cells[1].url in warnings[0]
    assert lost in warnings[0]


def test_an_error_over_what_may_be_in_a_cell_that_does_not_answer_names_it(
    tmp_path: Path, cells: list[CellServer]
) -> None:
    """A server that declares no sources cannot know."""
    cells[1].broken = frozenset({""})

    with pytest.raises(SourceError, match="does not answer") as raised:
        search(live_of(tmp_path, cells), KEYS[1])

    assert cells[1].url in str(raised.value)
