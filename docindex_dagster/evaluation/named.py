"""The answer of a question that is to be collected: a hit, or an indexed place that a client names."""

import re
from collections.abc import Sequence

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.evaluation.questions import Target
from docindex_dagster.search.cells import Index
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import Hit

_LINES = re.compile(r":(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")


def target_of(hit: Hit) -> Target:
    """The lines of a hit.

    Raises:
        QueryError: it is a commit.
    """
    _check_type(hit.source_type)
    return Target(hit.source, hit.path, (hit.start_line, hit.end_line))


def target_named(reader: Index, reference: str, sources: Sequence[str]) -> Target:
    """The indexed file that a reference means, or lines of it.

    Args:
        reader: the index.
        reference: a chunk's id, `SOURCE::PATH::INDEX`, `PATH`, `PATH:LINE` or `PATH:FIRST-LAST`.
        sources: among which the path is one; none for all.

    Raises:
        QueryError: nothing of it is indexed, it is a commit, or it may be a file of several sources.
    """
    rows = find_chunks(reader, reference, sources)
    for row in rows:
        _check_type(row["source_type"])
    files = sorted({(row["source"], row["path"]) for row in rows})
    if len(files) > 1:
        raise QueryError(f"{reference} is in {' and in '.join(source for source, _ in files)}: name the source")
    [(source, path)] = files
    if reference == path:
        return Target(source, path)
    lines = _LINES.fullmatch(reference.removeprefix(path))
    if lines is None:
        return Target(source, path, (rows[0]["start_line"], rows[0]["end_line"]))
    return Target(source, path, (int(lines["first"]), int(lines["last"] or lines["first"])))


def _check_type(source_type: str) -> None:
    if source_type == COMMIT:
        raise QueryError("a commit answers no question of an evaluation: only files do")
