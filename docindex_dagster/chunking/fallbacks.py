"""Files that were cut as text because their structure could not be read: which ones, why, and whether they are many."""

from collections.abc import Mapping
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.printable import in_line

_MOST_SHARE = 0.02  # of the files of a source: above it somebody should look
_NAMED = 3


def fallbacks(chunks: pa.Table) -> dict[str, str]:
    """The files of a `chunks` table that were cut as text, by path, and why."""
    cut = chunks.select(["path", "fallback"]).filter(pc.is_valid(chunks["fallback"]))
    return dict(zip(cut["path"].to_pylist(), cut["fallback"].to_pylist(), strict=True))


def are_many(cut: int, files: int) -> bool:
    """Whether so many of so many files were cut as text that somebody should look."""
    return cut > files * _MOST_SHARE


def phrase(cut: int, files: int) -> str:
    """How many of so many files were cut as text."""
    return f"{cut:,} of {files:,} files {'is' if cut == 1 else 'are'} cut as text"


def sentence(cut: Mapping[str, str], files: int) -> str:
    """How many of so many files were cut as text, of the first ones why, and who names the others."""
    named = ", ".join(f"{in_line(path)} ({in_line(reason)})" for path, reason in islice(cut.items(), _NAMED))
    more = len(cut) - _NAMED
    return f"{phrase(len(cut), files)}: {named}" + (
        f" and {more:,} more, which `docindex doctor --json` lists" if more > 0 else ""
    )


def warning(cut: Mapping[str, str], files: int) -> str:
    """The same where they are many; else nothing."""
    return sentence(cut, files) if are_many(len(cut), files) else ""
