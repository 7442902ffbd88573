"""Which files are in the index now, and what they are."""

import re
from typing import NamedTuple

from docindex_dagster.core.schemas import COMMIT, NO_LANGUAGE
from docindex_dagster.stores import lance_table
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_COLUMNS = ["path", "source_type", "language"]
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
        asked = reader.table.search().where(lance_table.among("source", [key])).select(_COLUMNS)
        rows = asked.limit(None).to_arrow()
    columns = (rows[name].to_pylist() for name in _COLUMNS)
    return {
        path: IndexedFile(source_type, language or NO_LANGUAGE)
        for path, source_type, language in zip(*columns, strict=True)
        if source_type != COMMIT
    }


def is_account(path: str, source_type: str) -> bool:
    """Whether a file is such a document, by its path."""
    return source_type == "doc" and _ACCOUNT.search(path) is not None
