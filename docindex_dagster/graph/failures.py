"""How a graph reports files that are not linked or not read, and configurations that cannot be read."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.safe_text import with_reasons

OTHER_LANGUAGE, CUT_AS_TEXT = "in languages whose calls are not read", "cut as text"
"""Why the calls in a file are not known."""
_DEFINITIONS_ALONE = "with definitions alone"


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
    return with_reasons(phrase(len(failed), files), failed.items()) if failed else ""


def sentence_unreadable(unreadable: Mapping[str, str]) -> str:
    """Say which configurations cannot be read, and why; return "" if there are none."""
    return with_reasons(phrase_unreadable(len(unreadable)), unreadable.items()) if unreadable else ""


def unread_files(nodes: pa.Table) -> str:
    """Return how many of the files among some nodes an answer does not cover, and why; "" for none."""
    files = nodes.filter(pc.equal(nodes["type"], "file"))
    counts = [*_counts(files)]
    total = sum(count for _, count in counts)
    if not total:
        return ""
    were = "was" if total == 1 else "were"
    return f"{total:,} of {files.num_rows:,} files {were} not searched: " + ", ".join(
        f"{n:,} {why}" for why, n in counts
    )


def _counts(files: pa.Table) -> Iterator[tuple[str, int]]:
    for why in (OTHER_LANGUAGE, CUT_AS_TEXT):
        if count := pc.sum(pc.equal(files["unread"], why), min_count=0).as_py():
            yield why, count
    if count := pc.sum(pc.and_(pc.is_valid(files["problem"]), pc.is_null(files["unread"]))).as_py():
        yield _DEFINITIONS_ALONE, count
