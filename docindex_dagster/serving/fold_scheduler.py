"""Memory folds started by a server if no Dagster daemon runs them: a check every few seconds, one process per fold.

The process has a low priority and its own interpreter, so no request waits for it. It is killed when the server exits,
which is safe at any point of a fold. While no messages arrive, a check only compares file names and sizes.

The process, `python -m docindex_dagster.serving.fold_scheduler ROOT DOMAIN`, prints a JSON line with warnings and
timings. The last line of an error that it prints may be recorded.
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
from docindex_dagster.serving.telemetry.tracing import tracing_from_environment

_PAUSE_S = 5.0
_RECHECK_S = 60.0  # check unchanged domains again after this time, since old messages may have become due
_BETWEEN_FOLDS_S = 60.0  # between folds of one domain; doubled after each failure but the first
_MAX_DELAY_S = 3600.0
# A Dagster daemon folds at the thresholds in the settings. The server waits longer, to give the daemon time.
_MESSAGES_FACTOR = 10
_GRACE_MINUTES = 2

_NICENESS = 10

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FoldResult:
    """Result of a fold.

    Attributes:
        warnings: the number of warnings.
        timings: the name and seconds of each step, with the fold itself last.
    """

    warnings: int
    timings: tuple[tuple[str, float], ...]

    def to_json(self) -> str:
        """Return the result as a line of JSON."""
        return json.dumps([self.warnings, self.timings])

    @classmethod
    def of_json(cls, text: str) -> Self | None:
        """Parse such a line. Return None for any other line, such as one printed by a library."""
        try:
            warnings, timings = json.loads(text)
            return cls(int(warnings), tuple((str(name), float(seconds)) for name, seconds in timings))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Recorder that times steps. It calls `ended` with each step's name, attributes, seconds and error type."""

    ended: Callable[[str, Mapping[str, Attribute], float, str | None], None]

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "_TimedStep":
        """Time a step."""
        return _TimedStep(self.ended, name, dict(attributes))


@dataclass(slots=True)
class _TimedStep:
    """A step being timed."""

    ended: Callable[[str, Mapping[str, Attribute], float, str | None], None]
    name: str
    attributes: dict[str, Attribute]
    started_at: float = 0.0

    def __enter__(self) -> Self:
        self.started_at = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.ended(self.name, self.attributes, time.perf_counter() - self.started_at, kind.__name__ if kind else None)

    def note(self, **attributes: Attribute) -> None:
        """Add attributes, such as counts known only at the end of the step."""
        self.attributes |= attributes

    def quote(self, **texts: str) -> None:
        """Do nothing: text written by users or found in files must not become a metric label."""


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # standard output may belong to the MCP client


@contextmanager
def fold_in_background(
    settings: Settings,
    keys: Sequence[str],
    *,
    report: Report = _print,
    on_folded: Callable[[FoldResult], None] = lambda _: None,
    pause_s: float = _PAUSE_S,
) -> Iterator[None]:
    """Fold domains within the block, one at a time, when they are due and no other process folds them.

    Args:
        settings: the project's settings.
        keys: the keys of the domains.
        report: called with messages for the user, which contain no text from memory.
        on_folded: called after each fold with its result.
        pause_s: seconds between two checks.
    """
    folder = _FoldLoop(settings, keys, report, on_folded, pause_s)
    thread = Thread(target=folder.run, name="folding", daemon=True)
    thread.start()
    try:
        yield
    finally:
        folder.stop()
        thread.join()


@dataclass(slots=True)
class _DomainState:
    """State of a domain."""

    state: str = ""
    checked_at: float = 0.0
    not_before: float = 0.0
    failures: int = 0  # consecutive


