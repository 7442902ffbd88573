"""Reading the published generation: a reader follows `CURRENT` alone, is never blocked, never sees half a change."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from docindex_dagster.core.confinement import check
from docindex_dagster.core.errors import DamagedStoreError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.traces import spanned
from docindex_dagster.graph.links import Links, links
from docindex_dagster.stores import graph_files, lance_table, link_files, row_files, takeover, tantivy_index
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.generation import SCHEMA_VERSION, Generation, read_generation
from docindex_dagster.stores.parts import VECTOR, Part, Parts

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from tantivy import Index, Searcher

    from docindex_dagster.graph.open_graph import OpenGraph

# A generation can be replaced twice while it is being opened; more often than this, something else is wrong.
_ATTEMPTS = 5
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Reader:
    """The stores of one generation, each opened when it is first used."""

    layout: Layout
    generation: Generation
    index: "Index" = field(repr=False)
    searcher: "Searcher" = field(repr=False)
    graphs: "Mapping[str, pa.Buffer]" = field(repr=False)  # the files of the graph
    known: Mapping[str, tuple[Part, ...]] = field(default_factory=dict, repr=False)  # files that were read before

    @cached_property
    def table(self) -> "LanceTable":
        """The LanceDB table at the published version."""
        return lance_table.open_for_reading(self.layout, self.generation.table, self.generation.table_version)

    @cached_property
    def parts(self) -> Parts:
        """The rows of all chunks, with their texts and vectors; the table's where files lack."""
        return row_files.open_parts(self.layout, self.generation, self.known, self._in_table)

    def _in_table(self, key: str) -> Iterator[pa.Table]:
        columns = [name for name in (*row_files.COLUMNS_OF_FILES, VECTOR) if name in self.table.schema.names]
        return lance_table.in_order(self.table, key, columns, row_files.ROWS_A_BATCH)

    @cached_property
    def graph(self) -> "OpenGraph":
        """The knowledge graph of all sources.

        Raises:
            DamagedStoreError: as `graph_of`.
        """
        return self.graph_of(self.generation.sources)

    @cached_property
    def links(self) -> Links:
        """What the graph links with what, from chunk to chunk.

        Raises:
            DamagedStoreError: as `graph_of`, where there is no file of them.
        """
        return link_files.read(self.layout, self.generation) or links(self.graph)

    def graph_of(self, keys: Iterable[str]) -> "OpenGraph":
        """The knowledge graph of some sources.

        Raises:
            DamagedStoreError: a file is missing or damaged.
        """
        return graph_files.open_graph(self.generation, self.graphs, keys)


def open_reader(layout: Layout) -> Reader:
    """Open what is published now.

    Raises:
        StoreError: nothing is published, it is of another version, or it is damaged.
    """
    return _open_named(layout, read_generation)


def open_written(layout: Layout, model: str) -> Reader:
    """Open what the last publication of a model wrote, which may be a generation that is yet to take over.

    Raises:
        StoreError: as `open_reader`.
    """
    return _open_named(layout, lambda layout: takeover.written(layout, model))


def _open_named(layout: Layout, read: Callable[[Layout], Generation | None]) -> Reader:
    """Open the generation that a file names, or names by then if its graph was replaced while it was opened."""

    def opened(generation: Generation) -> Reader:
        reader = open_generation(layout, generation)
        if generation.graph_files() - reader.graphs.keys() and read(layout) != generation:
            raise damaged("its graph was replaced")
        return reader

    return _of_named(layout, read, opened)


@spanned("open generation")
def open_generation(layout: Layout, generation: Generation) -> Reader:
    """Open a generation, which must stay while it is opened.

    Raises:
        DamagedStoreError: Tantivy's index is damaged, or the generation was cleared away.
        StoreError: another version of docindex wrote it, in a form that this one cannot read.
        LinkError: the home contains a symbolic link.
    """
    check(layout.home)  # a server's `layout` may be older than a link
    with reading_stores():
        # First the graph's files: a clean-up removes Tantivy's folder before them. Where that can be opened afterwards,
        # a file that was not there is lost, and only who asks the graph need know.
        graphs = graph_files.mapped(layout, generation)
        folder = layout.tantivy / generation.tantivy
        index = tantivy_index.open_published(folder)
        if generation.schema_version != SCHEMA_VERSION and (missing := tantivy_index.lacking(folder, index)):
            raise StoreError(f"another version of docindex made the index, without {missing[0]}; run `docindex index`")
        return Reader(layout, generation, index, index.searcher(), graphs)


def check_published(layout: Layout) -> None:
    """Find out within milliseconds whether what is published can be opened.

    Raises:
        StoreError: as `open_reader`.
    """
    _of_named(layout, read_generation, lambda generation: check_generation(layout, generation))


def check_generation(layout: Layout, generation: Generation) -> None:
    """Find out within milliseconds whether a generation, which must stay meanwhile, can be opened.

    Tantivy opens every file; of LanceDB, which takes a second to load, and of the graph, the files must be there.

    Raises:
        DamagedStoreError: it cannot.
        StoreError: as `open_generation`.
        LinkError: as `open_generation`.
    """
    reader = open_generation(layout, generation)
    if not lance_table.has_version(layout, generation.table, generation.table_version):
        raise damaged(f"LanceDB lost version {generation.table_version} of its table")
    if lost := generation.graph_files() - reader.graphs.keys():
        raise damaged(f"the graph lost its file {min(lost)}")


def can_be_opened(layout: Layout, generation: Generation) -> bool:
    """Whether a generation passes `check_generation`."""
    try:
        check_generation(layout, generation)
    except DamagedStoreError:
        return False
    return True


def _of_named(
    layout: Layout, read: Callable[[Layout], Generation | None], use: Callable[[Generation], _Found]
) -> _Found:
    """What `use` makes of the generation that a file names."""
    for attempt in range(1, _ATTEMPTS + 1):
        generation = read(layout)
        if generation is None:
            raise StoreError(f"nothing is indexed in {layout.home} yet; run `docindex index`")
        try:
            return use(generation)
        except DamagedStoreError:  # or its folder went away after the file was read
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")
