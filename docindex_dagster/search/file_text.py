"""A file as it was indexed: its text, its chunks and what it defines, for who wants to read it whole."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.core.settings import Settings
from docindex_dagster.search.freshness import changed_files, originals
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.matches import pieces_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.stores.reader import Reader


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a file that are one chunk; both ends inclusive, from 1."""

    chunk_id: str
    start_line: int
    end_line: int
    chunk_type: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol that a file defines, or a heading of a document, and the lines of its chunks."""

    name: str
    kind: str | None  # of a symbol; None for a heading
    start_line: int
    end_line: int
    depth: int  # how many others it lies in


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines in a row. A file is one piece, unless lines between its chunks are not indexed."""

    start_line: int
    text: str


@dataclass(frozen=True, slots=True)
class FileText:
    """An indexed file. `stale` says whether the one on disk differs from it; None where that is unknown."""

    source: str
    path: str
    file: str | None  # where it is on disk
    source_type: str
    language: str | None
    stale: bool | None
    is_uncommitted: bool
    pieces: tuple[Piece, ...]
    chunks: tuple[Span, ...]
    definitions: tuple[Definition, ...]

    @property
    def last_line(self) -> int:
        """The number of the last line that is indexed."""
        return max(span.end_line for span in self.chunks)


def read_file(settings: Settings, reader: Reader, key: str, path: str) -> FileText:
    """A file of a source.

    Raises:
        QueryError: the source has no such file in the index.
        DamagedStoreError: a store cannot be read.
    """
    rows = [row for row in find_chunks(reader, path, (key,)) if row["path"] == path]
    if not rows:
        raise QueryError(f"{key} has no file {path!r} in the index")
    sources = registry.sources(settings)
    first = rows[0]
    pieces = pieces_of(rows, originals(Layout(settings.home), sources))
    folder = None if path.startswith(COMMIT_PATH) or key not in sources else sources[key].path
    is_there = folder is not None and folder.is_dir()
    return FileText(
        source=key,
        path=path,
        file=str(folder / os.fsdecode(name_to_path(path))) if folder is not None and is_there else None,
        source_type=first["source_type"],
        language=first["language"],
        stale=bool(changed_files(rows[:1], sources)) if is_there else None,
        is_uncommitted=bool(first["is_uncommitted"]),
        pieces=tuple(Piece(line, text) for line, text in pieces),
        chunks=tuple(_span(row) for row in rows),
        definitions=tuple(_definitions(rows)),
    )


def _span(row: Mapping[str, Any]) -> Span:
    return Span(*(row[name] for name in ("chunk_id", "start_line", "end_line", "chunk_type", "token_count")))


def _definitions(rows: Sequence[Mapping[str, Any]]) -> Iterator[Definition]:
    """What the chunks of a file define, in its order: symbols that are no local ones; of documents, headings."""
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
