"""How a graph reports files that are not linked yet, files without edges, and configurations that cannot be read."""

from collections.abc import Mapping
from itertools import islice

from docindex_dagster.core.printable import in_line

_NAMED = 3


def phrase(failed: int, files: int) -> str:
    """How many of so many files they are."""
    return f"the graph of {failed:,} of {files:,} files has definitions alone"


def phrase_unreadable(count: int) -> str:
    """Say how many configurations cannot be read."""
    return f"{count:,} configuration {'file' if count == 1 else 'files'} cannot be read, so imports may be unresolved"


def phrase_unlinked(unlinked: int, files: int) -> str:
    """Say how many of so many files are not linked yet."""
    return f"linking {unlinked:,} of {files:,} files"


def sentence_unlinked(unlinked: int, files: int) -> str:
    """Say what an answer lacks until they are; return "" if all are."""
    return f"{phrase_unlinked(unlinked, files)}: not all of their calls are in this answer yet" if unlinked else ""


def sentence(failed: Mapping[str, str], files: int) -> str:
    """The same, with the first ones by name and why; empty where there is none."""
    return _with_names(phrase(len(failed), files), failed)


def sentence_unreadable(unreadable: Mapping[str, str]) -> str:
    """Say which configurations cannot be read, and why; return "" if there are none."""
    return _with_names(phrase_unreadable(len(unreadable)), unreadable)


def _with_names(text: str, files: Mapping[str, str]) -> str:
    if not files:
        return ""
    named = ", ".join(f"{in_line(path)} ({in_line(reason)})" for path, reason in islice(files.items(), _NAMED))
    more = len(files) - _NAMED
    which = f" and {more:,} more, which `docindex doctor --json` lists" if more > 0 else ""
    return f"{text}: {named}{which}"
