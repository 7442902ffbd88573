"""Which file of which source a path means that a user typed, and whether it is indexed.

A path may be one on disk, or one that a search prints: below the folder of a source.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docindex_dagster.chunking.chunkers import choice_of
from docindex_dagster.core.errors import QueryError, SourceError, StoreError
from docindex_dagster.core.keys import is_branch
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects.cells import homes
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.sources.why import Explanation, why
from docindex_dagster.stores.together import open_together


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """Whether a path is indexed, in a sentence, and how many chunks of it can be found."""

    source: str
    path: str
    answer: str
    chunks: int
    problem: str | None = None  # why it was not read whole, or only as text

    @property
    def findable(self) -> str:
        """How much of it can be found, in a sentence."""
        if not self.chunks:
            return "nothing of it can be found"
        found = f"{self.chunks:,} chunk{'' if self.chunks == 1 else 's'} of it can be found now"
        return f"{found}; it was not read whole, or as text alone ({self.problem})" if self.problem else found


def explain(settings: Settings, path: Path) -> PathAnswer:
    """Say whether a file or folder is indexed, and if not, which rule keeps it out.

    Raises:
        SourceError: it lies in no source or below several, or is a source's own folder.
    """
    if "\0" in str(path):
        raise SourceError("no path holds a NUL character")
    source, place = _located(settings, path)
    if place == source.path:
        raise SourceError(f"{path} is the folder of {source.key}; name a file in it")
    explanation = why(source, place)
    chunks = _indexed_chunks(settings, source, explanation.path)
    problem = chunks[0]["fallback"] if chunks else None
    answer = explanation.sentence + _chunker(settings, explanation)
    return PathAnswer(source.key, explanation.path, answer, len(chunks), problem)


def _chunker(settings: Settings, found: Explanation) -> str:
    """Which chunker of the settings cuts a file, if one does."""
    chosen = found.loader and choice_of(settings.chunking.chunkers).name_for(found.path, found.loader)
    return f", cut by the chunker {chosen} of chunking.chunkers" if chosen != found.loader else ""


def as_indexed(settings: Settings, reference: str) -> str:
    """A reference whose path leads to a file on disk, as the index writes it: relative to its source."""
    return in_source(settings, reference)[1]


def in_source(settings: Settings, reference: str) -> tuple[str | None, str]:
    """The source of a reference whose path leads to a file on disk, and the reference as the index writes it."""
    path, colon, line = reference.rpartition(":") if not Path(reference).exists() else (reference, "", "")
    around = registry.containing(settings, Path(path)) if path and Path(path).exists() else None  # "" would be "."
    if around is None:
        return None, path_to_name(os.fsencode(reference)).removeprefix("./")
    return around.key, path_to_name(os.fsencode(_normal(Path(path)).relative_to(around.path))) + colon + line


def _located(settings: Settings, path: Path) -> tuple[Source, Path]:
    """The source that a path lies in, and the path on disk.

    A path that leads to nothing in a source from here may be one that a search prints: below one of the sources.

    Raises:
        SourceError: it lies in no source, or below several.
    """
    around = registry.containing(settings, path)
    is_here = path.is_absolute() or (around is not None and os.path.lexists(path))
    below = [] if is_here else _holding(settings, path)
    if len(below) > 1:
        places = " or ".join(str(source.path / path) for source in below)
        raise SourceError(f"{path} is in {' and in '.join(source.key for source in below)}: say {places}")
    if below:
        return below[0], _normal(below[0].path / path)
    if around is None:
        what = f"{path} lies in no source" if os.path.lexists(path) else f"there is no {path} here or below a source"
        raise SourceError(f"{what}; `docindex source list` shows them")
    return around, _normal(path)


def _holding(settings: Settings, path: Path) -> list[Source]:
    """The sources below which a path leads to a file, or in which it is indexed; not branches where others do."""
    indexed = _sources_of_indexed(settings, path)
    declared = registry.sources(settings).values()
    found = [source for source in declared if os.path.lexists(source.path / path) or source.key in indexed]
    return [source for source in found if not is_branch(source.key)] or found


def _sources_of_indexed(settings: Settings, path: Path) -> set[str]:
    """The sources in which a path is indexed, also if its file is gone."""
    try:
        reader = open_together(homes(settings))
        found = find_chunks(reader, path_to_name(os.fsencode(os.path.normpath(path))))
    except (StoreError, QueryError):
        return set()
    return {row["source"] for row in found}


def _indexed_chunks(settings: Settings, source: Source, name: str) -> list[dict[str, Any]]:
    try:
        found = find_chunks(open_together(homes(settings)), name, (source.key,))
    except (StoreError, QueryError):
        return []
    return [row for row in found if row["path"] == name]


def _normal(path: Path) -> Path:
    """A path from the root, without dots; links stay as they are."""
    return Path(os.path.normpath(path.absolute()))
