"""Why: whether a file is indexed, and if not, which rule excludes it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from docindex_dagster.chunking.chunkers import choice_of
from docindex_dagster.core.errors import QueryError, SourceError, StoreError
from docindex_dagster.core.layout import Layout, is_branch
from docindex_dagster.core.references import Reference
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.core.settings import Settings
from docindex_dagster.operations.fields import RawText, Request
from docindex_dagster.search.lookup import look_up, readings_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.explanation import Explanation
from docindex_dagster.sources.explanation import why as explanation_of
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.reader import Reader, open_reader


class WhyRequest(Request):
    """Explain whether a file or folder is indexed."""

    path: RawText = Field(description="A file or folder, on disk or as `search` prints it.")


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """Whether a path is indexed, in a sentence, and how many of its chunks can be found."""

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


def why(settings: Settings, request: WhyRequest) -> PathAnswer:
    """Explain whether a file or folder is indexed, and if not, which rule excludes it.

    Raises:
        SourceError: it lies in no source or in several, or is a source's own folder.
    """
    text = request.path
    if "\0" in text:
        raise SourceError("no path holds a NUL character")
    source, name = _located(settings, text)
    if name in {"", "."}:
        raise SourceError(f"{text} is the folder of {source.key}; name a file in it")
    return explain_file(settings, source, name)


def explain_file(settings: Settings, source: Source, name: str) -> PathAnswer:
    """Explain the same for a file by its name in a source.

    Raises:
        SourceError: the source cannot be listed.
    """
    explanation = explanation_of(source, source.file(name))
    chunks = _indexed_chunks(settings, source, explanation.path)
    problem = chunks[0]["fallback"] if chunks else None
    answer = explanation.sentence + _chunker(settings, explanation)
    return PathAnswer(source.key, explanation.path, answer, len(chunks), problem)


def _chunker(settings: Settings, found: Explanation) -> str:
    """Which chunker of the settings cuts a file, if one does."""
    chosen = found.loader and choice_of(settings.chunking.chunkers).name_for(found.path, found.loader)
    return f", cut by the chunker {chosen} of chunking.chunkers" if chosen != found.loader else ""


def _located(settings: Settings, text: str) -> tuple[Source, str]:
    """Return the source of a path, and the name of the path in it: "." for the source's own folder.

    Raises:
        SourceError: it lies in no source, or in several.
    """
    reader = _published(settings)
    declared = registry.sources(settings)
    for reading in readings_of(settings, text, reader.generation.sources if reader else ()):
        found = _holding(declared, reader, reading) if reading.path or reading.id else {}
        if len(found) > 1:
            places = " or ".join(str(declared[key].file(name)) for key, name in found.items())
            raise SourceError(f"{text} is in {' and in '.join(found)}: say {places}")
        for key, name in found.items():
            return declared[key], name
    if around := registry.located(settings, Path(text)):
        return around
    what = f"{text} lies in no source" if os.path.lexists(text) else f"there is no {text} here or below a source"
    raise SourceError(f"{what}; `docindex source list` shows them")


def _holding(declared: Mapping[str, Source], reader: Reader | None, reading: Reference) -> dict[str, str]:
    """Return the sources that have a path, on disk or in the index, with its name; not branches where others do."""
    keys = [key for key in declared if reading.source in {None, key}]
    is_inside = bool(reading.path) and not reading.path.startswith(("/", ".."))
    found = {key: reading.path for key in keys if is_inside and os.path.lexists(declared[key].file(reading.path))}
    with suppress(StoreError, QueryError):
        rows = look_up(reader, [reading], keys)[1] if reader and keys else []
        found |= {row["source"]: row["path"] for row in rows if not row["path"].startswith(COMMIT_PATH)}
    return {key: name for key, name in found.items() if not is_branch(key)} or found


def _published(settings: Settings) -> Reader | None:
    """Return the published index; None where there is none or it cannot be read."""
    with suppress(StoreError):
        return open_reader(Layout(settings.home))
    return None


def _indexed_chunks(settings: Settings, source: Source, name: str) -> list[dict[str, Any]]:
    reader = _published(settings)
    with suppress(StoreError, QueryError):
        return look_up(reader, [Reference(name)], (source.key,))[1] if reader else []
    return []
