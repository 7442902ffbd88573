"""Indexed files as they are on the disk now, each read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.text import read_document


@dataclass(frozen=True)
class OnDisk:
    """A file on the disk; without a hash where it is gone or cannot be read, or where that is unknown."""

    content_hash: str | None = None
    text: str = ""
    is_unknown: bool = False

    @cached_property
    def _lines(self) -> str:
        return f"\n{self.text}\n"

    def lines_of(self, text: str) -> tuple[int, int] | None:
        """The first and the last number of the lines that are a text; None where no lines are."""
        at = self._lines.find(f"\n{text}\n")
        if at < 0:
            return None
        first = self._lines.count("\n", 0, at + 1)
        return first, first + text.count("\n")

    def has_word(self, word: str) -> bool:
        """Whether a name stands anywhere in it."""
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None


class Disk:
    """The files of some sources."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._read: dict[tuple[str, str], OnDisk] = {}

    def read(self, key: str, path: str) -> OnDisk:
        """A file of a source. Of one that is not declared, or whose folder is not there, nothing is known."""
        if (key, path) not in self._read:
            self._read[key, path] = self._file(key, path)
        return self._read[key, path]

    def _file(self, key: str, path: str) -> OnDisk:
        source = self._sources.get(key)
        if source is None or path.startswith(COMMIT_PATH) or not source.path.is_dir():
            return OnDisk(is_unknown=True)
        try:
            decoded, content_hash = read_document(source.path, path, source.most_bytes(name_to_path(path)))
        except OSError:
            return OnDisk()
        return OnDisk(content_hash, decoded.text)
