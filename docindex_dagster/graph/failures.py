"""Reports on files that are not linked or not read, and on configurations that cannot be read."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.safe_text import with_reasons

OTHER_LANGUAGE, CUT_AS_TEXT = "in languages whose calls are not read", "cut as text"
"""Why the calls in a file are unknown."""
_DEFINITIONS_ALONE = "with only definitions"


def phrase(failed: int, files: int) -> str:
    """Say for how many files the graph has only definitions."""
    return f"the graph has only definitions for {failed:,} of {files:,} files"


def phrase_unreadable(count: int) -> str:
    """Say how many configurations cannot be read."""
    return f"{count:,} configuration {'file' if count == 1 else 'files'} cannot be read, so imports may be unresolved"


def phrase_unlinked(unlinked: int, files: int) -> str:
    """Say how many files are not linked yet."""
    return f"linking {unlinked:,} of {files:,} files"


def sentence_unlinked(unlinked: int, files: int) -> str:
    """Say what an answer lacks until all files are linked; return "" if all are."""
    return f"{phrase_unlinked(unlinked, files)}: not all of their calls are in this answer yet" if unlinked else ""


def sentence(failed: Mapping[str, str], files: int) -> str:
    """Say for how many files the graph has only definitions, and why, naming the first; return "" if there are none."""
    return with_reasons(phrase(len(failed), files), failed.items()) if failed else ""


def sentence_unreadable(unreadable: Mapping[str, str]) -> str:
    """Say which configurations cannot be read, and why; return "" if there are none."""
    return with_reasons(phrase_unreadable(len(unreadable)), unreadable.items()) if unreadable else ""


def unread_files(nodes: pa.Table) -> str:
    """Say how many files among some nodes an answer does not cover, and why; return "" if it covers all."""
    files = nodes.filter(pc.equal(nodes["type"], "file"))
    counts = [*_counts(files)]
    total = sum(count for _, count in counts)
    if not total:
        return ""
    were = "was" if total == 1 else "were"
    return f"{total:,} of {files.num_rows:,} files {were} not searched: " + ", ".join(
        f"{n:,} {reason}" for reason, n in counts
    )


def _counts(files: pa.Table) -> Iterator[tuple[str, int]]:
    for reason in (OTHER_LANGUAGE, CUT_AS_TEXT):
        if count := pc.sum(pc.equal(files["unread"], reason), min_count=0).as_py():
            yield reason, count
    if count := pc.sum(pc.and_(pc.is_valid(files["problem"]), pc.is_null(files["unread"]))).as_py():
        yield _DEFINITIONS_ALONE, count
