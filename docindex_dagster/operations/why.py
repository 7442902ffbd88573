"""Why: whether a file is indexed, and if not, which rule excludes it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from docindex_dagster.chunking.chunkers import load_choice
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
    """Whether a path is indexed, as a sentence, and the number of its searchable chunks."""

    source: str
    path: str
    answer: str
    chunks: int
    problem: str | None = None  # why it was read only in part, or as plain text

    @property
    def findable(self) -> str:
        """How much of the file is searchable, as a sentence."""
        if not self.chunks:
            return "no chunks are searchable"
        found = "1 chunk is searchable" if self.chunks == 1 else f"{self.chunks:,} chunks are searchable"
        return f"{found}; the file was read only in part, or as plain text ({self.problem})" if self.problem else found


def why(settings: Settings, request: WhyRequest) -> PathAnswer:
    """Explain whether a file or folder is indexed, and if not, which rule excludes it.

    Raises:
        SourceError: The path is in no source or in several, or is a source's own folder.
    """
    text = request.path
    if "\0" in text:
        raise SourceError("invalid path: it contains a NUL character")
    source, name = _resolve_path(settings, text)
    if name in {"", "."}:
        raise SourceError(f"{text} is the folder of {source.key}; expected a file in it")
    return explain_file(settings, source, name)


def explain_file(settings: Settings, source: Source, name: str) -> PathAnswer:
    """Explain whether a file, given by its name in a source, is indexed.

    Raises:
        SourceError: The source cannot be listed.
    """
    explanation = explanation_of(source, source.file(name))
    chunks = _indexed_chunks(settings, source, explanation.path)
    problem = chunks[0]["fallback"] if chunks else None
    answer = explanation.sentence + _chunker(settings, explanation)
    return PathAnswer(source.key, explanation.path, answer, len(chunks), problem)


def _chunker(settings: Settings, found: Explanation) -> str:
    """Return the configured chunker of a file as a phrase, if it has one."""
    chosen = found.loader and load_choice(settings.chunking.chunkers).name_for(found.path, found.loader)
    return f", chunked by {chosen} (chunking.chunkers)" if chosen != found.loader else ""


def _resolve_path(settings: Settings, text: str) -> tuple[Source, str]:
    """Return the source of a path, and the path's name in it: "." for the source's own folder.

    Raises:
        SourceError: The path is in no source, or in several.
    """
    reader = _open_published(settings)
    declared = registry.sources(settings)
    for reading in readings_of(settings, text, reader.generation.sources if reader else ()):
        found = _sources_with(declared, reader, reading) if reading.path or reading.id else {}
        if len(found) > 1:
            places = " or ".join(str(declared[key].file(name)) for key, name in found.items())
            raise SourceError(f"{text} is ambiguous, since {' and '.join(found)} have it: use {places}")
        for key, name in found.items():
            return declared[key], name
    if around := registry.locate_path(settings, Path(text)):
        return around
    # Whether the path exists is not told: a symlink of a checkout may lead it anywhere.
    raise SourceError(f"{text} is not in any source; `docindex source list` lists the sources")


def _sources_with(declared: Mapping[str, Source], reader: Reader | None, reading: Reference) -> dict[str, str]:
    """Return the sources that have a path, on disk or in the index, with its name; branches only if no other has it."""
    keys = [key for key in declared if reading.source in {None, key}]
    is_inside = bool(reading.path) and not reading.path.startswith(("/", ".."))
    found = {key: reading.path for key in keys if is_inside and declared[key].mode(reading.path) is not None}
    with suppress(StoreError, QueryError):
        rows = look_up(reader, [reading], keys)[1] if reader and keys else []
        found |= {row["source"]: row["path"] for row in rows if not row["path"].startswith(COMMIT_PATH)}
    return {key: name for key, name in found.items() if not is_branch(key)} or found


def _open_published(settings: Settings) -> Reader | None:
    """Open the published index; None if there is none or it cannot be read."""
    with suppress(StoreError):
        return open_reader(Layout(settings.home))
    return None


def _indexed_chunks(settings: Settings, source: Source, name: str) -> list[dict[str, Any]]:
    reader = _open_published(settings)
    with suppress(StoreError, QueryError):
        return look_up(reader, [Reference(name)], (source.key,))[1] if reader else []
    return []
