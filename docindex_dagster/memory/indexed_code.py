"""Files and definitions of the indexed code, by what a text calls them: a handful of lookups in the full-text index.

A file is known by its content's hash, a definition by that of its lines, without the indentation that all of them have:
wherever it stands, it has the same one.
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
from docindex_dagster.sources.staleness import listed_files
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.analysis import terms
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from tantivy import Query

_MOST_ROWS = 12  # of a name: what defines it has it in few other words, and comes first
_MOST_ROWS_OF_FILES, _ROUNDS = 8, 8  # rows at a time, of files that were not seen before
_FIRST_CHUNKS, _MOST_CHUNKS = 2, 256  # of a definition that are read together
_TEST = "test"

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Placed:
    source: str
    path: str

    @property
    def place(self) -> tuple[str, str]:
        """Its source and path."""
        return self.source, self.path


@dataclass(frozen=True, slots=True)
class File(_Placed):
    """An indexed file."""

    content_hash: str


@dataclass(frozen=True, slots=True)
class Definition(_Placed):
    """A symbol that an indexed file defines: in several places, where it is overloaded."""

    name: str  # qualified
    content_hash: str  # of the file
    is_test: bool
    parts: tuple["Part", ...]

    @property
    def is_top(self) -> bool:
        """Whether no symbol is around it."""
        return "." not in self.name


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """Lines of a file, from 1 and inclusive, and the chunk in which they begin."""

    start_line: int
    end_line: int
    chunk_index: int


_Found = TypeVar("_Found", bound=_Placed)


def may_hold_file(reader: Reader, written: str) -> bool:
    """Whether there may be a file that a path means: much quicker to know than which one."""
    held = reader.searcher.doc_freq
    wanted = terms(_last(written, "/"))
    return bool(wanted) and not written.startswith(COMMIT_PATH) and all(held("path_terms", term) for term in wanted)


def may_hold_name(reader: Reader, name: str) -> bool:
    """Whether there may be a symbol that a name means: much quicker to know than which one."""
    held = reader.searcher.doc_freq
    *around, own = [terms(part)[:1] for part in name.split(".")]
    return any(held("symbols", term) for term in own) and all(
        held("symbols", term) or held("path_terms", term) for part in around for term in part
    )


def file_at(reader: Reader, source: str, path: str) -> File | None:
    """The file at a path of a source; None where none is indexed."""
    return next(iter(_files_at(reader, [source], path)), None)


def files(reader: Reader, written: str) -> list[File]:
    """The files that a path fits best: whole, as the end of theirs, or theirs as the end of it.

    A path that begins above the source has to have one of the file's folders, or the name of the source before it.
    """
    for spelt in spellings(written):
        if whole := _files_at(reader, reader.generation.sources, spelt):
            return without_branches(whole)
    ends = list(_called(reader, written))
    inside = without_branches([file for file in ends if file.path.endswith(f"/{written}")])
    if inside:
        return inside
    around = [file for file in ends if _is_below(written, file)]
    longest = max((len(file.path) for file in around), default=0)
    return without_branches([file for file in around if len(file.path) == longest])


def files_with(reader: Reader, content_hash: str) -> Iterator[File]:
    """The files of some content, by what was listed when they were indexed."""
    for key in reader.generation.sources:
        table = reader.layout.table("discovered_files", key)
        listed = listed_files(table, stamp(table))
        if listed is None:
            continue
        for position in np.flatnonzero(pc.equal(listed.hashes, content_hash)).tolist():
            file = file_at(reader, key, path_to_name(listed.paths[position]))
            if file is not None and file.content_hash == content_hash:
                yield file


def definitions(reader: Reader, name: str, files: Collection[tuple[str, str]] = ()) -> list[Definition]:
    """The definitions that a name means, qualified or not; in some files, each a source and a path, or in all.

    Of very many, those that have hardly another name beside them.
    """
    *around, last = name.split(".")
    own = terms(last)[:1]
    if not own:
        return []
    must = [_term(reader, "symbols", own[0])]
    if files:
        must.append(_any_path(reader, {path for _, path in files}))
    likely = [_term(reader, field, term) for term in terms(" ".join(around)) for field in ("symbols", "path_terms")]
    found = _defined(_rows(reader, must, likely, _MOST_ROWS), last)
    return [one for one in found if (not around or _is_meant(name, one)) and (not files or one.place in files)]


def text_hash(reader: Reader, definition: Definition) -> str:
    """What stays the same wherever a definition stands, and no longer than its text does."""
    return digest_parts(*map(dedent, texts(reader, definition)))


def texts(reader: Reader, definition: Definition) -> list[str]:
    """The lines of a definition: a text a part."""
    return [_lines(reader, definition, part) for part in definition.parts]


def without_branches(found: Iterable[_Found]) -> list[_Found]:
    """Those of further branches only where there are no others."""
    every = list(found)
    return [one for one in every if not is_branch(one.source)] or every


def _is_meant(name: str, definition: Definition) -> bool:
    return name == definition.name or is_match(name, full_name(f"{definition.path}::{definition.name}"))


def _is_below(written: str, file: File) -> bool:
    above, mark, _ = written.rpartition(f"/{file.path}")
    is_end = bool(mark) and written.endswith(f"/{file.path}")
    return is_end and ("/" in file.path or _last(above, "/") == _last(file.source, "/").partition("@")[0])


def _files_at(reader: Reader, sources: Iterable[str], path: str) -> list[File]:
    """The files at a path, by the ids of their first chunks."""
    ids = [chunk_id(source, path, 0) for source in sources]
    found = tantivy_index.rows(reader.searcher, reader.index.schema, ids)
    return [_file(found[one]) for one in ids if one in found]


def _called(reader: Reader, written: str) -> Iterator[File]:
    """The files whose names have the words of a path's last part, the likeliest first; of very many, the first."""
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


def _defined(rows: Iterable[_Row], last: str) -> list[Definition]:
    """What chunks define under a name, each once."""
    parts: dict[tuple[str, str, str], list[Part]] = {}
    row_of: dict[tuple[str, str, str], _Row] = {}
    for row in rows:
        for symbol in row["symbols"] or ():
            qualified = symbol["qualified_name"]
            if _last(qualified, ".") == last:
                key = row["source"], row["path"], qualified
                row_of[key] = row
                part = Part(symbol["start_line"], symbol["end_line"], row["chunk_index"])
                parts.setdefault(key, []).append(part)
    return [
        Definition(*key, row["content_hash"], row["source_type"] == _TEST, tuple(sorted(parts[key])))
        for key, row in row_of.items()
    ]


def _lines(reader: Reader, definition: Definition, part: Part) -> str:
    """The text of some lines, put together from the chunks that hold them."""
    rows = list(_chunks(reader, definition, part))
    pieces = ((first, text.removesuffix("\n").split("\n")) for first, text in pieces_of(rows, lambda *_: None))
    numbered = ((number, line) for first, lines in pieces for number, line in enumerate(lines, first))
    return "\n".join(line for number, line in numbered if part.start_line <= number <= part.end_line)


def _chunks(reader: Reader, definition: Definition, part: Part) -> Iterator[_Row]:
    """The chunks of a file from the one in which some lines begin to the one in which they end."""
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
    """The rows that fit all of some queries and not another one; first those that fit more that are likely."""
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
