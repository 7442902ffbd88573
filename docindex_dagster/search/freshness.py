"""Where the files of results are on disk, and whether they are still those that were indexed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.matches import Match
from docindex_dagster.search.model import Hit
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, read_beneath

_Result = TypeVar("_Result", Hit, Match)


def located(results: Sequence[_Result], sources: Mapping[str, Source]) -> list[_Result]:
    """The same results, each saying where its file is, and whether that differs from what was indexed.

    Neither is said of a commit, and where the source is no longer declared, or its folder is not there.
    """
    differs = cache(_differs)
    found = []
    for result in results:
        source = sources.get(result.source)
        if result.path.startswith(COMMIT_PATH) or source is None or not source.path.is_dir():
            found.append(result)
            continue
        file = str(source.path / os.fsdecode(name_to_path(result.path)))
        found.append(replace(result, file=file, stale=differs(source, result.path, result.content_hash)))
    return found


def _differs(source: Source, name: str, content_hash: str) -> bool:
    try:
        data = read_beneath(os.fsencode(source.path), name_to_path(name), source.max_file_bytes + 1)
    except OSError:  # gone, or not to be read any more
        return True
    return digest(data) != content_hash
