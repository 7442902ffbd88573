"""Files whose calls a graph does not know: which ones, and how an answer without edges says so."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.languages import has_calls
from docindex_dagster.code.languages import HOSTS, holds_symbols

OTHER_LANGUAGE, CUT_AS_TEXT = "in languages whose calls are not read", "cut as text"
_DEFINITIONS_ALONE = "with definitions alone"
_CODE = frozenset({"code", "test"})


def why_unread(language: str, source_type: str, *, has_structure: bool) -> str | None:
    """Return why the calls in a file are not known; None where they are, and for a file that holds no code.

    Args:
        language: of the code in the file, or of the file where no code was found in it.
        source_type: of the file.
        has_structure: whether the file was parsed.
    """
    if source_type not in _CODE and language not in HOSTS:
        return None
    if not has_structure:
        return CUT_AS_TEXT if holds_symbols(language) else OTHER_LANGUAGE
    return None if has_calls(language) or language in HOSTS else OTHER_LANGUAGE


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
