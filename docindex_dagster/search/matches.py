"""All matches of an exact text or pattern, by file and line, as grep lists them.

Scanning chunks yields the files. The text of a file is then reassembled from its chunks, so that split lines are joined
and text repeated across chunks counts once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.documents.model import page_at
from docindex_dagster.search.cancellation import Patience
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.lookup import rows_at
from docindex_dagster.search.text_scan import LONGEST_S, Pattern, contains_pattern, pieces
from docindex_dagster.stores.parts import File

# Return the text of a file from its source, path and content hash; None if the file has changed.
Originals = Callable[[str, str, str], str | None]
_FILES_PER_BATCH = 64  # files read together
_COLUMNS = ["source", "path", "start_byte", "end_byte"]
_MAX_LINE = 300  # characters shown of a line
_BEFORE = 80  # characters shown before the match
_BATCH_BYTES = 1 << 20  # total size of the files searched together
_MARK = "x"
_SINGLE_BYTE = r"\C"  # matches a single byte, which may not be valid text


@dataclass(frozen=True, slots=True)
class Match:
    """A match of a pattern. Line and column count from 1, columns in characters; `text` is the full line.

    `end` is the column after the last character of the match, or the end of the line if the match continues beyond it.
    """

    source: str
    path: str
    line: int
    column: int
    end: int
    text: str
    content_hash: str
    file: str | None = None  # path on disk
    stale: bool | None = None  # whether the file changed since indexing; None if unknown
    page: int | None = None  # for PDFs, whose lines refer to the extracted text


@dataclass(frozen=True, slots=True)
class Matches:
    """The first matches by source, path and position, and the total counts."""

    matches: tuple[Match, ...]
    total: int
    files: int


def find_matches(
    pool: Pool, pattern: Pattern, original: Originals = lambda *_: None, longest_s: float = LONGEST_S
) -> Matches:
    """Find all matches of a pattern, and return the first `pool.limit`; 0 for all.

    Args:
        pool: the chunks to search.
        pattern: the pattern.
        original: returns the text of a file whose chunks hold converted text, such as HTML; if it returns None, the
            text of the chunks is searched.
        longest_s: time limit.

    Raises:
        QueryError: the pattern is invalid, or the search takes too long.
    """
    pattern.check()
    patience = Patience.of(longest_s)
    # With a filter by symbol kind, some chunks are excluded, so the full text of a file must not be searched.
    plain = {} if pool.filters.symbol_kinds else pool.reader.parts.files
    listed: list[Match] = []
    counted: list[File] = []
    total = files = 0
    names = _paths(pool, pattern, patience)
    for start in range(0, len(names), _FILES_PER_BATCH):
        texts: list[_Text] = []
        for name in names[start : start + _FILES_PER_BATCH]:
            patience.check()
            file = plain.get(name)
            if file is not None and pool.limit and len(listed) == pool.limit:
                counted.append(file)
            else:
                texts.append(_text_from_rows(pool, name, original) if file is None else _text_from_file(file))
        for found in _matches_in_texts(texts, pattern, patience):
            total += len(found)
            files += bool(found)
            listed += found[: max(0, pool.limit - len(listed)) if pool.limit else None]
    numbers = list(totals(counted, pattern, patience))
    return Matches(tuple(listed), total + sum(numbers), files + sum(map(bool, numbers)))


def excerpt_around(match: Match) -> tuple[str, int, int]:
    """Return the line of a match, cut around the match if it is long, and the match's position in that text."""
    start, end = match.column - 1, match.end - 1
    if len(match.text) <= _MAX_LINE:
        return match.text, start, end
    first = max(0, min(start - _BEFORE, len(match.text) - _MAX_LINE))
    return match.text[first : first + _MAX_LINE], start - first, end - first


def lines_of(pool: Pool, match: Match, original: Originals = lambda *_: None) -> dict[int, str]:
    """Return the lines of a match's file as indexed, by line number."""
    rows = _rows(pool, (match.source, match.path))
    pieces = ((first, text.removesuffix("\n").split("\n")) for first, text in pieces_of(rows, original))
    return {number: line for first, lines in pieces for number, line in enumerate(lines, start=first)}


def _paths(pool: Pool, pattern: Pattern, patience: Patience) -> list[tuple[str, str]]:
    """Return the sorted files that may contain a match, including converted files and files with split lines."""
    found: set[tuple[str, str]] = set()
    cut = []
    for batch in (piece.batch for piece in pieces(pool)):
        is_converted = pc.not_equal(
            pc.subtract(batch["end_byte"], batch["start_byte"]), pc.binary_length(batch["text"])
        )
        is_found = contains_pattern(batch["text"], pattern, patience)
        is_match = pc.or_(is_found, pc.fill_null(is_converted, fill_value=True))
        hits = batch.filter(is_match)
        found.update(zip(hits["source"].to_pylist(), hits["path"].to_pylist(), strict=True))
        places = batch.select(_COLUMNS).append_column("is_open", pc.invert(pc.ends_with(batch["text"], "\n")))
        cut.append(pa.Table.from_batches([places]))
    return sorted(found | _with_cut_lines(pa.concat_tables(cut))) if cut else []


def _with_cut_lines(chunks: pa.Table) -> set[tuple[str, str]]:
    """Return the files with a chunk that ends within a line, followed by another chunk."""
    known = chunks.filter(pc.is_valid(chunks["end_byte"]))
    ends = known.group_by(["source", "path"]).aggregate([("end_byte", "max")])
    is_open = known.filter(known["is_open"]).join(ends, ["source", "path"])
    cut = is_open.filter(pc.less(is_open["end_byte"], is_open["end_byte_max"]))
    return set(zip(cut["source"].to_pylist(), cut["path"].to_pylist(), strict=True))


