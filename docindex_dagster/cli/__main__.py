"""The process of a command: `docindex`, and `python -m docindex_dagster.cli`."""

import os

from docindex_dagster.cli import main
from docindex_dagster.cli.ending import make_writable, run


def command() -> None:
    """Run the command line, and end the process."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # for its processes: the folder may be a source with a `struct.py`
    make_writable()
    run(main)


if __name__ == "__main__":
    command()
