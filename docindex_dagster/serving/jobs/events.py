"""The events of a job, which its process writes into the journal and the server reads as they come."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from docindex_dagster.core import events
from docindex_dagster.runner.journal import BEGIN, PROGRESS, WAITING, WARNING, Writer, lines, opened
from docindex_dagster.serving.jobs.model import BEGAN, NOT_BEGUN, JobEvent, position_after

_PAUSE_S = 0.25  # between two lines that only say how far a stage is


class Listener:
    """Writes what happens in a run: its stages, how far they are, what it waits for and what should be known."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._stage = ""
        self._due = 0.0

    def __call__(self, event: events.Event) -> None:
        """Append an event to the journal."""
        match event:
            case events.StageBegan(stage=stage):
                self._progress(stage, None, None, "")
            case events.Progress(stage=stage, done=done, total=total, unit=unit):
                self._progress(stage, done, total, unit)
            case events.Waiting(reason=reason):
                self._writer.add(WAITING, {"reason": reason})
            case events.Notice(text=text):
                self._writer.add(WARNING, {"text": text})
            case events.StageEnded(stage="stores"):  # the catalogue, which is what is left, is no stage of ours
                self._progress("index_catalog", None, None, "")

    def _progress(self, stage: str, done: int | None, total: int | None, unit: str) -> None:
        is_news = stage != self._stage or done == total
        if is_news or time.monotonic() >= self._due:
            self._stage, self._due = stage, time.monotonic() + _PAUSE_S
            self._writer.add(PROGRESS, {"stage": stage, "done": done, "total": total, "unit": unit})


class Tail:
    """Reads the events of one job as they come: the number of an event is its place among them."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.position = NOT_BEGUN
        self._inode = 0
        self._offset = 0

    def read(self, path: Path) -> Self:
        """Read the events that are new in the file of the job, which is another file once it is settled."""
        with suppress(FileNotFoundError), opened(path) as file:
            if (inode := os.fstat(file.fileno()).st_ino) != self._inode:
                self.events, self.position, self._inode, self._offset = [], NOT_BEGUN, inode, 0
            file.seek(self._offset)
            new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._offset += len(whole)
            for name, data in lines(whole, skipped=("stage",)):
                if name == BEGIN:
                    self._add(BEGAN, {"run_id": data["run_id"], "pid": data["pid"]})
                elif name in {PROGRESS, WAITING, WARNING}:
                    self._add(name, data)
        return self

    def _add(self, name: str, data: Mapping[str, Any]) -> None:
        event = JobEvent(len(self.events) + 1, name, data)
        self.events.append(event)
        self.position = position_after(self.position, event)
