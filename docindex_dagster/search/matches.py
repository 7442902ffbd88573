"""Every place that holds an exact text or a pattern, by file and line, as grep lists them.

The chunks that hold one name the files; the text of a file is put together from its chunks, so that lines which were
cut are whole, and text that chunks repeat counts once.
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
from docindex_dagster.search.text_scan import LONGEST_S, Pattern, holds, pieces
from docindex_dagster.stores.parts import File

# The text of a file of a source, by its path and the hash of its content; None where the file is not that one any more.
Originals = Callable[[str, str, str], str | None]
_FILES_A_LOOK = 64  # that are read together
_COLUMNS = ["source", "path", "start_byte", "end_byte"]
_LONGEST_LINE = 300  # characters that are shown of a line
_BEFORE = 80  # of them before the match
_TEXTS_BYTES = 1 << 20  # of files that are looked at together
_MARK = "x"
_OF_BYTES = r"\C"  # matches a part of a character, which no text is


@dataclass(frozen=True, slots=True)
class Match:
    """One place of a pattern. Line and column count from 1, columns in characters; `text` is the whole line.

    `end` is the column behind its last character, or behind the line where it goes on in the next.
    """

    source: str
    path: str
    line: int
    column: int
    end: int
    text: str
    content_hash: str
    file: str | None = None  # where the file is on disk
    stale: bool | None = None  # whether it was changed since; None where that is unknown
    page: int | None = None  # of a PDF, in whose text lines count


@dataclass(frozen=True, slots=True)
class Matches:
    """The first matches by source, path and place, and how many there are in all."""

    matches: tuple[Match, ...]
    total: int
    files: int


def find_matches(
    pool: Pool, pattern: Pattern, original: Originals = lambda *_: None, longest_s: float = LONGEST_S
) -> Matches:
    """All places of a pattern, of which the first `pool.limit` are given; 0 for all.

    Args:
        pool: where to look.
        pattern: what to look for.
        original: gives the text of a file that chunks hold in another form, as of HTML; else theirs is read.
        longest_s: how long it may take.

    Raises:
        QueryError: it is no pattern, or looking for it takes too long.
    """
    pattern.check()
    patience = Patience.of(longest_s)
    # A filter by symbols takes chunks out of files, so that theirs do not make up a text.
    plain = {} if pool.filters.symbol_kinds else pool.reader.parts.files
    shown: list[Match] = []
    counted: list[File] = []
    total = files = 0
    names = _paths(pool, pattern, patience)
    for start in range(0, len(names), _FILES_A_LOOK):
        texts: list[_Text] = []
        for name in names[start : start + _FILES_A_LOOK]:
            patience.check()
            file = plain.get(name)
            if file is not None and pool.limit and len(shown) == pool.limit:
                counted.append(file)
            else:
                texts.append(_of_rows(pool, name, original) if file is None else _of_file(file))
        for found in _in_texts(texts, pattern, patience):
            total += len(found)
            files += bool(found)
            shown += found[: max(0, pool.limit - len(shown)) if pool.limit else None]
    numbers = list(totals(counted, pattern, patience))
    return Matches(tuple(shown), total + sum(numbers), files + sum(map(bool, numbers)))


def around(match: Match) -> tuple[str, int, int]:
    """The line of a match, or of a long one what is around the match, and where the match begins and ends in that."""
    start, end = match.column - 1, match.end - 1
    if len(match.text) <= _LONGEST_LINE:
        return match.text, start, end
    first = max(0, min(start - _BEFORE, len(match.text) - _LONGEST_LINE))
    return match.text[first : first + _LONGEST_LINE], start - first, end - first


def lines_of(pool: Pool, match: Match, original: Originals = lambda *_: None) -> dict[int, str]:
    """The lines of the file of a match, as indexed, by their numbers."""
    rows = _rows(pool, (match.source, match.path))
    pieces = ((first, text.removesuffix("\n").split("\n")) for first, text in pieces_of(rows, original))
    return {number: line for first, lines in pieces for number, line in enumerate(lines, start=first)}


def _paths(pool: Pool, pattern: Pattern, patience: Patience) -> list[tuple[str, str]]:
    """The files of which a chunk may hold a pattern, in order: also if it was converted, or a line was cut."""
    found: set[tuple[str, str]] = set()
    cut = []
    for batch in (piece.batch for piece in pieces(pool)):
        is_converted = pc.not_equal(
            pc.subtract(batch["end_byte"], batch["start_byte"]), pc.binary_length(batch["text"])
        )
        has_it = holds(batch["text"], pattern, patience)
        is_match = pc.or_(has_it, pc.fill_null(is_converted, fill_value=True))
        hits = batch.filter(is_match)
        found.update(zip(hits["source"].to_pylist(), hits["path"].to_pylist(), strict=True))
        places = batch.select(_COLUMNS).append_column("is_open", pc.invert(pc.ends_with(batch["text"], "\n")))
        cut.append(pa.Table.from_batches([places]))
    return sorted(found | _with_cut_lines(pa.concat_tables(cut))) if cut else []


def _with_cut_lines(chunks: pa.Table) -> set[tuple[str, str]]:
    """The files in which a chunk ends within a line, and another goes on behind it."""
    known = chunks.filter(pc.is_valid(chunks["end_byte"]))
    ends = known.group_by(["source", "path"]).aggregate([("end_byte", "max")])
    is_open = known.filter(known["is_open"]).join(ends, ["source", "path"])
    cut = is_open.filter(pc.less(is_open["end_byte"], is_open["end_byte_max"]))
    return set(zip(cut["source"].to_pylist(), cut["path"].to_pylist(), strict=True))


def _rows(pool: Pool, name: tuple[str, str]) -> list[dict[str, Any]]:
    """The rows of the chunks of a file, in their order."""
    kinds, (source, path) = pool.filters.symbol_kinds, name
    rows = rows_at(pool.reader, path)
    return [row for row in rows if row["source"] == source and (not kinds or row["symbol_kind"] in kinds)]


class _Text(NamedTuple):
    """The text of a file in parts, each with the number of its first line; `pages` are the chunks that say theirs."""

    source: str
    path: str
    content_hash: str
    pieces: Sequence[tuple[int, str]]
    pages: Sequence[Mapping[str, Any]] = ()


def _of_file(file: File) -> _Text:
    source, path, content_hash = (file.value(name) for name in ("source", "path", "content_hash"))
    return _Text(source, path, content_hash, [(file.value("start_line"), file.text.decode())])


def _of_rows(pool: Pool, name: tuple[str, str], original: Originals) -> _Text:
    rows = _rows(pool, name)
    return _Text(*name, rows[0]["content_hash"], pieces_of(rows, original), [row for row in rows if row["pointers"]])


def _in_texts(texts: Sequence[_Text], pattern: Pattern, patience: Patience) -> Iterator[list[Match]]:
    """The matches in each of some files; most have none, which is found out of all together."""
    may_match = iter(pattern.may_be_in([piece for text in texts for _, piece in text.pieces]))
    for text in texts:
        patience.check()
        yield _in_file(text._replace(pieces=[piece for piece in text.pieces if next(may_match)]), pattern)


def _in_file(text: _Text, pattern: Pattern) -> list[Match]:
    """The matches in one file, in their order."""
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
    """The text of a file in parts, each with the number of its first line."""
    row = rows[0]
    if not all(map(_is_span, rows)) and (text := original(row["source"], row["path"], row["content_hash"])) is not None:
        return [(1, text)]
    return _pieces(rows)


def _is_span(row: Mapping[str, Any]) -> bool:
    """Whether the text of a chunk is a part of its file."""
    start, end = row["start_byte"], row["end_byte"]
    return start is not None and end - start == len(row["text"].encode())


def _pieces(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """The text of a file, and the number of its first line; in parts where chunks are no spans of the file, or lack."""
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
    """For each of some files, as many as `pattern.places` of its text.

    Raises:
        QueryError: patience ends.
    """
    for texts in _batches(files):
        patience.check()
        if not pattern.is_regex:
            wanted = pattern.text.encode()
            yield from (text.count(wanted) for text in texts)
        elif _OF_BYTES in pattern.text:
            yield from (len(pattern.places(text.decode())) for text in texts)
        else:
            yield from _of_regex(pa.array(texts, pa.string()), pattern).tolist()


def _batches(files: Sequence[File]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for file in files:
        batch.append(file.text)
        size += len(batch[-1])
        if size >= _TEXTS_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _of_regex(texts: pa.Array, pattern: Pattern) -> NDArray[np.int64]:
    """How many places of a regular expression each text has: shape (texts,)."""
    if pattern.is_over_lines:
        return _marks(texts, pattern)
    split = pc.split_pattern(texts, "\n")  # no pattern matches the empty text that is behind the last
    lines, numbers = split.flatten(), pc.list_parent_indices(split)
    if pc.any(pc.match_substring_regex(texts, "\r")).as_py():
        lines = pc.replace_substring_regex(lines, "\r\\z", "")
    is_match = pattern.matches(lines)
    marks = _marks(lines.filter(is_match), pattern)
    return np.bincount(np.asarray(numbers.filter(is_match)), marks, len(texts)).astype(np.int64)


def _marks(texts: pa.Array, pattern: Pattern) -> NDArray[np.int64]:
    """How many marks each text has that is given one at each match: shape (texts,)."""
    marked = pc.replace_substring_regex(texts, pattern=pattern.regex, replacement=rf"{_MARK}\0")
    longer = pc.subtract(pc.binary_length(marked), pc.binary_length(texts))
    return np.asarray(longer).astype(np.int64)
