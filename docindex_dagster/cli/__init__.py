"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

A module holds the commands of one purpose. Heavy modules are imported by the commands that need them, so that
`docindex --help` is instant.
"""

import gc
import os
import sys
from collections.abc import Sequence

from docindex_dagster.core.platforms import refusal
from docindex_dagster.core.safe_text import in_line, shortened
from docindex_dagster.core.urls import is_url

INTERRUPTED = 130  # what shells give a command that Ctrl-C ended
# Of gc.set_threshold. What imports and stages make lives long; looking through it as often as Python does by default
# takes a tenth of a run.
OBJECTS_BETWEEN_COLLECTIONS = 50_000

_WITH_VALUE = ("--project", "--wait")
READY = "_DOCINDEX_READY"
"""The environment variable of a background process, for which its parent has printed the greeting."""
_SILENT = frozenset({"--json", "--help", "-h"})
_MOST_NAMED = 3
_LONGEST = 300  # characters of their names


def main() -> None:
    """Run the command line, on a system that has what it needs."""
    if (reason := refusal()) is not None:  # before what Windows lacks is imported
        sys.stderr.write(f"error: {reason}\n")
        sys.exit(1)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        greet(sys.argv[1:])  # before the imports, which take a second
        from docindex_dagster.cli.app import main  # parsing workers import the script that started them

        main()
    except KeyboardInterrupt:  # also while modules load
        sys.exit(INTERRUPTED)


def greet(arguments: Sequence[str]) -> None:
    """Say on standard error what is about to be indexed, if that is what the arguments of `docindex` ask for."""
    words = _words(arguments)
    if words[:1] != ["index"] or _SILENT.intersection(arguments) or READY in os.environ:
        return
    named = ["a repository" if is_url(word) else word for word in words[1:]]  # a URL may hold a password
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    what = shortened(", ".join(named[:_MOST_NAMED]), _LONGEST) + more if named else "all sources"
    sys.stderr.write(in_line(f"docindex: indexing {what} …").encode("utf-8", "replace").decode() + "\n")
    sys.stderr.flush()


def _words(arguments: Sequence[str]) -> list[str]:
    """The arguments that are no options."""
    is_value = [False, *(argument in _WITH_VALUE for argument in arguments)]
    pairs = zip(arguments, is_value, strict=False)
    return [argument for argument, is_of_option in pairs if not is_of_option and not argument.startswith("-")]
