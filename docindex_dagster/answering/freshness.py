"""Whether cited lines are still what they were: of a file that changed, the lines themselves are looked for."""

import os
from collections.abc import Mapping
from functools import cache

from docindex_dagster.answering.citations import Changes
from docindex_dagster.answering.passages import Passage
from docindex_dagster.answering.quotes import flat
from docindex_dagster.core.printable import visible
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, read_beneath
from docindex_dagster.sources.text import decode


def changes_on_disk(sources: Mapping[str, Source]) -> Changes:
    """Says whether lines of a passage have gone from their file; they may stand elsewhere in it.

    Files are read once, so it is made for each answer anew.
    """

    @cache
    def text(key: str, path: str) -> str:
        source, name = sources[key], name_to_path(path)
        try:
            return flat(visible(decode(read_beneath(os.fsencode(source.path), name, source.most_bytes(name))).text))
        except OSError:
            return ""

    def changes(passage: Passage, first: int, last: int) -> bool | None:
        if not passage.stale or passage.source not in sources:
            return passage.stale
        return flat(passage.lines(first, last)) not in text(passage.source, passage.path)

    return changes
