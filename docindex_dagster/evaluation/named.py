"""The answer of a question that is to be collected: a hit, or an indexed place that a client names."""

from collections.abc import Sequence

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.references import Reference, parse
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.evaluation.questions import Target
from docindex_dagster.search.lookup import look_up
from docindex_dagster.search.model import Hit
from docindex_dagster.stores.reader import Reader


def target_of(hit: Hit) -> Target:
    """The lines of a hit.

    Raises:
        QueryError: it is a commit.
    """
    _check_type(hit.source_type)
    return Target(hit.source, hit.path, (hit.start_line, hit.end_line))


def target_named(reader: Reader, reference: str, sources: Sequence[str], readings: Sequence[Reference] = ()) -> Target:
    """The indexed file that a reference means, or lines of it.

    Args:
        reader: the index.
        reference: a place in a file, as `core.references` reads it.
        sources: among which the path is one; none for all.
        readings: what the reference may mean; none for all that `core.references` reads in it.

    Raises:
        QueryError: nothing of it is indexed, it is a commit, or it may be a file of several sources.
    """
    found, rows = look_up(reader, readings or parse(reference, reader.generation.sources), sources)
    for row in rows:
        _check_type(row["source_type"])
    files = sorted({(row["source"], row["path"]) for row in rows})
    if len(files) > 1:
        raise QueryError(f"{reference} is in {' and in '.join(source for source, _ in files)}: name the source")
    [(source, path)] = files
    is_whole = found.path == path and found.chunk is None and not found.symbol
    return Target(source, path, found.lines if is_whole else (rows[0]["start_line"], rows[-1]["end_line"]))


def _check_type(source_type: str) -> None:
    if source_type == COMMIT:
        raise QueryError("a commit answers no question of an evaluation: only files do")
