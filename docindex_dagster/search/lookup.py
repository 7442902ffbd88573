"""Lookup of the chunks that a reference names, and checks that filters match any chunk."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from docindex_dagster.chunking.rows import chunk_id
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import is_branch
from docindex_dagster.core.references import Reference, parse
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.core.settings import Settings
from docindex_dagster.search.candidates import Pool, of_name
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import rows_by_id
from docindex_dagster.search.model import SourceType
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import path_to_name, spellings
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.graph.open_graph import OpenGraph

_MAX_CHUNKS_PER_FILE = 100_000
_MAX_COMMITS = 10
_MAX_CHUNKS_PER_NAME = 1000  # chunks
_TYPES: tuple[str, ...] = get_args(SourceType)


def check_filters(reader: Reader, filters: Filters) -> None:
    """Check whether the filters, rather than the words, exclude every chunk.

    Raises:
        QueryError: a single filter, or all of them together, exclude every chunk of the sources.
    """
    where = f" of {', '.join(filters.sources)}" if filters.sources else ""
    filters_set = list(_separate_filters(filters))
    for what, alone in filters_set:
        if not meets_any(reader, alone):
            raise QueryError(f"no indexed file{where} {what}")
    if filters_set and not meets_any(reader, filters):
        raise QueryError(f"no indexed chunk{where} matches all filters together, but each filter matches some chunks")


def _separate_filters(filters: Filters) -> Iterator[tuple[str, Filters]]:
    """Yield each filter combined only with that of the sources, and its description."""
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
        yield f"is in {where}", replace(anything, places=filters.places)
    if filters.path_glob is not None:
        path = filters.path_glob.removeprefix("/")
        yield f"has the path {path!r} relative to its source", replace(anything, path_glob=filters.path_glob)


def meets_any(reader: Reader, filters: Filters) -> bool:
    """Return whether any chunk matches all filters."""
    from tantivy import Occur, Query

    clauses = [(Occur.Must, Query.all_query()), *filters.to_clauses(reader.index.schema)]
    return bool(reader.searcher.search(Query.boolean_query(clauses), limit=1, count=False).hits)


def find_chunks(reader: Reader, reference: str, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the rows that a reference names, as read by `core.references`; does not access the files.

    With `sources`, return only rows of these sources. Without, prefer sources that are not additional branches.

    Raises:
        QueryError: nothing matches.
    """
    return look_up(reader, parse(reference, reader.generation.sources), sources)[1]


def look_up(
    reader: Reader, readings: Sequence[Reference], sources: Sequence[str] = (), usual: Sequence[str] = ()
) -> tuple[Reference, list[dict[str, Any]]]:
    """Return the first reading of a reference that names something indexed, and its rows.

    Args:
        reader: the index.
        readings: possible meanings, in order of preference.
        sources: see `find_chunks`.
        usual: default sources for a reference that names none.

    Raises:
        QueryError: no reading matches.
    """
    with reading_stores():
        for reading in readings:
            if sources and reading.source and reading.source not in sources:
                continue
            if found := _in_sources(_rows(reader, reading), (reading.source,) if reading.source else sources or usual):
                return reading, found
        raise QueryError(_not_found_message(reader, readings, sources))


def _in_sources(rows: list[dict[str, Any]], sources: Sequence[str]) -> list[dict[str, Any]]:
    if sources:
        return [row for row in rows if row["source"] in sources]
    return [row for row in rows if not is_branch(row["source"])] or rows


def _not_found_message(reader: Reader, readings: Sequence[Reference], sources: Sequence[str]) -> str:
    """Return the error message: an indexed file may not have the requested line."""
    for reading in readings:
        if reading.lines and (rows := _in_sources(_in_file(reader, reading.path), sources)):
            last = max(row["end_line"] for row in rows)
            first, _ = reading.lines
            return f"no indexed chunk of {reading.path} is at line {first}: the last indexed line is {last}"
    return f"no indexed chunk is named {readings[0].path!r}. `docindex why PATH` says whether a file is indexed"


def _rows(reader: Reader, reference: Reference) -> list[dict[str, Any]]:
    if reference.chunk is not None:
        requested = chunk_id(reference.source or "", reference.path, reference.chunk)
        return list(rows_by_id(reader, [requested]).values())
    if reference.id:
        return list(rows_by_id(reader, [reference.id]).values()) or _commits(reader, reference.id)
    if not reference.path:
        return _defining(reader, reference.symbol)
    rows = _in_file(reader, reference.path)
    if reference.lines:
        return _overlapping(rows, reference.lines)
    return _of_symbol(rows, reference.symbol) if reference.symbol else rows


def _in_file(reader: Reader, path: str) -> list[dict[str, Any]]:
    """Return the chunks of a file, with any Unicode form of its path."""
    return next(filter(None, (rows_at(reader, spelt) for spelt in spellings(path))), [])


def _overlapping(rows: list[dict[str, Any]], lines: tuple[int, int]) -> list[dict[str, Any]]:
    first, last = sorted(lines)
    return [row for row in rows if row["start_line"] <= last and first <= row["end_line"]]


def _defining(reader: Reader, name: str) -> list[dict[str, Any]]:
    """Return the chunks that define a symbol with this qualified name or suffix; ignores case if there are none."""
    pool = Pool(reader, Filters(source_types=_TYPES), _MAX_CHUNKS_PER_NAME)
    ids = [found for found, _ in of_name(pool, name.rpartition(".")[2])]
    rows = sorted(rows_by_id(reader, ids).values(), key=lambda row: (row["source"], row["path"], row["chunk_index"]))
    defined = [(row, symbol["qualified_name"]) for row in rows for symbol in row["symbols"] or ()]
    found = [row for row, qualified in defined if _is_suffix(name, qualified)]
    found = found or [row for row, qualified in defined if _is_suffix(name.casefold(), qualified.casefold())]
    return [*{row["chunk_id"]: row for row in found}.values()]


