"""Readers of the published generation: they only follow `CURRENT`, never block, and never see partial changes."""

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

# A generation can be replaced twice while it is being opened; if it happens more often, something else is wrong.
_ATTEMPTS = 5
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Reader:
    """The stores of a generation, each opened when first used."""

    layout: Layout
    generation: Generation
    index: "Index" = field(repr=False)
    searcher: "Searcher" = field(repr=False)
    graphs: "Mapping[str, pa.Buffer]" = field(repr=False)  # mapped graph files by name
    known: Mapping[str, tuple[Part, ...]] = field(default_factory=dict, repr=False)  # parts read by an earlier reader

    @cached_property
    def table(self) -> "LanceTable":
        """The LanceDB table at the published version."""
        return lance_table.open_for_reading(self.layout, self.generation.table, self.generation.table_version)

    @cached_property
    def parts(self) -> Parts:
        """The rows of all chunks with their texts and vectors, from the table if row files are missing."""
        return row_files.open_parts(self.layout, self.generation, self.known, self._in_table)

    def _in_table(self, key: str) -> Iterator[pa.Table]:
        columns = [name for name in (*row_files.COLUMNS_OF_FILES, VECTOR) if name in self.table.schema.names]
        return lance_table.in_order(self.table, key, columns, row_files.ROWS_A_BATCH)

    @cached_property
    def graph(self) -> "OpenGraph":
        """The knowledge graph of all sources.

        Raises:
            DamagedStoreError: see `graph_of`.
        """
        return self.graph_of(self.generation.sources)

    @cached_property
    def links(self) -> Links:
        """The links of the graph between chunks.

        Raises:
            DamagedStoreError: see `graph_of`; only if there is no link file.
        """
        return link_files.read(self.layout, self.generation) or links(self.graph)

    def graph_of(self, keys: Iterable[str]) -> "OpenGraph":
        """Open the knowledge graph of some sources.

        Raises:
            DamagedStoreError: a file is missing or damaged.
        """
        return graph_files.open_graph(self.generation, self.graphs, keys)


def open_reader(layout: Layout) -> Reader:
    """Open the published generation.

    Raises:
        StoreError: nothing is published, or it is damaged or from another version of docindex.
    """
    return _open_named(layout, read_generation)


def open_for_model(layout: Layout, model: str) -> Reader:
    """Open the result of the last publication of a model, which may be the pending generation.

    Raises:
        StoreError: see `open_reader`.
    """
    return _open_named(layout, lambda layout: takeover.written(layout, model))


def _open_named(layout: Layout, read: Callable[[Layout], Generation | None]) -> Reader:
    """Open the generation that a file names; reopen it if its graph was replaced in the meantime."""

    def open_checked(generation: Generation) -> Reader:
        reader = open_generation(layout, generation)
        if generation.graph_files() - reader.graphs.keys() and read(layout) != generation:
            raise damaged("its graph was replaced")
        return reader

    return _with_retries(layout, read, open_checked)


@spanned("open generation")
def open_generation(layout: Layout, generation: Generation) -> Reader:
    """Open a generation, which must not be removed meanwhile.

    Raises:
        DamagedStoreError: the Tantivy index is damaged, or the generation was removed.
        StoreError: another version of docindex wrote it, in a format that this version cannot read.
        LinkError: the home contains a symlink.
    """
    check(layout.home)  # the `layout` of a server may be older than a symlink
    with reading_stores():
        # Map the graph files first: a cleanup removes the Tantivy folder before them. If that can be opened afterwards,
        # a missing graph file is lost, which only users of the graph need to know.
        graphs = graph_files.mapped(layout, generation)
        folder = layout.tantivy / generation.tantivy
        index = tantivy_index.open_published(folder)
        if generation.schema_version != SCHEMA_VERSION and (missing := tantivy_index.missing_fields(folder, index)):
            raise StoreError(f"another version of docindex built the index, without {missing[0]}. Run `docindex index`")
        return Reader(layout, generation, index, index.searcher(), graphs)


def check_published(layout: Layout) -> None:
    """Check within milliseconds that the published generation can be opened.

    Raises:
        StoreError: see `open_reader`.
    """
    _with_retries(layout, read_generation, lambda generation: check_generation(layout, generation))


def check_generation(layout: Layout, generation: Generation) -> None:
    """Check within milliseconds that a generation, which must not be removed meanwhile, can be opened.

    Tantivy opens every file. For LanceDB, which takes a second to load, and the graph, the files only have to exist.

    Raises:
        DamagedStoreError: it cannot be opened.
        StoreError: see `open_generation`.
        LinkError: see `open_generation`.
    """
    reader = open_generation(layout, generation)
    if not lance_table.has_version(layout, generation.table, generation.table_version):
        raise damaged(f"version {generation.table_version} of the LanceDB table is missing")
    if missing := generation.graph_files() - reader.graphs.keys():
        raise damaged(f"graph file {min(missing)} is missing")


def can_be_opened(layout: Layout, generation: Generation) -> bool:
    """Return whether a generation passes `check_generation`."""
    try:
        check_generation(layout, generation)
    except DamagedStoreError:
        return False
    return True


def _with_retries(
    layout: Layout, read: Callable[[Layout], Generation | None], use: Callable[[Generation], _Found]
) -> _Found:
    """Call `use` with the generation that a file names; retry if the generation is replaced in the meantime."""
    for attempt in range(1, _ATTEMPTS + 1):
        generation = read(layout)
        if generation is None:
            raise StoreError(f"nothing is indexed in {layout.home} yet. Run `docindex index`")
        try:
            return use(generation)
        except DamagedStoreError:  # possibly because its folder was removed after reading the file
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")
