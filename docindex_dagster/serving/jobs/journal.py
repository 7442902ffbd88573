"""The events of a job as lines of JSON, which its process writes and the server reads: the number of a line is its id.

A line counts once it is whole, so that one which a kill cut off is none.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from docindex_dagster.core import events
from docindex_dagster.serving.jobs.model import JobEvent

BEGAN, PROGRESS, WAITING, WARNING = "began", "progress", "waiting", "warning"
# The last line of a job's process, which says how it ended. To others the server says it, by the event `ended`.
FINISHED = "finished"
ENDED = "ended"
_PAUSE_S = 0.25  # between two lines that only say how far a stage is


class Journal:
    """Writes the events of one job; threads share it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock = Lock()
        self._is_torn = False
        self._stage = ""
        self._due = 0.0

    def write(self, name: str, data: Mapping[str, Any], *, synced: bool = False) -> None:
        """Append an event; with `synced`, a power cut does not lose it.

        Raises:
            OSError: it cannot be written, as on a full disk.
        """
        text = json.dumps({"name": name, "data": data}, ensure_ascii=False, default=str)
        line = text.encode("utf-8", "replace") + b"\n"
        with self._lock:
            before, self._is_torn = b"\n" * self._is_torn, True
            self._is_torn = os.write(self._descriptor, before + line) < len(before + line)
            if synced:
                os.fsync(self._descriptor)

    def hear(self, event: events.Event) -> None:
        """Append what happens in a run: its stages, how far they are, what it waits for and what should be known.

        What cannot be written is left out: a run does not fail by that.
        """
        with suppress(OSError):
            self._append(event)

    def _append(self, event: events.Event) -> None:
        match event:
            case events.StageBegan(stage=stage):
                self._progress(stage, None, None, "")
            case events.Progress(stage=stage, done=done, total=total, unit=unit):
                self._progress(stage, done, total, unit)
            case events.Waiting(reason=reason):
                self.write(WAITING, {"reason": reason})
            case events.Notice(text=text):
                self.write(WARNING, {"text": text})
            case events.StageEnded(stage="stores"):  # the catalogue, which is what is left, is no stage of ours
                self._progress("index_catalog", None, None, "")
            case events.StageEnded():
                pass

    def _progress(self, stage: str, done: int | None, total: int | None, unit: str) -> None:
        is_news = stage != self._stage or done == total
        if is_news or time.monotonic() >= self._due:
            self._stage, self._due = stage, time.monotonic() + _PAUSE_S
            self.write(PROGRESS, {"stage": stage, "done": done, "total": total, "unit": unit})


class Tail:
    """Reads the events of one job as they come; each line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._events: list[JobEvent] = []

    def read(self) -> Sequence[JobEvent]:
        """All events so far."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return self._events
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.split(b"\n"):
            with suppress(ValueError):  # what a full disk cut off
                event = json.loads(line)
                self._events.append(JobEvent(len(self._events) + 1, event["name"], event["data"]))
        return self._events
