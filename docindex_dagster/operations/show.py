"""Show: the full text of the chunks that a reference names."""

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from docindex_dagster.operations.fields import Place, Request, Sources
from docindex_dagster.operations.view import View


class ShowRequest(Request):
    """Show a chunk, the chunk at a line, all chunks of a file, a symbol, or a commit."""

    reference: Place
    sources: Sources = Field(default=[])


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk with the state of its file.

    Attributes:
        row: the columns of the schema `CHUNKS`.
        file: the path on disk; None for commits and for sources without a local folder.
        is_changed: whether the file has changed since it was indexed.
    """

    row: dict[str, Any]
    file: str | None
    is_changed: bool


def show(view: View, request: ShowRequest) -> list[ShownChunk]:
    """Return the chunks that a reference names, in line order.

    Raises:
        QueryError: The reference matches nothing in the index.
        SourceError: A source is unknown or not indexed.
    """
    from docindex_dagster.search.freshness import changed_files, file_resolver
    from docindex_dagster.search.lookup import look_up

    keys = view.source_keys(request.sources, all_sources=True)
    readings = view.readings(request.reference)
    _, rows = look_up(view.reader, readings, keys, view.default_sources)
    changed, file_of = changed_files(rows, view.declared), file_resolver(view.declared)
    return [
        ShownChunk(row, file_of(row["source"], row["path"]), (row["source"], row["path"]) in changed) for row in rows
    ]
