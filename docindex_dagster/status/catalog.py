"""The catalogue: what is searchable now, rebuilt from the published generation."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

from docindex_dagster.chunking.table_rules import are_many, phrase
from docindex_dagster.core import tables
from docindex_dagster.core.files import replacing, stamp
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import failures
from docindex_dagster.sources.history import REPOSITORY, RepositoryFigures, from_json
from docindex_dagster.stores.generation import read_generation


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One searchable source. Sizes are those of the chunks' text in bytes; `changed_at` is UTC in ISO 8601."""

    source: str
    files: int
    chunks: int
    text_bytes: int
    nodes: int
    edges: int
    languages: dict[str, int]
    version: str  # of its content: equal content has an equal version
    revision: str | None
    changed_at: str
    commits: int  # that can be searched
    repository: RepositoryFigures | None = None  # of a git source
    fallbacks: int = 0  # files that were cut as text, since they could not be parsed
    lacks_of_graph: bool = False  # an extractor failed, or ran out of time
    graph_failures: int = 0  # files of which the graph has definitions alone
    unreadable_configurations: int = 0  # files that say where imports lead and cannot be read
    unlinked: int | None = None  # files whose edges its graph lacks in part as yet; None: it is complete


@dataclass(frozen=True, slots=True)
class _Line:
    """An entry as the file has it, with the stamp of the table that the figures of its repository are from."""

    entry: CatalogEntry
    commits_table: tuple[int, ...] | None


_COPIED = [field.name for field in fields(CatalogEntry) if field.name not in {"source", "repository"}]
# The stamp of a source's table, and the figures that stand there.
_Figures = tuple[tuple[int, ...] | None, RepositoryFigures | None]


def entries(layout: Layout) -> list[CatalogEntry]:
    """The catalogue of the published generation; empty where nothing is published."""
    return [line.entry for line in _lines(layout)]


def entries_of(settings: Settings) -> list[CatalogEntry]:
    """The catalogue of what searches on this machine answer from."""
    return entries(Layout(settings.home))


def rebuild(layout: Layout, owner: str) -> list[CatalogEntry]:
    """Write the catalogue anew if it differs from the one on disk, and return it.

    No publication waits for it. `CURRENT` is read under the lock of the catalogue, so that of two processes the one
    that writes last has read what was published last.
    """
    with exclusive(layout.catalog_lock, owner, on_wait=lambda _: None):
        lines = _lines(layout)
        data = orjson.dumps(lines, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if not layout.catalog.exists() or layout.catalog.read_bytes() != data:
            with replacing(layout.catalog) as temporary:
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
    """The figures of a source; its table is opened only if it is another than that of the catalogue on disk."""
    table = layout.table("commits", key)
    written = stamp(table)  # before it is read: one that is replaced meanwhile is read again the next time
    found = known.get(key, (None, None))
    if written in {None, found[0]}:
        return found
    return written, from_json(tables.metadata_value(table, REPOSITORY))


def _figures_on_disk(layout: Layout) -> dict[str, _Figures]:
    """What the catalogue on disk says of repositories; nothing where it is damaged or another version's."""
    try:
        lines = orjson.loads(layout.catalog.read_bytes())
        return {line["entry"]["source"]: _parsed(line) for line in lines}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _parsed(line: dict[str, Any]) -> _Figures:
    repository, written = line["entry"]["repository"], line["commits_table"]
    return written and tuple(written), repository and RepositoryFigures(**repository)


def version(found: list[CatalogEntry]) -> str:
    """A hash of what is searchable and of the repositories' figures; the clock plays no part."""
    described = [(entry.source, entry.version, entry.repository and asdict(entry.repository)) for entry in found]
    return digest(json.dumps(described).encode())


def lacks(entry: CatalogEntry) -> list[str]:
    """What is worse in the index of a source than it could be, a phrase each; nothing of it is wrong."""
    return [
        *([phrase(entry.fallbacks, entry.files)] if entry.fallbacks else ()),
        *([failures.phrase(entry.graph_failures, entry.files)] if entry.graph_failures else ()),
        *([failures.phrase_unreadable(entry.unreadable_configurations)] if entry.unreadable_configurations else ()),
        *([failures.phrase_unlinked(entry.unlinked, entry.files)] if entry.unlinked else ()),
        *(["its graph is not complete"] if _is_incomplete(entry) and not entry.graph_failures else ()),
    ]


def is_degraded(entry: CatalogEntry) -> bool:
    """Whether so much is worse that a user should look."""
    return _is_incomplete(entry) or any(
        are_many(files, entry.files) for files in (entry.fallbacks, entry.graph_failures)
    )


def _is_incomplete(entry: CatalogEntry) -> bool:
    """Whether the graph stays incomplete unless another run completes it: not while its own run is still at it."""
    return entry.lacks_of_graph and entry.unlinked is None


def top_languages(entry: CatalogEntry, most: int) -> str:
    """The languages of the most chunks, the most frequent one first."""
    return ", ".join(sorted(entry.languages, key=lambda name: (-entry.languages[name], name))[:most])
