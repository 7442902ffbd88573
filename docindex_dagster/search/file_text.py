"""An indexed file: its text, chunks and definitions, for readers that need all of it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.core.settings import Settings
from docindex_dagster.search.freshness import changed_files, original_texts
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.matches import pieces_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.stores.reader import Reader


@dataclass(frozen=True, slots=True)
class Span:
    """The lines of a chunk in a file; both ends inclusive, from 1."""

    chunk_id: str
    start_line: int
    end_line: int
    chunk_type: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol defined in a file, or a heading of a document, and its lines."""

    name: str
    kind: str | None  # of a symbol; None for a heading
    start_line: int
    end_line: int
    depth: int  # nesting level, from 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive lines. A file is a single piece unless lines between its chunks are not indexed."""

    start_line: int
    text: str


@dataclass(frozen=True, slots=True)
class FileText:
    """An indexed file. `stale` says whether the file on disk differs from it; None if unknown."""

    source: str
    path: str
    file: str | None  # path on disk
    source_type: str
    language: str | None
    stale: bool | None
    is_uncommitted: bool
    pieces: tuple[Piece, ...]
    chunks: tuple[Span, ...]
    definitions: tuple[Definition, ...]

    @property
    def last_line(self) -> int:
        """The number of the last indexed line."""
        return max(span.end_line for span in self.chunks)


def read_file(settings: Settings, reader: Reader, key: str, path: str) -> FileText:
    """Return an indexed file of a source.

    Raises:
        QueryError: the index has no such file for the source.
        DamagedStoreError: a store cannot be read.
    """
    rows = [row for row in find_chunks(reader, path, (key,)) if row["path"] == path]
    if not rows:
        raise QueryError(f"file {path!r} of {key} not found in the index")
    sources = registry.sources(settings)
    first = rows[0]
    pieces = pieces_of(rows, original_texts(Layout(settings.home), sources))
    folder = None if path.startswith(COMMIT_PATH) or key not in sources else sources[key].path
    has_folder = folder is not None and folder.is_dir()
    return FileText(
        source=key,
        path=path,
        file=str(folder / os.fsdecode(name_to_path(path))) if folder is not None and has_folder else None,
        source_type=first["source_type"],
        language=first["language"],
        stale=bool(changed_files(rows[:1], sources)) if has_folder else None,
        is_uncommitted=bool(first["is_uncommitted"]),
        pieces=tuple(Piece(line, text) for line, text in pieces),
        chunks=tuple(_span(row) for row in rows),
        definitions=tuple(_definitions(rows)),
    )


def _span(row: Mapping[str, Any]) -> Span:
    return Span(*(row[name] for name in ("chunk_id", "start_line", "end_line", "chunk_type", "token_count")))


def _definitions(rows: Sequence[Mapping[str, Any]]) -> Iterator[Definition]:
    """Yield the definitions in a file, in order: non-local symbols, and headings in documents."""
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        for symbol in row["symbols"] or ():
            if not symbol.get("is_local"):
                depth = _depth(symbol["qualified_name"])
                yield Definition(
                    symbol["qualified_name"], symbol["kind"], symbol["start_line"], symbol["end_line"], depth
                )
        headings = tuple(row["heading_path"] or ())
        if headings and headings not in seen:
            seen.add(headings)
            yield Definition(headings[-1], None, row["start_line"], row["end_line"], len(headings) - 1)


def _depth(qualified_name: str) -> int:
    return qualified_name.count(".")
