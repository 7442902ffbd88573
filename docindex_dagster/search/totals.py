"""How many places of a pattern files have, for those of which no place is shown."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.search.patience import Patience
from docindex_dagster.search.scan import Pattern
from docindex_dagster.stores.parts import File

_TEXTS_BYTES = 1 << 20  # of files that are looked at together
_MARK = "x"
_OF_BYTES = r"\C"  # matches a part of a character, which no text is


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
