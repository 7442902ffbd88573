"""What people say of answers, in a file of the home: a line of JSON for each verdict.

Nothing here reads it. It is bounded: when it is full, it becomes the older one of two files, which replaces the one
before.
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

MOST_BYTES = 8 << 20  # of each of the two files
Verdict: TypeAlias = Literal["good", "bad"]


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation of the answer, with the state that its check had."""

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
        verdict: whether it was of use.
        question: that was asked.
        answer: as the model wrote it.
        citations: of the answer.
        comment: in the user's words.
        model: that wrote the answer; None for one of passages as they are.
        generation: of the index that it was made from.
    """

    verdict: Verdict
    question: str
    answer: str
    citations: Sequence[Cited] = ()
    comment: str = ""
    model: str | None = None
    generation: int | None = None


def note(layout: Layout, feedback: Feedback) -> None:
    """Append a verdict to the file, with the time; those of others that come meanwhile stand before or after it.

    Args:
        layout: of the home.
        feedback: the verdict.

    Raises:
        FullDiskError: there is no space left.
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
