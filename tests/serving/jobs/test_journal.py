"""The events of a job: as lines that are whole or do not count, and as a position."""

import resource
import signal
from itertools import pairwise

import pytest

from docindex_dagster.core import events
from docindex_dagster.serving.jobs import progress
from docindex_dagster.serving.jobs.journal import Journal, Tail


@pytest.fixture
def path(tmp_path):
    return tmp_path / "job.events"


def test_each_event_is_read_once_in_its_order(path):
    journal, tail = Journal(path), Tail(path)
    assert list(tail.read()) == []

    journal.write("began", {"pid": 1})
    first = list(tail.read())
    journal.hear(events.Waiting("library/a", "another run"))
    journal.hear(events.Notice("library/a", "half of \ud800 a character"))

    assert [(event.number, event.name) for event in first] == [(1, "began")]
    assert [(event.number, event.name) for event in tail.read()] == [(1, "began"), (2, "waiting"), (3, "warning")]


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_a_line_counts_once_it_is_whole(path, length):
    journal, tail = Journal(path), Tail(path)
    journal.write("began", {"pid": 1})
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: min(length, len(whole) - 1)])

    assert [event.number for event in tail.read()] == [1]
    path.write_bytes(whole * 2)
    assert [event.number for event in tail.read()] == [1, 2]


def test_a_full_disk_costs_the_events_that_it_has_no_room_for_alone(path):
    journal = Journal(path)
    journal.write("began", {"pid": 1})
    limit, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limit[1]))
        for _ in range(3):
            journal.hear(events.Notice("library/a", "what does not fit"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    journal.hear(events.Notice("library/a", "what fits again"))

    assert [event.data.get("text") for event in Tail(path).read()] == [None, "what fits again"]


def test_the_percentage_never_goes_back_and_ends_below_the_whole(path):
    journal, tail = Journal(path), Tail(path)
    journal.write("began", {"pid": 1})
    percents = []
    stages = ("clone", "discovered_files", "commits", "chunks", "summaries", "embeddings", "knowledge_graph")
    for stage in (*stages, "concepts", "knowledge_graph", "of_a_package", "stores"):
        journal.hear(events.StageBegan("git/a", stage))
        for done in (0, 5, 10):
            journal.hear(events.Progress("git/a", stage, done, 10, "files"))
            percents.append(progress.of_events(tail.read()).percent)
    journal.hear(events.StageEnded("git/a", "stores", 1.0))
    position = progress.of_events(tail.read())

    assert all(before <= after for before, after in pairwise(percents))
    assert (position.phase, position.percent) == ("catalogue", 97)


def test_what_only_says_how_far_a_stage_is_comes_a_few_times_a_second(path):
    journal = Journal(path)

    for done in range(10_001):
        journal.hear(events.Progress("git/a", "chunks", done, 10_000, "files"))

    found = Tail(path).read()
    assert len(found) < 30
    assert (found[0].data["done"], found[-1].data["done"]) == (0, 10_000)
