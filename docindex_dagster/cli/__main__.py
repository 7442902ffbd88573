"""The process behind `docindex` and `python -m docindex_dagster.cli`.

Its output streams accept any text. It exits as soon as its work is done, because the interpreter would otherwise free
every object first, which takes up to a second after a run.
"""

import atexit
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from docindex_dagster.cli import main

_FAILED = 1
_STREAMS = ("stdout", "stderr")
_OUTPUT_IS_LOST = 120  # the exit code that Python uses when it cannot flush the output


def make_writable() -> None:
    """Make the streams accept any text: discard it if a stream is closed, escape what its encoding lacks."""
    for name in _STREAMS:
        stream: TextIOWrapper | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 open until the process exits
        else:
            stream.reconfigure(errors="backslashreplace")


def run(main: Callable[[], None]) -> None:
    """Run `main`, then the `atexit` callbacks, then end the process."""
    status = _FAILED
    atexit.register(lambda: _end(status))  # the callback registered first runs last
    try:
        main()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else _FAILED if error.code else 0
        raise


def _end(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader is gone, or the stream is closed
            status = status or _OUTPUT_IS_LOST
    os._exit(status)


def command() -> None:
    """Run the command line and end the process."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # for subprocesses: the folder may be a source with a `struct.py`
    make_writable()
    run(main)


if __name__ == "__main__":
    command()
