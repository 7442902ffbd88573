"""Folding by a server, where no daemon of Dagster does it: a look every few seconds, and a process for each fold.

The process has a low priority and an interpreter of its own, so that no answer waits for it, and it is killed when the
server ends: a fold may be killed anywhere. While nothing is said, a look compares names and sizes of files.

The process, `python -m docindex_dagster.serving.fold_scheduler ROOT DOMAIN`, prints in JSON what it took. The last line
that it prints of an error may be recorded.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Self

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import holder
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.core.traces import Attribute, recording
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import fold, reason, state_of, why_due
from docindex_dagster.serving.jobs.job_process import environment
from docindex_dagster.serving.telemetry.tracing import of_environment

_PAUSE_S = 5.0
_UNCHANGED_FOR_S = 60.0  # what did not change is looked at again: it may wait for long by then
_BETWEEN_FOLDS_S = 60.0  # of one domain, and after a first failure; doubled after each further one
_LONGEST_DELAY_S = 3600.0
# A daemon of Dagster folds at the numbers of the settings, so the server leaves it time to.
_MESSAGES_FACTOR = 10
_GRACE_MINUTES = 2

_NICENESS = 10

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Done:
    """What a fold took.

    Attributes:
        warnings: how many there were.
        timings: the steps and the seconds that each took, the fold itself last.
    """

    warnings: int
    timings: tuple[tuple[str, float], ...]

    def to_json(self) -> str:
        """As a line."""
        return json.dumps([self.warnings, self.timings])

    @classmethod
    def of_json(cls, text: str) -> Self | None:
        """From that line; None of another one, as a library may print."""
        try:
            warnings, timings = json.loads(text)
            return cls(int(warnings), tuple((str(name), float(seconds)) for name, seconds in timings))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """A recorder that times steps. `ended` is called with the name of each, what was noted, seconds, and its error."""

    ended: Callable[[str, Mapping[str, Attribute], float, str | None], None]

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "_Timed":
        """Time a step."""
        return _Timed(self.ended, name, dict(attributes))


@dataclass(slots=True)
class _Timed:
    """A step that is being timed."""

    ended: Callable[[str, Mapping[str, Attribute], float, str | None], None]
    name: str
    attributes: dict[str, Attribute]
    begun: float = 0.0

    def __enter__(self) -> Self:
        self.begun = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.ended(self.name, self.attributes, time.perf_counter() - self.begun, kind.__name__ if kind else None)

    def note(self, **attributes: Attribute) -> None:
        """Labels are known from the beginning, but for what is counted at the end."""
        self.attributes |= attributes

    def quote(self, **texts: str) -> None:
        """No label is what users or indexed files wrote."""


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # standard output may be an agent's


@contextmanager
def folding(
    settings: Settings,
    keys: Sequence[str],
    *,
    report: Report = _print,
    on_folded: Callable[[Done], None] = lambda _: None,
    pause_s: float = _PAUSE_S,
) -> Iterator[None]:
    """Fold domains in the block when they are due and nobody else folds them, one at a time.

    Args:
        settings: of the project.
        keys: of the domains.
        report: called with what the user should know, without a word of a message.
        on_folded: called after each fold with what it took.
        pause_s: between two looks.
    """
    folder = _Folder(settings, keys, report, on_folded, pause_s)
    thread = Thread(target=folder.run, name="folding", daemon=True)
    thread.start()
    try:
        yield
    finally:
        folder.stop()
        thread.join()


@dataclass(slots=True)
class _Watched:
    """What is known of a domain."""

    state: str = ""
    looked_at: float = 0.0
    not_before: float = 0.0
    failures: int = 0  # in a row


@dataclass(slots=True)
class _Folder:
    """Looks at the domains of a server, and folds them."""

    settings: Settings
    keys: Sequence[str]
    report: Report
    on_folded: Callable[[Done], None]
    pause_s: float
    _is_over: Event = field(default_factory=Event)
    _starting: Lock = field(default_factory=Lock)
    _process: "subprocess.Popen[str] | None" = None
    _watched: dict[str, _Watched] = field(default_factory=dict)

    def run(self) -> None:
        """Look until it is stopped."""
        while not self._is_over.wait(self.pause_s):
            for key in self.keys:
                if not self._is_over.is_set():
                    self._look(key, self._watched.setdefault(key, _Watched()))

    def stop(self) -> None:
        """End at once; a fold that is under way is killed."""
        with self._starting:
            self._is_over.set()
            if self._process is not None:
                self._process.kill()

    def _look(self, key: str, watched: _Watched) -> None:
        """Fold a domain if it is due."""
        now = time.monotonic()
        if now < watched.not_before:
            return
        try:
            if not self._is_due(key, watched, now):
                return
            failure = self._fold(key)
        except OSError as error:
            failure = str(error)
        except Exception as error:  # noqa: BLE001 it is reported, and the thread has other domains to look at
            failure = reason(error, key)
        if self._is_over.is_set():
            return
        watched.failures = watched.failures + 1 if failure else 0
        delay_s = min(_BETWEEN_FOLDS_S * 2 ** max(watched.failures - 1, 0), _LONGEST_DELAY_S)
        watched.not_before = time.monotonic() + delay_s
        if failure:
            watched.state = ""  # it is looked at again, though nothing changes
            self.report(f"{key} is not folded, and is tried again in {delay_s / 60:.0f} min: {failure}")

    def _is_due(self, key: str, watched: _Watched, now: float) -> bool:
        home = domains.home(Layout(self.settings.home), key)
        state = state_of(home)
        if state == watched.state and now < watched.looked_at + _UNCHANGED_FOR_S:
            return False
        watched.state, watched.looked_at = state, now
        return why_due(_patient(self.settings), key) is not None and holder(home.source_lock(key)) is None

    def _fold(self, key: str) -> str:
        """Fold a domain in a process; why it failed, or nothing."""
        with self._starting:
            if self._is_over.is_set():
                return ""
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "docindex_dagster.serving.fold_scheduler", str(self.settings.root), key],
                cwd=self.settings.root,
                env=environment(self.settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is the server's
            )
        output, errors = self._process.communicate()
        with self._starting:
            ended, self._process = self._process.returncode, None
        if ended:
            words = errors.strip().splitlines()
            return words[-1] if words and ended > 0 else f"its process ended by signal {-ended}"
        found = [done for line in output.splitlines() if (done := Done.of_json(line)) is not None]
        if not found:
            return "its process did not say what it did"
        self._take(key, found[-1])
        return ""

    def _take(self, key: str, done: Done) -> None:
        self.on_folded(done)
        if done.warnings:
            again = command("docindex", "memory", "fold", "--domain", key)
            self.report(f"{key} is folded with {done.warnings} warnings: {again} shows them")


def _patient(settings: Settings) -> Settings:
    """Settings by which a domain is due that a daemon would have folded by now."""
    memory = settings.memory
    later = {
        "fold_messages": memory.fold_messages * _MESSAGES_FACTOR,
        "fold_minutes": memory.fold_minutes + _GRACE_MINUTES,
    }
    return settings.model_copy(update={"memory": memory.model_copy(update=later)})


def main(root: str, key: str) -> int:
    """Fold one domain, with a low priority."""
    os.nice(_NICENESS)
    timings: list[tuple[str, float]] = []
    stopwatch = Stopwatch(lambda name, _, seconds, __: timings.append((name, seconds)))
    try:
        settings = load_settings(Path(root))
        traces = of_environment(lambda _: None, has_texts=settings.serve.trace_texts)
        with closing(traces) if traces else nullcontext(), recording(stopwatch, *((traces,) if traces else ())):
            done = fold(settings, key)
    except Exception as error:  # noqa: BLE001 it may be of another package
        sys.stderr.write(f"{reason(error, key)}\n")
        return 1
    sys.stdout.write(f"{Done(len(done.warnings), tuple(timings)).to_json()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
