"""Tests of job events: partial lines are ignored, and clients resume from a position."""

import resource
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from docindex_dagster.core import events
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run, StageEntry, State
from docindex_dagster.runner.journal import Writer
from docindex_dagster.serving.jobs.model import Listener, Tail


@pytest.fixture
def layout(tmp_path) -> Layout:
    layout = Layout(tmp_path / "home")
    layout.prepare()
    return layout


@pytest.fixture
def writer(layout) -> Iterator[Writer]:
    """Yield the event writer of a job that has started."""
    with journal.writing(layout, Run("job", "git/a", "serve", 1.0)) as writer:
        yield writer


@pytest.fixture
def path(layout, writer) -> Path:
    (path,) = journal.files(layout)
    return path


def test_each_event_is_read_once_in_its_order(writer, path):
    listener, tail = Listener(writer), Tail()

    first = list(tail.read(path).events)
    listener(events.Waiting("library/a", "another run"))
    listener(events.Notice("library/a", "half of \ud800 a character"))

    assert [(event.number, event.name) for event in first] == [(1, "began")]
    assert [(event.number, event.name) for event in tail.read(path).events] == [
        (1, "began"),
        (2, "waiting"),
        (3, "warning"),
    ]


def test_events_have_the_same_numbers_in_a_file_that_was_settled(layout, writer, path):
    tail = Tail()
    Listener(writer)(events.Waiting("library/a", "another run"))
    writer.stage(StageEntry("chunks"))
    before = list(tail.read(path).events)

    writer.end(State.SUCCEEDED)
    journal.forget(layout, "git/a")

    (settled,) = journal.files(layout)
    assert settled != path
    assert tail.read(settled).events == before == Tail().read(settled).events


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_a_line_counts_once_it_is_whole(path, length):
    tail = Tail()
    line = b'{"name": "waiting", "data": {"reason": "a run of another process"}}\n'
    assert len(tail.read(path).events) == 1
    with path.open("ab", buffering=0) as file:
        file.write(line[:length])
        assert len(tail.read(path).events) == 1
        file.write(line[length:])
        assert len(tail.read(path).events) == 2


def test_a_full_disk_costs_the_events_that_it_has_no_room_for_alone(writer, path):
    listener = Listener(writer)
    limit, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limit[1]))
        for _ in range(3):
            listener(events.Notice("library/a", "what does not fit"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    listener(events.Notice("library/a", "what fits again"))

    assert [event.data.get("text") for event in Tail().read(path).events] == [None, "what fits again"]


def test_the_percentage_never_goes_back_and_ends_below_the_whole(writer, path):
    listener, tail = Listener(writer), Tail()
    percents = []
    stages = ("clone", "discovered_files", "commits", "chunks", "summaries", "embeddings", "knowledge_graph")
    for stage in (*stages, "concepts", "knowledge_graph", "of_a_package", "stores"):
        listener(events.StageBegan("git/a", stage))
        for done in (0, 5, 10):
            listener(events.Progress("git/a", stage, done, 10, "files"))
            percents.append(tail.read(path).position.percent)
    listener(events.StageEnded("git/a", "stores", 1.0))
    position = tail.read(path).position

    assert all(before <= after for before, after in pairwise(percents))
    assert (position.phase, position.percent) == ("catalogue", 97)


def test_what_only_says_how_far_a_stage_is_comes_a_few_times_a_second(writer, path):
    listener = Listener(writer)

    for done in range(10_001):
        listener(events.Progress("git/a", "chunks", done, 10_000, "files"))

    found = [event for event in Tail().read(path).events if event.name == "progress"]
    assert len(found) < 30
    assert (found[0].data["done"], found[-1].data["done"]) == (0, 10_000)
