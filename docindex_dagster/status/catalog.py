"""The catalogue: what is searchable now, rebuilt from the published generation."""

import json
from dataclasses import asdict, dataclass, fields

from docindex_dagster.chunking.fallbacks import are_many, phrase
from docindex_dagster.core import tables
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.graph import failures
from docindex_dagster.sources.repository import REPOSITORY, RepositoryFigures, from_json
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


_COPIED = [field.name for field in fields(CatalogEntry) if field.name not in {"source", "repository"}]


def entries(layout: Layout) -> list[CatalogEntry]:
    """The catalogue of the published generation; empty where nothing is published."""
    generation = read_generation(layout)
    published = generation.sources.items() if generation else ()
    return [
        CatalogEntry(key, **{name: getattr(source, name) for name in _COPIED}, repository=_repository(layout, key))
        for key, source in published
    ]


def _repository(layout: Layout, key: str) -> RepositoryFigures | None:
    return from_json(tables.metadata_value(layout.table("commits", key), REPOSITORY))


def rebuild(layout: Layout) -> list[CatalogEntry]:
    """Write the catalogue anew if it differs from the one on disk, and return it."""
    found = entries(layout)
    text = json.dumps([asdict(entry) for entry in found], indent=1, ensure_ascii=False) + "\n"
    if not layout.catalog.exists() or layout.catalog.read_text(encoding="utf-8") != text:
        with replacing(layout.catalog) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return found


def version(found: list[CatalogEntry]) -> str:
    """A hash of what is searchable and of the repositories' figures; the clock plays no part."""
    described = [(entry.source, entry.version, entry.repository and asdict(entry.repository)) for entry in found]
    return digest(json.dumps(described).encode())


def lacks(entry: CatalogEntry) -> list[str]:
    """What is worse in the index of a source than it could be, a phrase each; nothing of it is wrong."""
    return [
        *([phrase(entry.fallbacks, entry.files)] if entry.fallbacks else ()),
        *([failures.phrase(entry.graph_failures, entry.files)] if entry.graph_failures else ()),
        *(["its graph is not complete"] if entry.lacks_of_graph and not entry.graph_failures else ()),
    ]


def is_degraded(entry: CatalogEntry) -> bool:
    """Whether so much is worse that a user should look."""
    return entry.lacks_of_graph or any(
        are_many(files, entry.files) for files in (entry.fallbacks, entry.graph_failures)
    )


def top_languages(entry: CatalogEntry, most: int) -> str:
    """The languages of the most chunks, the most frequent one first."""
    return ", ".join(sorted(entry.languages, key=lambda name: (-entry.languages[name], name))[:most])
