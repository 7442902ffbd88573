"""Files of which a graph has definitions alone, since their names could not be resolved: how they are reported."""

from collections.abc import Mapping
from itertools import islice

from docindex_dagster.core.printable import in_line

_NAMED = 3


def phrase(failed: int, files: int) -> str:
    """How many of so many files they are."""
    return f"the graph of {failed:,} of {files:,} files has definitions alone"


def sentence(failed: Mapping[str, str], files: int) -> str:
    """The same, with the first ones by name and why; empty where there is none."""
    if not failed:
        return ""
    named = ", ".join(f"{in_line(path)} ({in_line(reason)})" for path, reason in islice(failed.items(), _NAMED))
    more = len(failed) - _NAMED
    which = f" and {more:,} more, which `docindex doctor --json` lists" if more > 0 else ""
    return f"{phrase(len(failed), files)}: {named}{which}"
