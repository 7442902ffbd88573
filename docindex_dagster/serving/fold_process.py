"""The process in which a server folds a domain: python -m docindex_dagster.serving.fold_process ROOT DOMAIN.

It prints in JSON what it took. Of an error, the last line that it prints is what may be recorded.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from docindex_dagster.core.settings import load_settings
from docindex_dagster.core.traces import Attribute, recording
from docindex_dagster.memory.discretion import reason
from docindex_dagster.memory.fold import fold
from docindex_dagster.serving.telemetry.tracing import of_environment

_NICENESS = 10


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
class _Stopwatch:
    """A recorder that notes how long each step took."""

    timings: list[tuple[str, float]] = field(default_factory=list)

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> "_Timed":  # noqa: ARG002 of the protocol
        """Time a step."""
        return _Timed(name, self.timings)


@dataclass(slots=True)
class _Timed:
    name: str
    timings: list[tuple[str, float]]
    begun: float = 0.0

    def __enter__(self) -> Self:
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.timings.append((self.name, time.perf_counter() - self.begun))

    def note(self, **attributes: Attribute) -> None:
        """Times alone are noted."""

    def quote(self, **texts: str) -> None:
        """No text is noted."""


def main(root: str, key: str) -> int:
    """Fold one domain, with a low priority."""
    os.nice(_NICENESS)
    stopwatch = _Stopwatch()
    try:
        settings = load_settings(Path(root))
        traces = of_environment(lambda _: None, has_texts=settings.serve.trace_texts)
        with closing(traces) if traces else nullcontext(), recording(stopwatch, *((traces,) if traces else ())):
            done = fold(settings, key)
    except Exception as error:  # noqa: BLE001 it may be of another package
        sys.stderr.write(f"{reason(error, key)}\n")
        return 1
    sys.stdout.write(f"{Done(len(done.warnings), tuple(stopwatch.timings)).to_json()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
