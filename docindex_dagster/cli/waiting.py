"""`docindex index --wait search`: a process in the background goes on once all sources are searchable."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from enum import StrEnum

import typer

from docindex_dagster.cli import INTERRUPTED, READY
from docindex_dagster.core import events


class Wait(StrEnum):
    """What `docindex index` waits for."""

    GRAPH = "graph"
    SEARCH = "search"


def hand_over(wait: Wait, *, json: bool) -> None:
    """With `--wait search`, run this command in another process, and end this one when that leaves the terminal.

    Raises:
        BadParameter: JSON is wanted, which says how runs end.
        Exit: the other process left the terminal, or ended.
    """
    if wait is Wait.SEARCH and json:
        raise typer.BadParameter("--json says how runs end, so it cannot be given with --wait search")
    if wait is Wait.SEARCH and READY not in os.environ:
        raise typer.Exit(_exit_code())


def _exit_code() -> int:
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "docindex_dagster.cli", *sys.argv[1:]],
        # The descriptor by which it says that all is searchable.
        env={**os.environ, READY: str(theirs), "TTY_COMPATIBLE": "0"},  # a live line would be left half drawn
        pass_fds=[theirs],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as ready:  # noqa: PTH123 it is a descriptor
        try:
            return 0 if ready.read(1) else process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            return INTERRUPTED


def leaving(last: str) -> Callable[[events.Event], None]:
    """Return a listener for the other process, which leaves the terminal once the last source is searchable."""
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