@dataclass(slots=True)
class _FoldLoop:
    """Loop that checks the domains of a server and folds them."""

    settings: Settings
    keys: Sequence[str]
    report: Report
    on_folded: Callable[[FoldResult], None]
    pause_s: float
    _is_stopped: Event = field(default_factory=Event)
    _starting: Lock = field(default_factory=Lock)
    _process: "subprocess.Popen[str] | None" = None
    _domains: dict[str, _DomainState] = field(default_factory=dict)

    def run(self) -> None:
        """Check the domains until stopped."""
        while not self._is_stopped.wait(self.pause_s):
            for key in self.keys:
                if not self._is_stopped.is_set():
                    self._check(key, self._domains.setdefault(key, _DomainState()))

    def stop(self) -> None:
        """Stop immediately and kill a running fold."""
        with self._starting:
            self._is_stopped.set()
            if self._process is not None:
                self._process.kill()

    def _check(self, key: str, domain: _DomainState) -> None:
        """Fold a domain if it is due."""
        now = time.monotonic()
        if now < domain.not_before:
            return
        try:
            if not self._is_due(key, domain, now):
                return
            failure = self._fold(key)
        except OSError as error:
            failure = str(error)
        except Exception as error:  # noqa: BLE001 it is reported, and the thread must go on with other domains
            failure = reason(error, key)
        if self._is_stopped.is_set():
            return
        domain.failures = domain.failures + 1 if failure else 0
        delay_s = min(_BETWEEN_FOLDS_S * 2 ** max(domain.failures - 1, 0), _MAX_DELAY_S)
        domain.not_before = time.monotonic() + delay_s
        if failure:
            domain.state = ""  # check it again even if nothing changes
            self.report(f"cannot fold {key}: {failure}; next attempt in {delay_s / 60:.0f} min")

    def _is_due(self, key: str, domain: _DomainState, now: float) -> bool:
        home = domains.home(Layout(self.settings.home), key)
        state = state_of(home)
        if state == domain.state and now < domain.checked_at + _RECHECK_S:
            return False
        domain.state, domain.checked_at = state, now
        return why_due(_with_grace(self.settings), key) is not None and holder(home.source_lock(key)) is None

    def _fold(self, key: str) -> str:
        """Fold a domain in a process. Return the reason if it failed, else an empty string."""
        with self._starting:
            if self._is_stopped.is_set():
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
                start_new_session=True,  # so that Ctrl-C reaches only the server
            )
        output, errors = self._process.communicate()
        with self._starting:
            exit_code, self._process = self._process.returncode, None
        if exit_code:
            lines = errors.strip().splitlines()
            return lines[-1] if lines and exit_code > 0 else f"the fold process was killed by signal {-exit_code}"
        found = [done for line in output.splitlines() if (done := FoldResult.of_json(line)) is not None]
        if not found:
            return "the fold process reported no result"
        self._report_result(key, found[-1])
        return ""

    def _report_result(self, key: str, done: FoldResult) -> None:
        self.on_folded(done)
        if done.warnings:
            fold_again = command("docindex", "memory", "fold", "--domain", key)
            self.report(f"folded {key} with {done.warnings} warnings: run {fold_again} to see them")


def _with_grace(settings: Settings) -> Settings:
    """Return settings with raised thresholds, so that a domain is due only if no daemon has folded it."""
    memory = settings.memory
    later = {
        "fold_messages": memory.fold_messages * _MESSAGES_FACTOR,
        "fold_minutes": memory.fold_minutes + _GRACE_MINUTES,
    }
    return settings.model_copy(update={"memory": memory.model_copy(update=later)})


def main(root: str, key: str) -> int:
    """Fold one domain with a low priority."""
    os.nice(_NICENESS)
    timings: list[tuple[str, float]] = []
    stopwatch = Stopwatch(lambda name, _, seconds, __: timings.append((name, seconds)))
    try:
        settings = load_settings(Path(root))
        traces = tracing_from_environment(lambda _: None, has_texts=settings.serve.trace_texts)
        with closing(traces) if traces else nullcontext(), recording(stopwatch, *((traces,) if traces else ())):
            done = fold(settings, key)
    except Exception as error:  # noqa: BLE001 raised by any package
        sys.stderr.write(f"{reason(error, key)}\n")
        return 1
    sys.stdout.write(f"{FoldResult(len(done.warnings), tuple(timings)).to_json()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
