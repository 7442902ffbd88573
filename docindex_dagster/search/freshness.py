"""Paths of results on disk, and whether the files and their sources changed since indexing."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from docindex_dagster.core import tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.matches import Match, Originals
from docindex_dagster.search.model import CHANGED, Hit
from docindex_dagster.sources.classify import classify_name, is_converted
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import Secret, mask, parse_masked
from docindex_dagster.sources.staleness import Edits, differs, find_edits
from docindex_dagster.sources.text import read_document

_MAX_LISTED = 3  # maximum number of sources to list, and of paths per kind of change
_Result = TypeVar("_Result", Hit, Match)


def with_locations(results: Sequence[_Result], sources: Mapping[str, Source]) -> list[_Result]:
    """Return the results with the path on disk and whether the file differs from the indexed one.

    Both stay unset for commits, undeclared sources, and sources whose folder is missing.
    """
    is_other, file_of = cache(differs), file_resolver(sources)
    found = []
    for result in results:
        file = file_of(result.source, result.path)
        if file is None:
            found.append(result)
            continue
        stale = is_other(sources[result.source], result.path, result.content_hash)
        found.append(replace(result, file=file, stale=stale))
    return found


def file_resolver(sources: Mapping[str, Source]) -> Callable[[str, str], str | None]:
    """Return a function from source and path to the path on disk; None for commits and sources without a folder."""

    @cache
    def folder(key: str) -> Path | None:
        return sources[key].path if key in sources and sources[key].path.is_dir() else None

    def file(key: str, path: str) -> str | None:
        root = None if path.startswith(COMMIT_PATH) else folder(key)
        return None if root is None else str(root / os.fsdecode(name_to_path(path)))

    return file


def folder_notes(keys: Iterable[str], sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield a sentence for each source with a folder on this machine: its paths are relative to that folder."""
    for key in dict.fromkeys(keys):
        if key in sources and sources[key].path.is_dir():
            yield f"Paths of {key} are relative to {sources[key].path}."


def changed_files(rows: Iterable[Mapping[str, Any]], sources: Mapping[str, Source]) -> set[tuple[str, str]]:
    """Return the source and path of each file that is known to differ from the indexed one."""
    indexed = {(row["source"], row["path"]): row["content_hash"] for row in rows}
    return {
        (key, path)
        for (key, path), content_hash in indexed.items()
        if not path.startswith(COMMIT_PATH)
        and key in sources
        and sources[key].path.is_dir()
        and differs(sources[key], path, content_hash)
    }


def change_notes(layout: Layout, sources: Iterable[Source], budget_s: float) -> Iterator[str]:
    """Yield one sentence for each of the first few sources that changed since they were indexed.

    Args:
        layout: of the home with their tables.
        sources: to check, most important first. Sources that docindex clones are skipped.
        budget_s: total time in seconds; sources beyond it are not checked.
    """
    ends_at = time.monotonic() + budget_s
    found: list[str] = []
    for source in sources:
        if time.monotonic() >= ends_at:
            break
        if source.remote is None:
            edits = find_edits(layout.table("discovered_files", source.key), source, ends_at)
            found += [] if edits.is_empty else [_note(source.key, edits)]
    yield from found[:_MAX_LISTED]
    more = len(found) - _MAX_LISTED
    if more > 0:
        yield f"{more:,} more source{'s have' if more > 1 else ' has'} changed since indexing"


def _note(key: str, edits: Edits) -> str:
    kinds = (("changed", edits.changed), ("new", edits.new), ("gone", edits.gone))
    details = "; ".join(f"{kind}: {_list(paths)}" for kind, paths in kinds if paths)
    return f"{key} has {CHANGED} ({details}). `docindex index` updates it"


def _list(paths: Sequence[str]) -> str:
    more = len(paths) - _MAX_LISTED
    return ", ".join(paths[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def original_texts(layout: Layout, sources: Mapping[str, Source]) -> Originals:
    """Return a function that returns the text of unchanged files, with their secrets masked."""
    masked = cache(lambda key: _masked(layout, key))

    def text(key: str, path: str, content_hash: str) -> str | None:
        source, secrets = sources.get(key), masked(key).get((path, content_hash))
        if source is None or secrets is None or is_converted(classify_name(name_to_path(path))):
            return None
        try:
            decoded, found_hash = read_document(source.folder(), path, source.max_file_bytes)
        except (OSError, SourceError):
            return None
        return mask(decoded.text, secrets) if found_hash == content_hash else None

    return text


def _masked(layout: Layout, key: str) -> dict[tuple[str, str], tuple[Secret, ...]]:
    """Return the secrets of each indexed file by path and content hash."""
    files = tables.read(layout.table("discovered_files", key))
    if files is None:
        return {}
    columns = (files[name].to_pylist() for name in ("path", "content_hash", "masked"))
    return {(path, content): parse_masked(rows) or () for path, content, rows in zip(*columns, strict=True) if content}
