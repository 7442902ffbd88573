"""Where the files of results are on disk, and whether they and their sources are still as they were indexed."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.matches import Match
from docindex_dagster.search.model import Hit
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.staleness import Edits, differs, edits_since

_NAMED = 3  # paths of a kind, and sources

_Result = TypeVar("_Result", Hit, Match)


def located(results: Sequence[_Result], sources: Mapping[str, Source]) -> list[_Result]:
    """The same results, each saying where its file is, and whether that differs from what was indexed.

    Neither is said of a commit, and where the source is no longer declared, or its folder is not there.
    """
    is_other = cache(differs)
    found = []
    for result in results:
        source = sources.get(result.source)
        if result.path.startswith(COMMIT_PATH) or source is None or not source.path.is_dir():
            found.append(result)
            continue
        file = str(source.path / os.fsdecode(name_to_path(result.path)))
        found.append(replace(result, file=file, stale=is_other(source, result.path, result.content_hash)))
    return found


def changed_files(rows: Iterable[Mapping[str, Any]], sources: Mapping[str, Source]) -> set[tuple[str, str]]:
    """The source and path of each file among chunks that differs from what was indexed, where that can be known."""
    indexed = {(row["source"], row["path"]): row["content_hash"] for row in rows}
    return {
        (key, path)
        for (key, path), content_hash in indexed.items()
        if not path.startswith(COMMIT_PATH)
        and key in sources
        and sources[key].path.is_dir()
        and differs(sources[key], path, content_hash)
    }


def notes_of_edits(layout: Layout, sources: Iterable[Source], budget_s: float) -> Iterator[str]:
    """What to say of sources that have changed since they were indexed: a sentence each, for the first few.

    Args:
        layout: where their tables lie.
        sources: to look at, the most important first. Of one that docindex clones, nothing is known here.
        budget_s: seconds for all of them; those that there is no time for are not looked at.
    """
    ends_at = time.monotonic() + budget_s
    found: list[str] = []
    for source in sources:
        if time.monotonic() >= ends_at:
            break
        if source.remote is None:
            edits = edits_since(layout.table("discovered_files", source.key), source, ends_at)
            found += [] if edits.are_none else [_note(source.key, edits)]
    yield from found[:_NAMED]
    more = len(found) - _NAMED
    if more > 0:
        yield f"{more:,} more source{'s have' if more > 1 else ' has'} changed since indexing"


def _note(key: str, edits: Edits) -> str:
    kinds = (("changed", edits.changed), ("new", edits.new), ("gone", edits.gone))
    listed = "; ".join(f"{kind}: {_some(paths)}" for kind, paths in kinds if paths)
    return f"{key} has changed since it was indexed ({listed}): `docindex index` brings it up to date"


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
