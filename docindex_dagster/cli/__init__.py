"""The `docindex` command line: thin commands that load the settings, call the library and print the result.

Each module holds the commands of one area. Commands import heavy modules on demand, so that `docindex --help` is
instant.
"""

import gc
import os
import sys
from collections.abc import Sequence

from docindex_dagster.core.platforms import refusal
from docindex_dagster.core.safe_text import on_one_line, truncate_middle
from docindex_dagster.core.urls import is_url

INTERRUPTED = 130  # the exit code that shells report for a command ended by Ctrl-C
# For `gc.set_threshold`. Imports and pipeline stages create long-lived objects; scanning them at Python's default rate
# takes a tenth of a run.
OBJECTS_BETWEEN_COLLECTIONS = 50_000

_OPTIONS_WITH_VALUE = ("--project", "--wait")
READY = "_DOCINDEX_READY"
"""Environment variable set for a background process whose parent has already printed the first line."""
_SILENT_OPTIONS = frozenset({"--json", "--help", "-h"})
_MAX_NAMES = 3
_MAX_LENGTH = 300  # characters


def main() -> None:
    """Run the command line, after checking that the platform is supported."""
    if (reason := refusal()) is not None:  # before importing modules that Windows lacks
        sys.stderr.write(f"error: {reason}\n")
        sys.exit(1)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        greet(sys.argv[1:])  # before the imports, which take a second
        from docindex_dagster.cli.app import main  # here, because parsing workers import the script that started them

        main()
    except KeyboardInterrupt:  # also during imports
        sys.exit(INTERRUPTED)


def greet(arguments: Sequence[str]) -> None:
    """Print what is about to be indexed on standard error if the arguments are those of `docindex index`."""
    words = _positional_arguments(arguments)
    if words[:1] != ["index"] or _SILENT_OPTIONS.intersection(arguments) or READY in os.environ:
        return
    names = ["a repository" if is_url(word) else word for word in words[1:]]  # a URL may hold a password
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    what = truncate_middle(", ".join(names[:_MAX_NAMES]), _MAX_LENGTH) + more if names else "all sources"
    sys.stderr.write(on_one_line(f"docindex: indexing {what} …").encode("utf-8", "replace").decode() + "\n")
    sys.stderr.flush()


def _positional_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the positional arguments."""
    is_value = [False, *(argument in _OPTIONS_WITH_VALUE for argument in arguments)]
    pairs = zip(arguments, is_value, strict=False)
    return [argument for argument, is_of_option in pairs if not is_of_option and not argument.startswith("-")]
