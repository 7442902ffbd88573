"""Reading the published generation: a reader follows `CURRENT` alone, is never blocked, never sees half a change."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.confinement import check
from docindex_dagster.core.errors import DamagedStoreError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.traces import spanned
from docindex_dagster.graph.links import Links, links
from docindex_dagster.stores import (
    graph_files,
    lance_table,
    link_files,
    packs,
    takeover,
    tantivy_index,
    text_files,
    vector_files,
)
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation
from docindex_dagster.stores.matrix import Matrix, Part, fits
from docindex_dagster.stores.schema_version import SCHEMA_VERSION
from docindex_dagster.stores.sieve import Sieve
from docindex_dagster.stores.texts import Part as TextPart
from docindex_dagster.stores.texts import Texts

if TYPE_CHECKING:
    from lancedb.table import LanceTable
    from numpy.typing import NDArray
    from tantivy import Index, Searcher

    from docindex_dagster.graph.opened import OpenGraph

# A generation can be replaced twice while it is being opened; more often than this, something else is wrong.
_ATTEMPTS = 5
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _PackedVectors:
    """The vectors of a pack, the sources that it has whole, and which of its rows are theirs: one boolean a row."""

    part: Part
    keys: list[str]
    mask: "NDArray[np.bool_]"


@dataclass(frozen=True)
class Reader:
    """The stores of one generation, each opened when it is first used."""

    layout: Layout
    generation: Generation
    index: "Index" = field(repr=False)
    searcher: "Searcher" = field(repr=False)
    graphs: "Mapping[str, pa.Buffer]" = field(repr=False)  # the files of the graph
    known: Mapping[tuple[str, str], Part] = field(default_factory=dict, repr=False)  # vectors that were read before

    @cached_property
    def table(self) -> "LanceTable":
        """The LanceDB table at the published version."""
        return lance_table.open_for_reading(self.layout, self.generation.table, self.generation.table_version)

    @cached_property
    def matrix(self) -> "Matrix | None":
        """The vectors, of which a search looks at the likely ones where they are too many to be held in memory.

        None where too many of them have no file, or no signs in it, so that the table is to be asked.
        """
        sources = self.generation.sources
        packed = self._packed()
        found = {name: pack.part for name, pack in packed.items()}
        there = {key for pack in packed.values() for key in pack.keys}
        left = {key: source for key, source in sources.items() if key not in there}
        parts = found | {(key, source.version): self._at_hand(key, source) for key, source in left.items()}
        masks = {name: pack.mask for name, pack in packed.items() if not pack.mask.all()}
        dimension = next((part.stored.shape[1] for part in parts.values() if part is not None), None)
        if not fits(sum(source.chunks for source in sources.values()), dimension or lance_table.dimension(self.table)):
            return _sieve(parts, masks)
        whole = {name: part or lance_table.read_part(self.table, name[0]) for name, part in parts.items()}
        return Matrix(whole, masks)

    def _packed(self) -> dict[tuple[str, str], _PackedVectors]:
        """The vectors in packs; a source that a pack has in part is none of it."""
        found = {}
        for pack, keys in packs.of_packs(self.generation).items():
            part = self.known.get((pack, "")) or packs.vectors(self.layout, pack, lance_table.VECTOR)
            if part is not None:
                counts = Counter(part.rows["source"].to_pylist())
                whole = [key for key in keys if counts[key] == self.generation.sources[key].chunks]
                mask = np.asarray(pc.is_in(part.rows["source"], pa.array(whole, pa.string())))
                found[pack, ""] = _PackedVectors(part, whole, mask)
        return found

    def _at_hand(self, key: str, source: PublishedSource) -> Part | None:
        """The vectors of a source that the reader before had, or those of its file."""
        part = self.known.get((key, source.version)) or vector_files.read(self.layout, key, source.version)
        return part if part is not None and part.rows.num_rows == source.chunks else None

    @cached_property
    def texts(self) -> Texts | None:
        """The texts of all chunks; None where a source has no files of them, and the tables are to be asked."""
        parts: list[TextPart] = []
        for source in self.generation.sources.values():
            found = text_files.read(self.layout, source)
            if found is None:
                return None
            parts += found
        return Texts(tuple(parts))

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


def _sieve(
    parts: Mapping[tuple[str, str], Part | None], masks: "dict[tuple[str, str], NDArray[np.bool_]]"
) -> Sieve | None:
    """What finds the likely ones; None where a source is not at hand, or finding signs would take long."""
    there = {name: part for name, part in parts.items() if part is not None}
    unsigned = [part.stored for part in there.values() if part.signed is None]
    if len(there) < len(parts) or (unsigned and not fits(sum(map(len, unsigned)), unsigned[0].shape[1])):
        return None
    return Sieve(there, masks)


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
