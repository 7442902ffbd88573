"""The catalog: what is searchable now, derived from the published generation."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

from docindex_dagster.chunking.table_rules import is_above_threshold, phrase
from docindex_dagster.core import tables
from docindex_dagster.core.files import atomic_write, stamp
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import failures
from docindex_dagster.sources.history import REPOSITORY, RepositoryStatistics, from_json
from docindex_dagster.stores.generation import read_generation


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A searchable source. `text_bytes` is the size of the chunks' text; `changed_at` is UTC in ISO 8601."""

    source: str
    files: int
    chunks: int
    text_bytes: int
    nodes: int
    edges: int
    languages: dict[str, int]
    version: str  # a hash of the content
    revision: str | None
    changed_at: str
    commits: int  # searchable commits
    repository: RepositoryStatistics | None = None  # for git sources
    fallbacks: int = 0  # files chunked as plain text because they could not be parsed
    lacks_of_graph: bool = False  # an extractor failed or ran out of time
    graph_failures: int = 0  # files with only their definitions in the graph
    unreadable_configurations: int = 0  # files that configure import paths and cannot be read
    unlinked: int | None = None  # files whose edges are still incomplete; None if the graph is complete


@dataclass(frozen=True, slots=True)
class _Line:
    """An entry as stored, with the stamp of the table from which the repository's figures were read."""

    entry: CatalogEntry
    commits_table: tuple[int, ...] | None


_COPIED = [field.name for field in fields(CatalogEntry) if field.name not in {"source", "repository"}]
# The stamp of a source's table, and the figures in it.
_Figures = tuple[tuple[int, ...] | None, RepositoryStatistics | None]


def entries(layout: Layout) -> list[CatalogEntry]:
    """Return the catalog of the published generation; empty if nothing is published."""
    return [line.entry for line in _lines(layout)]


def entries_of(settings: Settings) -> list[CatalogEntry]:
    """Return the catalog of the generation that searches on this machine use."""
    return entries(Layout(settings.home))


def rebuild(layout: Layout, owner: str) -> list[CatalogEntry]:
    """Write the catalog if it differs from the one on disk, and return it.

    Publications do not wait for this. `CURRENT` is read under the catalog's lock, so the last of several processes to
    write has read the last publication.
    """
    with exclusive(layout.catalog_lock, owner, on_wait=lambda _: None):
        lines = _lines(layout)
        data = orjson.dumps(lines, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if not layout.catalog.exists() or layout.catalog.read_bytes() != data:
            with atomic_write(layout.catalog) as temporary:
                temporary.write_bytes(data)
    return [line.entry for line in lines]


def _lines(layout: Layout) -> list[_Line]:
    generation = read_generation(layout)
    known = _figures_on_disk(layout)
    lines = []
    for key, source in generation.sources.items() if generation else ():
        written, figures = _figures(layout, key, known)
        copied = {name: getattr(source, name) for name in _COPIED}
        lines.append(_Line(CatalogEntry(key, **copied, repository=figures), written))
    return lines


def _figures(layout: Layout, key: str, known: Mapping[str, _Figures]) -> _Figures:
    """Return the figures of a source. Its table is read only if it has changed since the catalog on disk."""
    table = layout.table("commits", key)
    written = stamp(table)  # before reading, so that a table replaced in between is read again next time
    found = known.get(key, (None, None))
    if written in {None, found[0]}:
        return found
    return written, from_json(tables.metadata_value(table, REPOSITORY))


def _figures_on_disk(layout: Layout) -> dict[str, _Figures]:
    """Return the repository figures in the catalog on disk; empty if it is damaged or from another version."""
    try:
        lines = orjson.loads(layout.catalog.read_bytes())
        return {line["entry"]["source"]: _parsed(line) for line in lines}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _parsed(line: dict[str, Any]) -> _Figures:
    repository, written = line["entry"]["repository"], line["commits_table"]
    return written and tuple(written), repository and RepositoryStatistics(**repository)


def version(found: list[CatalogEntry]) -> str:
    """Return a hash of what is searchable and of the repositories' figures. It does not depend on the time."""
    described = [(entry.source, entry.version, entry.repository and asdict(entry.repository)) for entry in found]
    return digest(json.dumps(described).encode())


def index_limitations(entry: CatalogEntry) -> list[str]:
    """Return a phrase for each limitation of a source's index. None of them is an error."""
    return [
        *([phrase(entry.fallbacks, entry.files)] if entry.fallbacks else ()),
        *([failures.phrase(entry.graph_failures, entry.files)] if entry.graph_failures else ()),
        *([failures.phrase_unreadable(entry.unreadable_configurations)] if entry.unreadable_configurations else ()),
        *([failures.phrase_unlinked(entry.unlinked, entry.files)] if entry.unlinked else ()),
        *(["its graph is incomplete"] if _is_incomplete(entry) and not entry.graph_failures else ()),
    ]


def is_degraded(entry: CatalogEntry) -> bool:
    """Return whether the limitations are so large that a user should act."""
    return _is_incomplete(entry) or any(
        is_above_threshold(files, entry.files) for files in (entry.fallbacks, entry.graph_failures)
    )


def _is_incomplete(entry: CatalogEntry) -> bool:
    """Return whether the graph stays incomplete without another run: not while its own run is still linking."""
    return entry.lacks_of_graph and entry.unlinked is None


def top_languages(entry: CatalogEntry, most: int) -> str:
    """Return the languages with the most chunks, most frequent first."""
    return ", ".join(sorted(entry.languages, key=lambda name: (-entry.languages[name], name))[:most])
