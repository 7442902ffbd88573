"""Feedback on answers: one complete line per verdict, in a file of bounded size that only its owner can read."""

import json
import multiprocessing
import resource
import signal
import stat
from pathlib import Path

import pytest

from docindex_dagster.answering import feedback
from docindex_dagster.answering.citations import State
from docindex_dagster.answering.feedback import Cited, Feedback, note
from docindex_dagster.core.layout import Layout

HALF_OF_A_CHARACTER = "\ud800"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "home")


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_verdict_is_one_line_with_all_that_was_judged(layout):
    cited = Cited(3, State.DOUBTFUL, "git/shop", "tank.py", 16, 18)
    note(layout, Feedback("bad", "what\npumps?", f"`pump` [3]\n{HALF_OF_A_CHARACTER}", (cited,), "no: “check”", "m", 7))

    (record,) = records(layout.feedback)
    assert str(record.pop("time")).endswith("+00:00")
    assert record == {
        "verdict": "bad",
        "question": "what\npumps?",
        "answer": f"`pump` [3]\n{HALF_OF_A_CHARACTER}",
        "citations": [
            {
                "number": 3,
                "state": "doubtful",
                "source": "git/shop",
                "path": "tank.py",
                "start_line": 16,
                "end_line": 18,
            }
        ],
        "comment": "no: “check”",
        "model": "m",
        "generation": 7,
    }


def test_its_owner_alone_reads_it(layout):
    note(layout, Feedback("good", "?", "!"))
    assert stat.S_IMODE(layout.feedback.stat().st_mode) == 0o600


def test_those_of_many_processes_are_all_there_and_whole(layout):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_notes, [(layout, writer) for writer in range(4)])
    found = records(layout.feedback)
    assert len({record["question"] for record in found}) == len(found) == 100


def test_many_processes_find_it_full_one_after_the_other(layout):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_notes, [(layout, writer, 200, 1) for writer in range(4)])
    assert [len(records(path)) for path in (layout.feedback, layout.older_feedback)] == [1, 1]


def _notes(layout: Layout, writer: int, count: int = 25, most: int = feedback.MOST_BYTES) -> None:
    feedback.MOST_BYTES = most
    for number in range(count):
        note(layout, Feedback("good", f"{writer}.{number}", "x" * 20_000))


def test_a_full_file_becomes_the_older_one_so_that_two_are_the_most(layout, monkeypatch):
    monkeypatch.setattr(feedback, "MOST_BYTES", 1000)
    for number in range(30):
        note(layout, Feedback("good", str(number), "x" * 100))
    newer, older = records(layout.feedback), records(layout.older_feedback)
    assert max(layout.feedback.stat().st_size, layout.older_feedback.stat().st_size) <= 1000
    assert [record["question"] for record in (*older, *newer)][-1] == "29"
    assert [int(str(record["question"])) for record in (*older, *newer)] == list(
        range(30 - len(older) - len(newer), 30)
    )
    assert sorted(path.name for path in layout.home.glob("*.jsonl")) == ["feedback.jsonl", "feedback.older.jsonl"]


def test_a_line_that_cannot_be_written_leaves_nothing_of_itself(layout):
    note(layout, Feedback("good", "first", "!"))
    before = layout.feedback.read_bytes()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_note_in_little_space, (layout, len(before) + 500)) == "File too large"
    assert layout.feedback.read_bytes() == before


def _note_in_little_space(layout: Layout, size: int) -> str:
    """Return the error for a write that exceeds the file size limit. The system writes as much as fits."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        note(layout, Feedback("good", "second", "x" * 2000))
    except OSError as error:
        return str(error.strerror)
    return ""
