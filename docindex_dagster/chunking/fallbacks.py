"""Files that were cut as text, since their structure could not be read, or were left out: which ones, and why."""

from collections.abc import Collection, Mapping
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.printable import in_line

_MOST_SHARE = 0.02  # of the files of a source: above it a user should look
_NAMED = 3


def fallbacks(chunks: pa.Table) -> dict[str, str]:
    """The files of a `chunks` table that were cut as text, by path, and why."""
    cut = chunks.select(["path", "fallback"]).filter(pc.is_valid(chunks["fallback"]))
    return dict(zip(cut["path"].to_pylist(), cut["fallback"].to_pylist(), strict=True))


def are_many(cut: int, files: int) -> bool:
    """Whether so many of so many files were cut as text that a user should look."""
    return cut > files * _MOST_SHARE


def phrase(cut: int, files: int) -> str:
    """How many of so many files were cut as text."""
    return f"{cut:,} of {files:,} files {'is' if cut == 1 else 'are'} cut as text"


def sentence(cut: Mapping[str, str], files: int) -> str:
    """How many of so many files were cut as text, of the first ones why, and who names the others."""
    listed = ", which `docindex doctor --json` lists" if len(cut) > _NAMED else ""
    return f"{phrase(len(cut), files)}: {_first_ones(cut.items())}{listed}"


def warning(cut: Mapping[str, str], files: int) -> str:
    """The same where they are many; else nothing."""
    return sentence(cut, files) if are_many(len(cut), files) else ""


def left_out_warning(files: Collection[tuple[str, str]]) -> str:
    """How many files changed between discovery and cutting into what is not indexed, and why; nothing for none."""
    if not files:
        return ""
    count = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    return f"{count} left out until the next run, changed as the source was indexed: {_first_ones(files)}"


def _first_ones(files: Collection[tuple[str, str]]) -> str:
    """The first ones of some files, each with its reason, and how many more there are."""
    named = ", ".join(f"{in_line(path)} ({in_line(reason)})" for path, reason in islice(files, _NAMED))
    more = len(files) - _NAMED
    return f"{named} and {more:,} more" if more > 0 else named
