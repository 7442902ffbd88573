"""Generations and the files that name them. Readers use the generation that `CURRENT` names."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import orjson

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, NODES, TRIPLES, embeddings_schema
from docindex_dagster.stores import analysis, tantivy_index
from docindex_dagster.stores.damage import denied

SCHEMA_VERSION = digest_parts(
    *(str(schema) for schema in (CHUNKS, NODES, TRIPLES, embeddings_schema(2))),
    repr(tantivy_index.FIELDS),
    analysis.TERMS_VERSION,
    "rows 1",  # the format of the row files
)
"""A hash of the schemas, so that no schema change is missed; also the version of the LanceDB table.

Stores of another version are rebuilt alongside the published ones; see `takeover`.
"""
_CACHE_SIZE = 4  # `CURRENT`, the previous generation, `NEXT`, and a replacement for one of them


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """The Parquet files of a source's graph: names within the graph folder."""

    nodes: str
    triples: str


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """The entry of a source in a generation."""

    version: str  # of its chunks and vectors: equal content has equal versions
    revision: str | None  # the version from the settings, or the last commit for git
    graph: GraphFiles | None
    files: int
    chunks: int
    text_bytes: int
    nodes: int
    edges: int
    languages: dict[str, int]  # chunks of files by language
    changed_at: str  # UTC, ISO 8601: when this version was published
    commits: int = 0  # number of chunks that are commits
    graph_made_by: str = ""  # identifies the extractors of its graph and their settings
    lacks_of_graph: bool = False  # an extractor failed or timed out, so the next run extracts the missing part
    fallbacks: int = 0  # files chunked as plain text because parsing failed
    graph_failures: int = 0  # files whose only graph edges are those to their definitions
    unreadable_configurations: int = 0  # unreadable files that configure imports
    inputs: str | None = None  # identifies its inputs; None if the same inputs may produce another result
    pack: str | None = None  # the pack with its graph and rows; None if it has its own files
    rows: tuple[str, ...] = ()  # the files of its rows, oldest first: names within their folder
    unlinked: int | None = None  # files with missing edges in a provisional graph; None if the graph is complete


@dataclass(frozen=True, slots=True)
class Generation:
    """A published state of the three stores. Readers share it, so nothing in it may be modified."""

    number: int
    model: str
    table: str
    table_version: int
    tantivy: str  # name of its folder
    sources: dict[str, PublishedSource] = field(default_factory=dict)
    optimized_version: int = 0  # the table's version after its last maintenance
    changed_rows: int = 0  # written or deleted by publications since then
    schema_version: str = SCHEMA_VERSION
    endpoint: str | None = None  # of the model's API; queries are sent nowhere else
    previous: str = ""  # the file name of the generation to roll back to

    def is_of(self, model: str) -> bool:
        """Return whether this version of docindex can publish vectors of the model into it."""
        return self.model == model and self.schema_version == SCHEMA_VERSION

    def is_like(self, other: "Generation") -> bool:
        """Return whether both have the same model and schemas."""
        return (self.model, self.schema_version) == (other.model, other.schema_version)

    def with_source(self, key: str, source: PublishedSource | None) -> "Generation":
        """Return a copy with a source added or replaced, or removed if `source` is None."""
        others = {name: value for name, value in self.sources.items() if name != key}
        return replace(self, sources=dict(sorted({**others, **({key: source} if source else {})}.items())))

    def count_unlinked(self, keys: Iterable[str]) -> tuple[int, int]:
        """Return the number of unlinked files of sources, and their total number of files."""
        sources = [source for key in keys if (source := self.sources.get(key))]
        return sum(source.unlinked or 0 for source in sources), sum(source.files for source in sources)

    def graph_files(self) -> set[str]:
        """Return the names of all its graph files, including those in packs."""
        return _files_of(self.sources.values())

    def loose_graph_files(self) -> set[str]:
        """Return the names of its graph files outside packs."""
        return _files_of(source for source in self.sources.values() if source.pack is None)


def _files_of(sources: Iterable[PublishedSource]) -> set[str]:
    graphs = [source.graph for source in sources if source.graph]
    return {name for graph in graphs for name in (graph.nodes, graph.triples)}


def read_generation(layout: Layout, *, previous: bool = False) -> Generation | None:
    """Return the published or the previous generation, or None if there is none.

    Raises:
        StoreError: the file is damaged.
    """
    current = _read(layout.current)
    if not previous:
        return current
    return _read(layout.previous(current.previous)) if current and current.previous else None


def read_next(layout: Layout) -> Generation | None:
    """Return the pending generation, which `NEXT` names, or None if there is none.

    Raises:
        StoreError: see `read_generation`.
    """
    return _read(layout.next)


def _read(file: Path) -> Generation | None:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise denied(error) from error
    try:
        return parse_generation(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{file} is damaged ({error}). Run `docindex index` to rebuild the index") from error


@lru_cache(_CACHE_SIZE)
def parse_generation(data: bytes) -> Generation:
    """Parse the contents of a generation file.

    A run reads the same bytes a dozen times, and with thousands of sources parsing takes tens of milliseconds.

    Raises ValueError, TypeError, KeyError or AttributeError for invalid contents.
    """
    values: dict[str, Any] = orjson.loads(data)
    values["schema_version"]  # required
    sources = {key: _source(value) for key, value in values.pop("sources").items()}
    generation = Generation(**_known(values, Generation), sources=sources)
    for name in _names_in(generation):
        if name == ".." or Path(name).name != name:  # it points outside its folder
            raise ValueError(f"{name!r} is not a file name")
    return generation


def _names_in(generation: Generation) -> set[str]:
    """Return the names of all files and folders of its stores."""
    sources = generation.sources.values()
    rows = {name for source in sources for name in source.rows}
    packs = {source.pack for source in sources if source.pack}
    return {generation.table, generation.tantivy, generation.previous} | generation.graph_files() | rows | packs


def write_generation(layout: Layout, generation: Generation) -> None:
    """Publish a generation; the previous one is kept for a rollback if it can be read.

    `CURRENT` names the file of the previous generation, so that a single replacement publishes both atomically.
    """
    replace_generation(layout, replace(generation, previous=_save_previous(layout)))


def _save_previous(layout: Layout) -> str:
    """Save the published generation and return the name of its file, or of the last saved one if it is unreadable."""
    try:
        current = read_generation(layout)
    except StoreError:
        return layout.all_previous[-1].name if layout.all_previous else ""
    if current is None:
        return ""
    name = f"PREVIOUS-{current.number:08d}"
    with atomic_write(layout.previous(name)) as temporary:
        temporary.write_bytes(layout.current.read_bytes())
    return name


def replace_generation(layout: Layout, generation: Generation) -> None:
    """Publish a modified form of the current generation; its previous generation stays the same."""
    _write(layout.current, generation)


def replace_next(layout: Layout, generation: Generation) -> None:
    """Set the pending generation; readers do not use it."""
    _write(layout.next, generation)


def _write(file: Path, generation: Generation) -> None:
    with atomic_write(file) as temporary:
        temporary.write_bytes(orjson.dumps(generation, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _source(values: dict[str, Any]) -> PublishedSource:
    graph, rows = values.pop("graph"), tuple(values.pop("rows", ()))
    known = _known(values, PublishedSource)
    return PublishedSource(**known, graph=GraphFiles(**graph) if graph else None, rows=rows)


def _known(values: dict[str, Any], of: type) -> dict[str, Any]:
    """Return the values without fields that only other versions of docindex have."""
    names = _names(of)
    return {name: value for name, value in values.items() if name in names}


@cache
def _names(of: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(of))
