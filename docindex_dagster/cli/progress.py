"""Progress of runs: a live line on a terminal, periodic lines in a log. Also moves runs to the background."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from docindex_dagster.cli import INTERRUPTED, READY
from docindex_dagster.core import events
from docindex_dagster.core.locks import Step
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.render.console import count, err, warning

_INTERVAL_S = 5.0  # between two progress lines in a log
_BAR = 12  # character cells


@contextmanager
def report_progress(source: str, position: str = "", *, quiet: bool = False) -> Iterator[None]:
    """Show the progress of a run inside the block.

    Args:
        source: the source's key.
        position: its position among several sources, such as "2 of 3"; empty for a single source.
        quiet: show only what the run waits for, and notices.
    """
    if quiet:
        listening = events.listening(show_message)
    elif err.is_terminal:
        listening = _live(source, position)
    else:
        listening = events.listening(_Lines(position).handle)
    with listening:
        yield


def show_message(event: events.Event) -> None:
    """Print what a run waits for, and notices."""
    if isinstance(event, events.Waiting):
        err.print(f"{event.source}: waiting for {event.reason}")
    elif isinstance(event, events.Notice):
        warning(f"{event.source}: {event.text}")


def _show_searchable(event: events.Event) -> None:
    if isinstance(event, events.Searchable):
        err.print(f"{event.source}: searchable after {event.seconds:.1f} s; linking its graph")


@contextmanager
def _live(source: str, position: str) -> Iterator[None]:
    """Show a line that disappears when the block ends; messages are printed above it."""
    name = on_one_line(f"{source} ({position})" if position else source)
    what = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), BarColumn(bar_width=_BAR), TimeElapsedColumn(), what)
    with Progress(*columns, console=err, transient=True) as line:
        task = line.add_task(f"{name}: starting", total=None)

        def update(event: events.Event) -> None:
            show_message(event)
            _show_searchable(event)
            if isinstance(event, events.StageBegan):
                line.update(task, description=f"{name}: {Step(event.stage)}", completed=0, total=None)
            elif isinstance(event, events.Progress):
                step = Step(event.stage, event.done, event.total, event.unit)
                line.update(task, description=f"{name}: {step}", completed=event.done, total=event.total or None)

        with events.listening(update):
            yield


class _Lines:
    """Progress lines for a log: one when a stage ends, and one every few seconds during it."""

    def __init__(self, position: str) -> None:
        """Create the lines for a run; `position` is as for `shown`."""
        self._position = f" ({position})" if position else ""
        self._last = time.monotonic()

    def handle(self, event: events.Event) -> None:
        """Print a line if one is due."""
        show_message(event)
        _show_searchable(event)
        if not isinstance(event, events.Progress) or not event.total:
            return
        is_done = event.done == event.total
        if not is_done and time.monotonic() - self._last < _INTERVAL_S:
            return
        self._last = time.monotonic()
        step = Step(event.stage, event.done, event.total, event.unit)
        what = f"{Step(event.stage)}: {count(event.total, event.unit.removesuffix('s'))}" if is_done else str(step)
        err.print(f"{event.source}{self._position}: {what}")


class Wait(StrEnum):
    """When `docindex index` returns."""

    GRAPH = "graph"
    SEARCH = "search"


def continue_in_background(wait: Wait, *, json: bool) -> None:
    """For `--wait search`, run this command in a background process, and exit when that process detaches.

    Raises:
        BadParameter: `--json` was passed, which needs the outcomes of the runs.
        Exit: The background process detached or ended.
    """
    if wait is Wait.SEARCH and json:
        raise typer.BadParameter("--json reports how runs end, so it cannot be combined with --wait search")
    if wait is Wait.SEARCH and READY not in os.environ:
        raise typer.Exit(_exit_code())


def _exit_code() -> int:
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "docindex_dagster.cli", *sys.argv[1:]],
        # The background process writes to this descriptor once everything is searchable.
        env={**os.environ, READY: str(theirs), "TTY_COMPATIBLE": "0"},  # no live line is left half drawn
        pass_fds=[theirs],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as ready:  # noqa: PTH123 a descriptor, not a path
        try:
            return 0 if ready.read(1) else process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            return INTERRUPTED


def detach_listener(last: str) -> Callable[[events.Event], None]:
    """Return a listener for the background process that detaches it once the last source is searchable."""
    ready = os.environ.pop(READY, None)

    def listen(event: events.Event) -> None:
        if ready is not None and isinstance(event, events.Searchable) and event.source == last:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                os.dup2(nowhere, stream.fileno())
            os.write(int(ready), b"1")
            os.close(int(ready))

    return listen
