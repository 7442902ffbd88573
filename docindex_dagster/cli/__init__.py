"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

A module holds the commands of one purpose. Heavy modules are imported by the commands that need them, so that
`docindex --help` is instant.
"""

import gc
import sys

from docindex_dagster.cli.greeting import greet
from docindex_dagster.core.platforms import refusal

INTERRUPTED = 130  # what shells give a command that Ctrl-C ended
# Of gc.set_threshold. What imports and stages make lives long; looking through it as often as Python does by default
# takes a tenth of a run.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run the command line, on a system that has what it needs."""
    if (reason := refusal()) is not None:  # before what Windows lacks is imported
        sys.stderr.write(f"error: {reason}\n")
        sys.exit(1)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        greet(sys.argv[1:])
        from docindex_dagster.cli.app import main  # parsing workers import the script that started them

        main()
    except KeyboardInterrupt:  # also while modules load
        sys.exit(INTERRUPTED)
