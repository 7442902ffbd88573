"""Tests that a server folds its domains in real processes and blocks nobody."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive, holder
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from docindex_dagster.serving import fold_scheduler as folding_module
from docindex_dagster.serving.fold_scheduler import FoldResult, fold_in_background

DOMAIN, OTHER = "memory/main", "project/acme"
CONFIG = "[memory]\nfold_messages = 1\nper_second = 1000\n"  # a server folds at ten times this number
LONGEST_S = 60.0
WORD = "quixotically"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch) -> Settings:
    monkeypatch.delenv("DOCINDEX_HOME", raising=False)
    (tmp_path / "docindex.toml").write_text(CONFIG)
    return load_settings(tmp_path)


def write(settings: Settings, count: int, domain: str = DOMAIN) -> Memory:
    memory = Memory(settings, domain)
    there = memory.status()[0].messages
    for number in range(there, there + count):
        memory.ingest(f"Message {number} says {WORD} that The Scheduler uses the Queue", session="s")
    return memory


def tail(memory: Memory) -> int:
    return memory.status()[0].tail


def home_of(settings: Settings) -> Layout:
    return domains.home(Layout(settings.home), DOMAIN)


def wait_until(is_so: Callable[[], object]) -> None:
    until = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


@contextmanager
def folds(settings: Settings, *keys: str) -> Iterator[tuple[list[str], list[FoldResult]]]:
    """Fold in the background with a short pause; yield the reports and the results."""
    reports: list[str] = []
    done: list[FoldResult] = []
    with fold_in_background(settings, keys or (DOMAIN,), report=reports.append, on_folded=done.append, pause_s=0.05):
        yield reports, done


def test_many_messages_are_folded_and_what_it_took_is_noted(settings):
    memory = write(settings, 10)

    with folds(settings) as (reports, done):
        wait_until(lambda: done)

    assert tail(memory) == 0
    assert reports == []
    assert [done[0].timings[-1][0], done[0].warnings] == ["memory.fold", 0]
    steps = {f"memory.{name}" for name in ("read", "chunk", "embed", "graph", "publish")}
    assert steps < dict(done[0].timings).keys()


def test_few_messages_are_left_to_a_daemon_of_dagster(settings):
    memory = write(settings, 9)

    with folds(settings) as (_, done):
        time.sleep(1)

    assert (tail(memory), done) == (9, [])


def test_what_is_forgotten_is_erased_without_a_daemon(settings):
    memory = write(settings, 1)
    memory.forget(everything=True)

    with folds(settings) as (_, done):
        wait_until(lambda: done)

    assert "memory.erase" in dict(done[0].timings)
    home = home_of(settings).home
    assert not any(WORD.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_one_domain_after_the_other(settings):
    memories = [write(settings, 10), write(settings, 10, OTHER)]

    with folds(settings, DOMAIN, OTHER) as (_, done):
        wait_until(lambda: len(done) == 2)

    assert [tail(memory) for memory in memories] == [0, 0]


def test_a_domain_that_another_process_folds_is_left_to_it(settings):
    memory = write(settings, 10)
    lock = home_of(settings).source_lock(DOMAIN)

    with exclusive(lock, "another fold", on_wait=lambda _: None), folds(settings) as (_, done):
        time.sleep(1)

    assert (tail(memory), done) == (10, [])


def test_it_ends_at_once_though_a_fold_is_under_way_and_loses_nothing(settings):
    memory = write(settings, 10)
    lock = home_of(settings).publication_lock
    with exclusive(lock, "something slow", on_wait=lambda _: None):  # blocks the fold
        with folds(settings):
            wait_until(lambda: holder(home_of(settings).source_lock(DOMAIN)))
            began = time.monotonic()
        took = time.monotonic() - began

    assert took < 2
    assert (fold(settings, DOMAIN).added, tail(memory)) == (10, 0)


def test_an_error_is_reported_once_and_it_is_tried_again_later(settings, monkeypatch):
    write(settings, 10)
    file = settings.root / "docindex.toml"
    file.write_text(CONFIG + 'chunker = "none of them"\n')
    monkeypatch.setattr("docindex_dagster.serving.fold_scheduler._BETWEEN_FOLDS_S", 2.0)

    with folds(settings) as (reports, done):
        wait_until(lambda: reports)
        file.write_text(CONFIG)
        wait_until(lambda: done)

    assert len(reports) == 1
    assert reports[0].startswith(f"cannot fold {DOMAIN}: ")
    assert reports[0].endswith("; next attempt in 0 min")


def test_what_fails_and_quotes_a_message_is_not_reported(settings, monkeypatch, capsys):
    def quote(*_: object) -> None:
        raise ValueError(WORD)

    monkeypatch.setattr(folding_module, "fold", quote)
    monkeypatch.setattr("os.nice", lambda _: 0)

    assert folding_module.main(str(settings.root), DOMAIN) == 1
    assert capsys.readouterr().err.startswith("ValueError: details may quote messages")


def test_tools_answer_while_it_folds(settings):
    memory = write(settings, 10)
    lock = home_of(settings).publication_lock

    with exclusive(lock, "something slow", on_wait=lambda _: None), folds(settings):
        time.sleep(0.5)
        answer = Thread(target=memory.ingest, args=("One more that The Scheduler uses",), kwargs={"session": "s"})
        answer.start()
        answer.join(10)
        assert not answer.is_alive()
        assert memory.recall("scheduler").messages


def test_idle_it_costs_next_to_nothing(settings):
    write(settings, 9)
    with fold_in_background(settings, [DOMAIN], pause_s=0.05):
        time.sleep(0.5)
        before = time.process_time()
        time.sleep(3)
        took = time.process_time() - before

    looks_a_minute = 12
    assert took / (3 / 0.05) * looks_a_minute < 0.1


@pytest.mark.parametrize(
    ("line", "done"),
    [
        ('[2, [["memory.fold", 0.5]]]', FoldResult(2, (("memory.fold", 0.5),))),
        ("a library says goodbye", None),
        ("{}", None),
        ("[1]", None),
        ("3", None),
    ],
)
def test_of_what_the_process_prints_its_own_line_counts(line, done):
    assert FoldResult.of_json(line) == done
