"""Finding chunks by name rather than by meaning: an id, `source::path::index`, `path:line`, or a commit's hash."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from docindex_dagster.chunking.rows import chunk_id
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.keys import is_branch
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.cells import Index, ask
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import AskRows
from docindex_dagster.search.model import SourceType
from docindex_dagster.sources.paths import spellings
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_ID = re.compile(r"[0-9a-f]{32}")
_WRITTEN_ID = re.compile(r"(?P<source>.+?)::(?P<path>.+)::(?P<index>\d{1,9})", re.DOTALL)
_PLACE = re.compile(r"(?P<path>.+):(?P<line>\d{1,9})(-\d{1,9})?", re.DOTALL)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_MOST_CHUNKS_A_FILE = 100_000
_MOST_COMMITS = 10
_TYPES: tuple[str, ...] = get_args(SourceType)


def check_filters(reader: Index, filters: Filters) -> None:
    """Distinguish filters that no indexed chunk meets from words that no chunk has.

    Raises:
        QueryError: one of the filters alone, or all together, exclude every chunk of the sources.
    """
    where = f" of {', '.join(filters.sources)}" if filters.sources else ""
    given = list(_each_alone(filters))
    for what, alone in given:
        if not _meets_any(reader, alone):
            raise QueryError(f"no indexed file{where} {what}")
    if given and not _meets_any(reader, filters):
        raise QueryError(f"no indexed chunk{where} meets all of the filters together, though some meet each of them")


def _each_alone(filters: Filters) -> Iterator[tuple[str, Filters]]:
    """Each filter beside that of the sources, and what it asks for."""
    anything = Filters(sources=filters.sources, source_types=_TYPES)
    if filters.languages:
        yield f"is in {' or '.join(filters.languages)}", replace(anything, languages=filters.languages)
    if filters.human_languages:
        written = replace(anything, human_languages=filters.human_languages)
        yield f"is written in {' or '.join(filters.human_languages)}", written
    if filters.source_types:
        yield f"is of type {' or '.join(filters.source_types)}", replace(anything, source_types=filters.source_types)
    if filters.symbol_kinds:
        article = "an" if filters.symbol_kinds[0][0] in "aeiou" else "a"
        yield f"has {article} {' or '.join(filters.symbol_kinds)}", replace(anything, symbol_kinds=filters.symbol_kinds)
    if filters.places:
        where = " or ".join(glob.removeprefix("/") or "it" for _, glob in filters.places)
        yield f"lies in {where}", replace(anything, places=filters.places)
    if filters.path_glob is not None:
        path = filters.path_glob.removeprefix("/")
        yield f"has the path {path!r}, seen from the source's root", replace(anything, path_glob=filters.path_glob)


def _meets_any(reader: Index, filters: Filters) -> bool:
    return ask(reader, AskMet(filters))


@dataclass(frozen=True, slots=True)
class AskMet:
    """Whether any chunk meets all filters."""

    filters: Filters

    def of(self, reader: Reader) -> bool:
        """Of one index."""
        from tantivy import Occur, Query

        clauses = [(Occur.Must, Query.all_query()), *self.filters.to_clauses(reader.index.schema)]
        return bool(reader.searcher.search(Query.boolean_query(clauses), limit=1, count=False).hits)

    def together(self, answers: Sequence[bool]) -> bool:
        """Of any."""
        return any(answers)


def find_chunks(reader: Index, reference: str, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows that a reference names: one for an id, one a source for `path:line`, all of a file for a path alone.

    What is nothing of this may be the beginning of a commit's hash.

    With `sources`, only rows of these; without, those of further branches only where no other source has any.

    Raises:
        QueryError: nothing fits.
    """
    with reading_stores():
        found = _rows(reader, reference)
    if sources:
        found = [row for row in found if row["source"] in sources]
    else:
        found = [row for row in found if not is_branch(row["source"])] or found
    if not found:
        raise QueryError(_nothing_found(reader, reference, sources))
    return found


def _nothing_found(reader: Index, reference: str, sources: Sequence[str]) -> str:
    """What to say where nothing fits: the line may be one that an indexed file does not have."""
    place = _PLACE.fullmatch(reference)
    with reading_stores():
        rows = _in_file(reader, place["path"], None) if place else []
    rows = [row for row in rows if not sources or row["source"] in sources]
    if place is None or not rows:
        return f"no indexed chunk is named {reference!r}; `docindex why PATH` says whether a file is indexed"
    last = max(row["end_line"] for row in rows)
    return f"no indexed chunk of {place['path']} is at line {place['line']}; the last line that is indexed is {last}"


def _rows(reader: Index, reference: str) -> list[dict[str, Any]]:
    written = _WRITTEN_ID.fullmatch(reference)
    if _ID.fullmatch(reference) or written:
        wanted = chunk_id(written["source"], written["path"], int(written["index"])) if written else reference
        return list(ask(reader, AskRows([wanted])).values())
    if whole := _in_file(reader, reference, None):
        return whole
    if place := _PLACE.fullmatch(reference):
        return _in_file(reader, place["path"], int(place["line"]))
    return ask(reader, AskCommits(reference.lower())) if _COMMIT_ID.fullmatch(reference.lower()) else []


def _in_file(reader: Index, path: str, line: int | None) -> list[dict[str, Any]]:
    rows = next(filter(None, (ask(reader, AskFile(spelt)) for spelt in spellings(path))), [])
    return [row for row in rows if line is None or row["start_line"] <= line <= row["end_line"]]


@dataclass(frozen=True, slots=True)
class AskFile:
    """The chunks of the files that have a path, in their order."""

    path: str

    def of(self, reader: Reader) -> list[dict[str, Any]]:
        """Of one index."""
        return tantivy_index.matching(reader.searcher, reader.index.schema, "path", self.path, _MOST_CHUNKS_A_FILE)

    def together(self, answers: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Of all, by source."""
        rows = (row for answer in answers for row in answer)
        return sorted(rows, key=lambda row: (row["source"], row["path"], row["chunk_index"]))


@dataclass(frozen=True, slots=True)
class AskCommits:
    """The commits whose hash begins so."""

    beginning: str

    def of(self, reader: Reader) -> list[dict[str, Any]]:
        """Those of one index."""
        from tantivy import Query

        query = Query.regex_query(reader.index.schema, "path", f"{re.escape(COMMIT_PATH)}{self.beginning}[0-9a-f]*")
        hits = reader.searcher.search(query, limit=_MOST_COMMITS, count=False).hits
        return self.together([[tantivy_index.stored_row(reader.searcher, address) for _, address in hits]])

    def together(self, answers: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Of all, by source."""
        rows = (row for answer in answers for row in answer)
        return sorted(rows, key=lambda row: (row["source"], row["path"]))[:_MOST_COMMITS]