def _is_suffix(name: str, qualified_name: str) -> bool:
    return f".{qualified_name}".endswith(f".{name}")


def _of_symbol(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the chunks of a file with a symbol of this qualified name, or the section under these headings."""
    symbols = [symbol for row in rows for symbol in row["symbols"] or ()]
    if found := [symbol for symbol in symbols if _is_suffix(name, symbol["qualified_name"])]:
        return [
            row
            for row in rows
            if any(_overlapping([row], (symbol["start_line"], symbol["end_line"])) for symbol in found)
        ]
    headings = {row["chunk_id"]: " > ".join(row["heading_path"] or ()) for row in rows}
    enclosing = [titles for titles in headings.values() if titles and f"{name} > ".startswith(f"{titles} > ")]
    return [row for row in rows if enclosing and headings[row["chunk_id"]] == max(enclosing, key=len)]


def rows_at(reader: Reader, path: str) -> list[dict[str, Any]]:
    """Return the chunks of all files with this path, in order."""
    return tantivy_index.matching(reader.searcher, reader.index.schema, "path", path, _MAX_CHUNKS_PER_FILE)


def _commits(reader: Reader, prefix: str) -> list[dict[str, Any]]:
    """Return the commits whose hash starts with a prefix."""
    from tantivy import Query

    query = Query.regex_query(reader.index.schema, "path", f"{re.escape(COMMIT_PATH)}{prefix}[0-9a-f]*")
    hits = reader.searcher.search(query, limit=_MAX_COMMITS, count=False).hits
    rows = (tantivy_index.stored_row(reader.searcher, address) for _, address in hits)
    return sorted(rows, key=lambda row: (row["source"], row["path"]))


def node_name(
    reader: Reader, graph: "OpenGraph", text: str, readings: Sequence[Reference] = (), usual: Sequence[str] = ()
) -> str:
    """Return the name of the graph node at an indexed location, or the text itself for the graph to look up.

    Args:
        reader: the index of the graph.
        graph: the graph.
        text: the user's input.
        readings: possible meanings; empty for all that `core.references` finds in it.
        usual: default sources for a reference that names none.

    Raises:
        QueryError: the location is in several sources.
    """
    if text in graph.numbers:
        return text
    for reading in readings or parse(text, reader.generation.sources):
        if not reading.path and not reading.id:
            if reading.source:
                return f"{reading.source}!{reading.symbol}"
            continue
        try:
            _, rows = look_up(reader, [reading], usual=usual)
        except QueryError:
            continue
        by_source = {row["source"]: [other for other in rows if other["source"] == row["source"]] for row in rows}
        nodes = [node for of_source in by_source.values() if (node := _node(graph, reading, of_source))]
        if len(nodes) > 1:
            raise QueryError(f"{text!r} is in several sources. Specify one of {', '.join(sorted(nodes))}")
        if nodes:
            return nodes[0]
    return text


def _node(graph: "OpenGraph", reading: Reference, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost node that contains what a reading names in a file; empty if there is none."""
    first = rows[0]
    file = f"{first['source']}!{first['path']}"
    if reading == Reference(reading.path, reading.source):
        return file if file in graph.numbers else ""
    names = [f"{file}{mark}{reading.symbol}" for mark in ("::", "#") if reading.symbol]
    symbols = [symbol for row in rows for symbol in row["symbols"] or () if not symbol.get("is_local")]
    if reading.symbol:
        qualified = (symbol["qualified_name"] for symbol in symbols)
        names += [f"{file}::{name}" for name in qualified if name.endswith(f".{reading.symbol}")]
    if reading.lines:
        start, end = sorted(reading.lines)
        enclosing = [symbol for symbol in symbols if symbol["start_line"] <= start and end <= symbol["end_line"]]
        enclosing.sort(key=lambda symbol: symbol["end_line"] - symbol["start_line"])
        names += [f"{file}::{symbol['qualified_name']}" for symbol in enclosing]
    names += [f"{file}::{row['qualified_name']}" for row in rows if _is_all(reading, row) and row["qualified_name"]]
    titles = graph.section_at(first["source"], first["path"], reading.lines[0] if reading.lines else first["end_line"])
    return next((name for name in (*names, titles, file) if name in graph.numbers), "")


def _is_all(reading: Reference, row: Mapping[str, Any]) -> bool:
    """Return whether the reading names the entire chunk, or exactly its lines."""
    return reading.lines is None or reading.lines == (row["start_line"], row["end_line"])


def readings_of(settings: Settings, text: str, sources: Iterable[str] = ()) -> list[Reference]:
    """Return all readings of a reference; paths on disk are converted to paths in their sources.

    Args:
        settings: of the project.
        text: the user's input, possibly a path that is absolute or relative to the working directory.
        sources: keys of the indexed sources; declared sources are always included.
    """
    found: list[Reference] = []
    absent: list[Reference] = []
    for reading in parse(text, dict.fromkeys((*sources, *registry.sources(settings)))):
        location = None if reading.source or not reading.path else registry.locate_path(settings, Path(reading.path))
        if location:
            source, name = location
            readings = found if not name or source.mode(name) is not None else absent
            readings.append(replace(reading, path=name or ".", source=source.key))
        found.append(replace(reading, path=_as_name(reading.path)))
    return [*dict.fromkeys((*found, *absent))]


def _as_name(path: str) -> str:
    """Return a path as stored in tables; paths that are valid text are returned unchanged."""
    try:
        path.encode()
    except UnicodeEncodeError:  # the shell passed bytes that are not valid text
        return path_to_name(os.fsencode(path))
    return path
