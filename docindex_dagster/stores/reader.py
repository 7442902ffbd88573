"""Reading the published generation: a reader follows `CURRENT` alone, is never blocked, never sees half a change."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from docindex_dagster.errors import DamagedStoreError, StoreError
from docindex_dagster.layout import Layout
from docindex_dagster.stores import graph_files, lance_table, tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation, read_generation

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from networkx import MultiDiGraph
    from tantivy import Index, Searcher

# A generation can be replaced twice while it is being opened; more often than this, something else is wrong.
_ATTEMPTS = 5


@dataclass(frozen=True)
class Reader:
    """The stores of one generation, each opened when it is first used."""

    layout: Layout
    generation: Generation
    index: "Index" = field(repr=False)
    searcher: "Searcher" = field(repr=False)

    @cached_property
    def table(self) -> "LanceTable":
        """The LanceDB table at the published version."""
        return lance_table.open_for_reading(self.layout, self.generation.table, self.generation.table_version)

    @cached_property
    def graph(self) -> "MultiDiGraph[str]":
        """The knowledge graph of all sources."""
        return graph_files.open_graph(self.layout, self.generation)


def open_reader(layout: Layout) -> Reader:
    """Open what is published now.

    Raises:
        StoreError: nothing is published, it is of another version, or it is damaged.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        generation = read_generation(layout)
        if generation is None:
            raise StoreError(f"nothing is indexed in {layout.home} yet; run `docindex index`")
        try:
            with reading_stores():
                index = tantivy_index.open_index(layout.tantivy / generation.tantivy)
                return Reader(layout, generation, index, index.searcher())
        except DamagedStoreError:  # or its folder went away after CURRENT was read
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")
