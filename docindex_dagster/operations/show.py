"""Showing an indexed place whole."""

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from docindex_dagster.operations.fields import Place, Request, Sources
from docindex_dagster.operations.view import View


class ShowRequest(Request):
    """A chunk, the chunk at a line, all chunks of a file, a symbol, or a commit."""

    reference: Place
    sources: Sources = Field(default=[])


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk.

    Attributes:
        row: of the schema `CHUNKS`.
        file: on disk; None of a commit, and where the source has no folder here.
        is_changed: whether that was changed since it was indexed.
    """

    row: dict[str, Any]
    file: str | None
    is_changed: bool


def show(view: View, request: ShowRequest) -> list[ShownChunk]:
    """The chunks that a reference names, in the order of their lines.

    Raises:
        QueryError: nothing fits.
        SourceError: a source is not known or not indexed.
    """
    from docindex_dagster.search.freshness import changed_files, files_of
    from docindex_dagster.search.lookup import look_up
    from docindex_dagster.search.places import readings_of

    keys = view.keys(request.sources, all_sources=True)
    readings = readings_of(view.settings, request.reference, view.reader.generation.sources)
    _, rows = look_up(view.reader, readings, keys, view.usual)
    changed, file_of = changed_files(rows, view.declared), files_of(view.declared)
    return [
        ShownChunk(row, file_of(row["source"], row["path"]), (row["source"], row["path"]) in changed) for row in rows
    ]
