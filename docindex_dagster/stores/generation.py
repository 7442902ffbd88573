"""The files that name generations, and what a generation is made of. Readers use the one that `CURRENT` names."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import orjson

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, NODES, TRIPLES, embeddings_schema
from docindex_dagster.stores import analysis, tantivy_index
from docindex_dagster.stores.damage import denied

SCHEMA_VERSION = digest_parts(
    *(str(schema) for schema in (CHUNKS, NODES, TRIPLES, embeddings_schema(2))),
    repr(tantivy_index.FIELDS),
    analysis.TERMS_VERSION,
    "rows 1",  # the form of the files of rows
)
"""A hash of the schemas, so that no change of a column or field is forgotten; also the version of LanceDB's table.

Stores of another version are built anew beside those that are published; see `takeover`.
"""
_MOST_PARSED = 4  # `CURRENT`, the one before it, `NEXT`, and what takes the place of one of them


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """The Parquet files of one source's graph: names within the graph folder."""

    nodes: str
    triples: str


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """What a generation holds of one source."""

    version: str  # of its chunks and vectors: equal content has an equal version
    revision: str | None  # the version that the settings give, or for git the last commit
    graph: GraphFiles | None
    files: int
    chunks: int
    text_bytes: int
    nodes: int
    edges: int
    languages: dict[str, int]  # chunks of files by language
    changed_at: str  # UTC, ISO 8601: when this version was published
    commits: int = 0  # each is one of the chunks
    graph_made_by: str = ""  # identifies the extractors of its graph and their settings
    lacks_of_graph: bool = False  # an extractor failed, or ran out of time: the next run is to ask for the rest
    fallbacks: int = 0  # files that were cut as text, since they could not be parsed
    graph_failures: int = 0  # files of which the graph has no edges but those to their definitions
    unreadable_configurations: int = 0  # files that say where imports lead and cannot be read
    inputs: str | None = None  # identifies what it was made from; None where making it again may give something else
    pack: str | None = None  # that has its graph and rows; None where it has files of its own
    rows: tuple[str, ...] = ()  # the files of its rows, oldest first: names within their folder
    unlinked: int | None = None  # files whose edges a provisional graph lacks in part; None: it is complete


@dataclass(frozen=True, slots=True)
class Generation:
    """One published state of the three stores. Readers share it, so nothing in it may be changed."""

    number: int
    model: str
    table: str
    table_version: int
    tantivy: str  # name of its folder
    sources: dict[str, PublishedSource] = field(default_factory=dict)
    optimized_version: int = 0  # the table's version at its last maintenance
    changed_rows: int = 0  # that publications wrote or deleted since
    schema_version: str = SCHEMA_VERSION
    endpoint: str | None = None  # of the API that has the model; a query goes nowhere else
    previous: str = ""  # the name of the file of the generation to roll back to

    def is_of(self, model: str) -> bool:
        """Whether publications of a model by this version of docindex can go on from it."""
        return self.model == model and self.schema_version == SCHEMA_VERSION

    def is_like(self, other: "Generation") -> bool:
        """Whether both have the same model and schemas."""
        return (self.model, self.schema_version) == (other.model, other.schema_version)

    def with_source(self, key: str, source: PublishedSource | None) -> "Generation":
        """The same generation with one source put in, or taken out."""
        others = {name: value for name, value in self.sources.items() if name != key}
        return replace(self, sources=dict(sorted({**others, **({key: source} if source else {})}.items())))

    def count_unlinked(self, keys: Iterable[str]) -> tuple[int, int]:
        """How many files of some sources are not linked yet, and how many there are."""
        sources = [source for key in keys if (source := self.sources.get(key))]
        return sum(source.unlinked or 0 for source in sources), sum(source.files for source in sources)

    def graph_files(self) -> set[str]:
        """The names of all graph files that it uses, also of those in packs."""
        return _files_of(self.sources.values())

    def loose_graph_files(self) -> set[str]:
        """The names of the graph files that are in no pack."""
        return _files_of(source for source in self.sources.values() if source.pack is None)


def _files_of(sources: Iterable[PublishedSource]) -> set[str]:
    graphs = [source.graph for source in sources if source.graph]
    return {name for graph in graphs for name in (graph.nodes, graph.triples)}


def read_generation(layout: Layout, *, previous: bool = False) -> Generation | None:
    """The published generation (or the one before it), or None where nothing is published.

    Raises:
        StoreError: the file is damaged.
    """
    current = _read(layout.current)
    if not previous:
        return current
    return _read(layout.previous(current.previous)) if current and current.previous else None


def read_next(layout: Layout) -> Generation | None:
    """The generation that `NEXT` names, or None where there is none.

    Raises:
        StoreError: as `read_generation`.
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
        return parsed(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{file} is damaged ({error}); run `docindex index` to build the index anew") from error


@lru_cache(_MOST_PARSED)
def parsed(data: bytes) -> Generation:
    """The generation that the bytes of a file describe.

    A run reads the same bytes a dozen times, and with thousands of sources they take tens of milliseconds to parse.

    Raises a ValueError, TypeError, KeyError or AttributeError where they describe none.
    """
    values: dict[str, Any] = orjson.loads(data)
    values["schema_version"]  # who wrote it is known
    sources = {key: _source(value) for key, value in values.pop("sources").items()}
    generation = Generation(**_known(values, Generation), sources=sources)
    for name in _names_in(generation):
        if name == ".." or Path(name).name != name:  # it leads out of its folder
            raise ValueError(f"{name!r} is not a file name")
    return generation


def _names_in(generation: Generation) -> set[str]:
    """The names of files and folders of all stores."""
    sources = generation.sources.values()
    rows = {name for source in sources for name in source.rows}
    packs = {source.pack for source in sources if source.pack}
    return {generation.table, generation.tantivy, generation.previous} | generation.graph_files() | rows | packs


def write_generation(layout: Layout, generation: Generation) -> None:
    """Publish: from here on readers follow `generation`; the one before, if it can be read, stays for a rollback.

    `CURRENT` names the file of the one before, so that one replacement does both, wherever a writer is killed.
    """
    replace_generation(layout, replace(generation, previous=_kept(layout)))


def _kept(layout: Layout) -> str:
    """The name of the file that keeps what is published; where that cannot be read, of what was kept last."""
    try:
        current = read_generation(layout)
    except StoreError:
        return layout.all_previous[-1].name if layout.all_previous else ""
    if current is None:
        return ""
    name = f"PREVIOUS-{current.number:08d}"
    with replacing(layout.previous(name)) as temporary:
        temporary.write_bytes(layout.current.read_bytes())
    return name


def replace_generation(layout: Layout, generation: Generation) -> None:
    """Publish the same generation in another form; the one before it stays the one to roll back to."""
    _write(layout.current, generation)


def replace_next(layout: Layout, generation: Generation) -> None:
    """Name the generation that is to take over; readers do not follow it."""
    _write(layout.next, generation)


def _write(file: Path, generation: Generation) -> None:
    with replacing(file) as temporary:
        temporary.write_bytes(orjson.dumps(generation, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _source(values: dict[str, Any]) -> PublishedSource:
    graph, rows = values.pop("graph"), tuple(values.pop("rows", ()))
    known = _known(values, PublishedSource)
    return PublishedSource(**known, graph=GraphFiles(**graph) if graph else None, rows=rows)


def _known(values: dict[str, Any], of: type) -> dict[str, Any]:
    """The values without what another version of docindex says besides."""
    names = _names(of)
    return {name: value for name, value in values.items() if name in names}


@cache
def _names(of: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(of))
