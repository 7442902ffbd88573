"""Lookup of indexed files and definitions by the names that texts use, with a few full-text queries.

A file is identified by its content hash, and a definition by the hash of its dedented lines, so the hash does not
depend on where it is.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from docindex_dagster.chunking.rows import chunk_id
from docindex_dagster.core.files import stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import is_branch
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.graph.cross_references import full_name, is_match
from docindex_dagster.search.matches import pieces_of
from docindex_dagster.sources.paths import path_to_name, spellings
from docindex_dagster.sources.staleness import load_listed_files
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.analysis import terms
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from tantivy import Query

_MOST_ROWS = 12  # per name; chunks that define it contain few other words, so they rank first
_MOST_ROWS_OF_FILES, _ROUNDS = 8, 8  # rows per round, from files not seen before
_FIRST_CHUNKS, _MOST_CHUNKS = 2, 256  # of a definition, read together
_TEST = "test"

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Located:
    source: str
    path: str

    @property
    def place(self) -> tuple[str, str]:
        """Source and path."""
        return self.source, self.path


@dataclass(frozen=True, slots=True)
class File(_Located):
    """Indexed file."""

    content_hash: str


@dataclass(frozen=True, slots=True)
class Definition(_Located):
    """Symbol that an indexed file defines; it has several parts if it is overloaded."""

    name: str  # qualified name
    content_hash: str  # of the file
    is_test: bool
    parts: tuple["ChunkSpan", ...]

    @property
    def is_top(self) -> bool:
        """Whether it is at module level."""
        return "." not in self.name


@dataclass(frozen=True, slots=True, order=True)
class ChunkSpan:
    """Lines of a file, from 1 and inclusive, and the chunk in which they begin."""

    start_line: int
    end_line: int
    chunk_index: int


_Result = TypeVar("_Result", bound=_Located)


def may_hold_file(reader: Reader, written: str) -> bool:
    """Return whether a path may refer to a file; much faster than finding the file."""
    held = reader.searcher.doc_freq
    wanted = terms(_last(written, "/"))
    return bool(wanted) and not written.startswith(COMMIT_PATH) and all(held("path_terms", term) for term in wanted)


def may_hold_name(reader: Reader, name: str) -> bool:
    """Return whether a name may refer to a symbol; much faster than finding the symbol."""
    held = reader.searcher.doc_freq
    *around, own = [terms(part)[:1] for part in name.split(".")]
    return any(held("symbols", term) for term in own) and all(
        held("symbols", term) or held("path_terms", term) for part in around for term in part
    )


def file_at(reader: Reader, source: str, path: str) -> File | None:
    """Return the file at a path of a source, or None if it is not indexed."""
    return next(iter(_files_at(reader, [source], path)), None)


def files(reader: Reader, written: str) -> list[File]:
    """Return the files that match a path best: exactly, as a suffix of the file's path, or with it as a suffix.

    A path that begins above the source must contain a folder of the file, or the name of the source before the file.
    """
    for spelling in spellings(written):
        if exact := _files_at(reader, reader.generation.sources, spelling):
            return without_branches(exact)
    ends = list(_named_like(reader, written))
    inside = without_branches([file for file in ends if file.path.endswith(f"/{written}")])
    if inside:
        return inside
    around = [file for file in ends if _is_below(written, file)]
    longest = max((len(file.path) for file in around), default=0)
    return without_branches([file for file in around if len(file.path) == longest])


def files_with(reader: Reader, content_hash: str) -> Iterator[File]:
    """Yield the files with some content, according to the listings made when they were indexed."""
    for key in reader.generation.sources:
        table = reader.layout.table("discovered_files", key)
        listed = load_listed_files(table, stamp(table))
        if listed is None:
            continue
        for position in np.flatnonzero(pc.equal(listed.hashes, content_hash)).tolist():
            file = file_at(reader, key, path_to_name(listed.paths[position]))
            if file is not None and file.content_hash == content_hash:
                yield file


def definitions(reader: Reader, name: str, files: Collection[tuple[str, str]] = ()) -> list[Definition]:
    """Return the definitions that a name may refer to, in some files, given as source and path, or in all.

    If there are very many, return those whose chunks define hardly any other names.
    """
    *around, last = name.split(".")
    own = terms(last)[:1]
    if not own:
        return []
    must = [_term(reader, "symbols", own[0])]
    if files:
        must.append(_any_path(reader, {path for _, path in files}))
    likely = [_term(reader, field, term) for term in terms(" ".join(around)) for field in ("symbols", "path_terms")]
    found = _definitions_in(_rows(reader, must, likely, _MOST_ROWS), last)
    return [one for one in found if (not around or _matches_name(name, one)) and (not files or one.place in files)]


def text_hash(reader: Reader, definition: Definition) -> str:
    """Return a hash that is independent of where a definition is, and no longer than its text."""
    return digest_parts(*map(dedent, texts(reader, definition)))


def texts(reader: Reader, definition: Definition) -> list[str]:
    """Return the lines of a definition, as one text per part."""
    return [_lines(reader, definition, part) for part in definition.parts]


def without_branches(found: Iterable[_Result]) -> list[_Result]:
    """Drop results from secondary branches, unless there are no others."""
    all_results = list(found)
    return [one for one in all_results if not is_branch(one.source)] or all_results


def _matches_name(name: str, definition: Definition) -> bool:
    return name == definition.name or is_match(name, full_name(f"{definition.path}::{definition.name}"))


def _is_below(written: str, file: File) -> bool:
    above, mark, _ = written.rpartition(f"/{file.path}")
    is_end = bool(mark) and written.endswith(f"/{file.path}")
    return is_end and ("/" in file.path or _last(above, "/") == _last(file.source, "/").partition("@")[0])


def _files_at(reader: Reader, sources: Iterable[str], path: str) -> list[File]:
    """Return the files at a path, by the ids of their first chunks."""
    ids = [chunk_id(source, path, 0) for source in sources]
    found = tantivy_index.rows(reader.searcher, reader.index.schema, ids)
    return [_file(found[one]) for one in ids if one in found]


def _named_like(reader: Reader, written: str) -> Iterator[File]:
    """Yield files whose names contain the words of a path's last part, most likely first; only the first of many."""
    *folders, last = written.split("/")
    must = [_term(reader, "path_terms", term) for term in dict.fromkeys(terms(last))]
    likely = [_term(reader, "path_terms", term) for term in dict.fromkeys(terms(" ".join(folders)))]
    seen: list[str] = []
    for _ in range(_ROUNDS):
        others = _any_path(reader, seen) if seen else None
        rows = _rows(reader, must, likely, _MOST_ROWS_OF_FILES, others)
        if not rows:
            return
        new = list(dict.fromkeys(row["path"] for row in rows))
        for path in new:
            yield from _files_at(reader, reader.generation.sources, path)
        seen += new


