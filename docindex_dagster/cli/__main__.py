"""The process of a command: `docindex`, and `python -m docindex_dagster.cli`.

Its streams take any text, and it ends as soon as nothing is left to do: the interpreter would free what it holds object
by object, which takes up to a second after a run.
"""

import atexit
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from docindex_dagster.cli import main

_FAILED = 1
_STREAMS = ("stdout", "stderr")
_OUTPUT_IS_LOST = 120  # what Python gives where the last of the output cannot be written


def make_writable() -> None:
    """Let any text be written: into nothing where a stream is closed, escaped where its encoding lacks characters."""
    for name in _STREAMS:
        stream: TextIOWrapper | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 as long as the process
        else:
            stream.reconfigure(errors="backslashreplace")


def run(main: Callable[[], None]) -> None:
    """Do the work of a process; where it is over, and all that was registered with `atexit`, end the process."""
    status = _FAILED
    atexit.register(lambda: _end(status))  # the first that is registered is the last that is called
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
        except (OSError, ValueError):  # nobody reads it any more; it is closed
            status = status or _OUTPUT_IS_LOST
    os._exit(status)


def command() -> None:
    """Run the command line, and end the process."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # for its processes: the folder may be a source with a `struct.py`
    make_writable()
    run(main)


if __name__ == "__main__":
    command()
