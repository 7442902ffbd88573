"""User feedback on answers, stored in a file of the home with one JSON line per verdict.

docindex never reads it. Its size is bounded: a full file becomes the older of two files and replaces the previous one.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from docindex_dagster.answering.citations import State
from docindex_dagster.core.files import append, reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive

MOST_BYTES = 8 << 20  # per file
Verdict: TypeAlias = Literal["good", "bad"]


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation of the answer, with the state from its check."""

    number: int
    state: State
    source: str | None
    path: str | None
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """A verdict on an answer.

    Attributes:
        verdict: whether the answer was useful.
        question: the question.
        answer: the answer as the model wrote it.
        citations: the citations of the answer.
        comment: a comment in the user's own words.
        model: the model that wrote the answer; None if it consisted of the passages themselves.
        generation: the generation of the index that it was based on.
    """

    verdict: Verdict
    question: str
    answer: str
    citations: Sequence[Cited] = ()
    comment: str = ""
    model: str | None = None
    generation: int | None = None


def note(layout: Layout, feedback: Feedback) -> None:
    """Append a verdict to the file, with the time. Concurrent calls are safe: each verdict stays in one piece.

    Args:
        layout: the layout of the home.
        feedback: the verdict.

    Raises:
        FullDiskError: no space left on the disk.
    """
    record = {"time": datetime.now(UTC).isoformat(timespec="seconds"), **asdict(feedback)}
    line = json.dumps(record).encode() + b"\n"
    layout.prepare()
    with (
        reporting_full_disk(layout.home),
        exclusive(layout.feedback_lock, f"feedback of process {os.getpid()}", lambda _: None),
    ):
        _make_room(layout, len(line))
        append(layout.feedback, line, 0o600)


def _make_room(layout: Layout, size: int) -> None:
    try:
        is_full = layout.feedback.stat().st_size + size > MOST_BYTES
    except FileNotFoundError:
        return
    if is_full:
        layout.feedback.replace(layout.older_feedback)