def _file(row: _Row) -> File:
    return File(row["source"], row["path"], row["content_hash"])


def _definitions_in(rows: Iterable[_Row], last: str) -> list[Definition]:
    """Return the definitions of a name in some chunks, without duplicates."""
    parts: dict[tuple[str, str, str], list[ChunkSpan]] = {}
    last_row: dict[tuple[str, str, str], _Row] = {}
    for row in rows:
        for symbol in row["symbols"] or ():
            qualified = symbol["qualified_name"]
            if _last(qualified, ".") == last:
                key = row["source"], row["path"], qualified
                last_row[key] = row
                part = ChunkSpan(symbol["start_line"], symbol["end_line"], row["chunk_index"])
                parts.setdefault(key, []).append(part)
    return [
        Definition(*key, row["content_hash"], row["source_type"] == _TEST, tuple(sorted(parts[key])))
        for key, row in last_row.items()
    ]


def _lines(reader: Reader, definition: Definition, part: ChunkSpan) -> str:
    """Return the text of some lines, joined from the chunks that contain them."""
    rows = list(_chunks(reader, definition, part))
    pieces = ((first, text.removesuffix("\n").split("\n")) for first, text in pieces_of(rows, lambda *_: None))
    numbered = ((number, line) for first, lines in pieces for number, line in enumerate(lines, first))
    return "\n".join(line for number, line in numbered if part.start_line <= number <= part.end_line)


def _chunks(reader: Reader, definition: Definition, part: ChunkSpan) -> Iterator[_Row]:
    """Yield the chunks of a file that contain some lines, in order."""
    index, count = part.chunk_index, _FIRST_CHUNKS
    while True:
        ids = [chunk_id(*definition.place, number) for number in range(index, index + count)]
        found = tantivy_index.rows(reader.searcher, reader.index.schema, ids)
        for one in ids:
            if one not in found or found[one]["start_line"] > part.end_line:
                return
            yield found[one]
        index, count = index + count, min(2 * count, _MOST_CHUNKS)


def _rows(
    reader: Reader, must: Sequence["Query"], likely: Sequence["Query"], most: int, without: "Query | None" = None
) -> list[_Row]:
    """Return the rows that match all `must` queries but not `without`; matches of `likely` queries rank higher."""
    from tantivy import Occur, Query

    clauses = [(Occur.Must, query) for query in must] + [(Occur.Should, query) for query in likely]
    clauses += [(Occur.MustNot, without)] if without is not None else []
    hits = reader.searcher.search(Query.boolean_query(clauses), limit=most, count=False).hits
    return [tantivy_index.stored_row(reader.searcher, address) for _, address in hits]


def _term(reader: Reader, field: str, value: str) -> "Query":
    from tantivy import Query

    return Query.term_query(reader.index.schema, field, value)


def _any_path(reader: Reader, paths: Iterable[str]) -> "Query":
    return tantivy_index.any_of(reader.index.schema, "path", sorted(paths))


def _last(name: str, mark: str) -> str:
    return name.rpartition(mark)[2]
