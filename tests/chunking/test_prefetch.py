"""What is cut before a run asks for it is what the run would have cut, or is dropped."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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


def test_what_is_dropped_is_not_cut_to_its_end(tmp_path, asked):
    prefetch.drop("x")
    files = tuple(_large(tmp_path, number) for number in range(20))  # a batch each
    taken: list[int] = []

    begun = Order(files, OPTIONS, 1, _TIMEOUT_S)
    prefetch.begin("x", begun)
    for count, _ in prefetch.batches("x", begun):
        taken.append(count)
        break

    assert taken == [1]
    assert len(asked) == 1


def _large(folder: Path, number: int):
    made = job(folder, f"{number}.py")
    (folder / made.path).write_text(CODE * 4000)
    return replace(made, size=(folder / made.path).stat().st_size)