def _rows(pool: Pool, name: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the rows of the chunks of a file, in order."""
    kinds, (source, path) = pool.filters.symbol_kinds, name
    rows = rows_at(pool.reader, path)
    return [row for row in rows if row["source"] == source and (not kinds or row["symbol_kind"] in kinds)]


class _Text(NamedTuple):
    """The text of a file in pieces, each with the number of its first line; `pages` are chunks with page numbers."""

    source: str
    path: str
    content_hash: str
    pieces: Sequence[tuple[int, str]]
    pages: Sequence[Mapping[str, Any]] = ()


def _text_from_file(file: File) -> _Text:
    source, path, content_hash = (file.value(name) for name in ("source", "path", "content_hash"))
    return _Text(source, path, content_hash, [(file.value("start_line"), file.text.decode())])


def _text_from_rows(pool: Pool, name: tuple[str, str], original: Originals) -> _Text:
    rows = _rows(pool, name)
    return _Text(*name, rows[0]["content_hash"], pieces_of(rows, original), [row for row in rows if row["pointers"]])


def _matches_in_texts(texts: Sequence[_Text], pattern: Pattern, patience: Patience) -> Iterator[list[Match]]:
    """Yield the matches in each file; one scan over all texts first rules out most of them."""
    may_match = iter(pattern.may_be_in([piece for text in texts for _, piece in text.pieces]))
    for text in texts:
        patience.check()
        yield _matches_in_file(text._replace(pieces=[piece for piece in text.pieces if next(may_match)]), pattern)


def _matches_in_file(text: _Text, pattern: Pattern) -> list[Match]:
    """Return the matches in a file, in order."""
    found: dict[tuple[int, int], Match] = {}
    for start_line, piece in text.pieces:
        ends = [0]
        lines = piece.split("\n")
        for line in lines:
            ends.append(ends[-1] + len(line) + 1)
        at = 0
        for start, end in pattern.places(piece):
            while ends[at + 1] <= start:
                at += 1
            column = start - ends[at] + 1
            line = lines[at].removesuffix("\r")
            place = (start_line + at, column)
            last = min(end - ends[at] + 1, len(line) + 1)
            match = Match(text.source, text.path, *place, max(column, last), line, text.content_hash)
            found[place] = replace(match, page=_page(text.pages, place[0])) if text.pages else match
    return [found[place] for place in sorted(found)]


def _page(rows: Sequence[Mapping[str, Any]], line: int) -> int | None:
    pages = (page_at(row, line) for row in rows if row["start_line"] <= line <= row["end_line"])
    return next((page for page in pages if page is not None), None)


def pieces_of(rows: Sequence[Mapping[str, Any]], original: Originals) -> list[tuple[int, str]]:
    """Return the text of a file in pieces, each with the number of its first line."""
    row = rows[0]
    if not all(map(_is_span, rows)) and (text := original(row["source"], row["path"], row["content_hash"])) is not None:
        return [(1, text)]
    return _pieces(rows)


def _is_span(row: Mapping[str, Any]) -> bool:
    """Return whether the text of a chunk is an unmodified span of its file."""
    start, end = row["start_byte"], row["end_byte"]
    return start is not None and end - start == len(row["text"].encode())


def _pieces(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Return the text of a file in pieces with their first lines; split where chunks are converted or missing."""
    pieces: list[tuple[int, list[bytes], int]] = []
    for row in rows:
        text, start, end = row["text"].encode(), row["start_byte"], row["end_byte"]
        known = pieces[-1][2] if pieces else -1
        if not _is_span(row) or not start <= known <= end:
            pieces.append((row["start_line"], [text], end if _is_span(row) else -1))
            continue
        pieces[-1] = (pieces[-1][0], [*pieces[-1][1], text[known - start :]], end)
    return [(line, b"".join(parts).decode(errors="replace")) for line, parts, _ in pieces]


def totals(files: Sequence[File], pattern: Pattern, patience: Patience) -> Iterator[int]:
    """Yield the number of matches in each file, equal to the number of `pattern.places` in its text.

    Raises:
        QueryError: the search takes too long.
    """
    for texts in _batches(files):
        patience.check()
        if not pattern.is_regex:
            needle = pattern.text.encode()
            yield from (text.count(needle) for text in texts)
        elif _SINGLE_BYTE in pattern.text:
            yield from (len(pattern.places(text.decode())) for text in texts)
        else:
            yield from _count_regex(pa.array(texts, pa.string()), pattern).tolist()


def _batches(files: Sequence[File]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for file in files:
        batch.append(file.text)
        size += len(batch[-1])
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _count_regex(texts: pa.Array, pattern: Pattern) -> NDArray[np.int64]:
    """Return the number of matches of a regular expression in each text: shape (texts,)."""
    if pattern.is_over_lines:
        return _count_marks(texts, pattern)
    split = pc.split_pattern(texts, "\n")  # no pattern matches the empty string after the last newline
    lines, numbers = split.flatten(), pc.list_parent_indices(split)
    if pc.any(pc.match_substring_regex(texts, "\r")).as_py():
        lines = pc.replace_substring_regex(lines, "\r\\z", "")
    is_match = pattern.matches(lines)
    marks = _count_marks(lines.filter(is_match), pattern)
    return np.bincount(np.asarray(numbers.filter(is_match)), marks, len(texts)).astype(np.int64)


def _count_marks(texts: pa.Array, pattern: Pattern) -> NDArray[np.int64]:
    """Count the matches in each text by inserting a mark at each and measuring the growth: shape (texts,)."""
    marked = pc.replace_substring_regex(texts, pattern=pattern.regex, replacement=rf"{_MARK}\0")
    longer = pc.subtract(pc.binary_length(marked), pc.binary_length(texts))
    return np.asarray(longer).astype(np.int64)
