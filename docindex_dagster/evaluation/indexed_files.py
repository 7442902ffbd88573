"""Which files are in the index now, and what they are."""

import re
from typing import NamedTuple

from docindex_dagster.core.schemas import COMMIT, NO_LANGUAGE
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_COLUMNS = ("path", "source_type", "language")
_ACCOUNT = re.compile(
    r"(?:^|/)(?:change[-_]?(?:s|log|logs)|history|news|releases?|release[-_]?notes?|whats[-_]?new|unreleased)"
    r"(?:[-_.\d][^/]*)?(?:/|$)",
    re.IGNORECASE,
)


class IndexedFile(NamedTuple):
    """What a file is for, and the language that it is in."""

    source_type: str
    language: str


def indexed_files(reader: Reader, key: str) -> dict[str, IndexedFile]:
    """The files of a source by their paths; its commits are none.

    Raises:
        DamagedStoreError: the table cannot be read.
    """
    with reading_stores():
        rows = [row for part, at in reader.parts.of_source(key) for row in part.values(_COLUMNS, at)]
    return {
        path: IndexedFile(source_type, language or NO_LANGUAGE)
        for path, source_type, language in rows
        if source_type != COMMIT
    }


def is_account(path: str, source_type: str) -> bool:
    """Whether a file is such a document, by its path."""
    return source_type == "doc" and _ACCOUNT.search(path) is not None
