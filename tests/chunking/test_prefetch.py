"""What is cut before a run asks for it is what the run would have cut, or is dropped."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from docindex_dagster.chunking import pool, prefetch
from docindex_dagster.chunking.prefetch import Order
from docindex_dagster.core.errors import WorkerError
from tests.chunking.test_pool import CODE, OPTIONS, job

_TIMEOUT_S = 60.0


@pytest.fixture
def order(tmp_path) -> Iterator[Order]:
    yield Order((job(tmp_path, "a.py"), job(tmp_path, "b.py")), OPTIONS, 1, _TIMEOUT_S)
    prefetch.drop("x")


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, ...]]:
    """What workers were asked to cut, each time."""
    asked: list[tuple[str, ...]] = []
    cut = pool.chunk_in_workers

    def noted(jobs, options, **how):
        asked.append(tuple(each.path for each in jobs))
        return cut(jobs, options, **how)

    monkeypatch.setattr(prefetch, "chunk_in_workers", noted)
    return asked


def cut(order: Order) -> dict[str, str]:
    rows = [row for _, result in prefetch.batches("x", order) for row in result.rows.to_pylist()]
    texts: dict[str, str] = {}
    for row in rows:
        texts[row["path"]] = texts.get(row["path"], "") + row["text"]
    return texts


def test_what_was_begun_is_cut_once(order, asked):
    prefetch.begin("x", order)

    assert cut(order) == {"a.py": CODE, "b.py": CODE}
    assert asked == [("a.py", "b.py")]


def test_without_a_beginning_files_are_cut_when_they_are_asked_for(order, asked):
    assert cut(order) == {"a.py": CODE, "b.py": CODE}
    assert len(asked) == 1


def test_of_another_order_nothing_is_taken(order, asked):
    prefetch.begin("x", order)

    assert cut(replace(order, jobs=order.jobs[:1])) == {"a.py": CODE}
    assert asked[-1] == ("a.py",)


def test_what_was_taken_is_cut_again_the_next_time(order, asked):
    prefetch.begin("x", order)

    assert cut(order) == cut(order)
    assert len(asked) == 2


def test_an_error_reaches_whoever_asks(order, monkeypatch):
    def refuse(*_arguments, **_how):
        raise WorkerError("no worker can be started")

    monkeypatch.setattr(prefetch, "chunk_in_workers", refuse)
    prefetch.begin("x", order)

    with pytest.raises(WorkerError, match="no worker can be started"):
        cut(order)


@pytest.mark.parametrize("is_taken", [True, False])
def test_what_is_dropped_is_not_cut_to_its_end(tmp_path, monkeypatch, is_taken):
    cut_up, goes_on, is_closed = pool.chunk_in_workers, Event(), Event()
    given: list[int] = []

    def noted(*arguments, **how):
        try:
            for batch in cut_up(*arguments, **how):
                given.append(batch[0])
                yield batch
                goes_on.wait(_TIMEOUT_S)
        finally:
            is_closed.set()

    monkeypatch.setattr(prefetch, "chunk_in_workers", noted)
    begun = Order(tuple(_large(tmp_path, number) for number in range(20)), OPTIONS, 1, _TIMEOUT_S)  # a batch each
    prefetch.begin("x", begun)
    if is_taken:
        for _ in prefetch.batches("x", begun):
            break
    else:
        prefetch.drop("x")
    goes_on.set()

    assert is_closed.wait(_TIMEOUT_S)
    assert len(given) < 3


def _large(folder: Path, number: int):
    made = job(folder, f"{number}.py")
    (folder / made.path).write_text(CODE * 4000)
    return replace(made, size=(folder / made.path).stat().st_size)
