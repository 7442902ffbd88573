"""The stores of several homes on this machine as those of one: a reader of all cells that are here.

Tantivy's folders are opened as one index, so that every score and statistic is that of one; what else is read is read
from each. Walks in the graph stay within a home, as they do where cells are on several machines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.graph.links import Links
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import Generation, PublishedSource
from docindex_dagster.stores.matrix import Part
from docindex_dagster.stores.reader import PackedVectors, Reader, open_reader
from docindex_dagster.stores.texts import Texts

if TYPE_CHECKING:
    from lancedb.table import LanceTable


@dataclass(frozen=True)
class Together(Reader):
    """The stores of several homes, each with a generation of its own."""

    parts: tuple[Reader, ...] = ()

    @cached_property
    def tables(self) -> "tuple[LanceTable, ...]":
        """The LanceDB table of each home."""
        return tuple(part.table for part in self.parts)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of Tantivy's index of each home."""
        return tuple(folder for part in self.parts for folder in part.folders)

    @cached_property
    def links(self) -> Links:
        """What the graph of each home links with what."""
        return reduce(_beside, (part.links for part in self.parts))

    @cached_property
    def texts(self) -> Texts | None:
        """The texts of all homes; None where a source of one has no files of them."""
        found = [part.texts for part in self.parts]
        parts = [each for texts in found if texts is not None for each in texts.parts]
        return None if any(texts is None for texts in found) else Texts(tuple(parts))

    def table_of(self, key: str) -> "LanceTable":
        """The table that holds a source."""
        return self._part(key).table

    def at_hand(self, key: str, source: PublishedSource) -> Part | None:
        """The vectors of a source that the reader before had, or those of its file."""
        return self.known.get((key, source.version)) or self._part(key).at_hand(key, source)

    def packed(self, known: Mapping[tuple[str, str], Part]) -> dict[tuple[str, str], PackedVectors]:
        """The vectors in the packs of each home."""
        return {name: pack for part in self.parts for name, pack in part.packed(known).items()}

    def _part(self, key: str) -> Reader:
        return next(part for part in self.parts if key in part.generation.sources)


def open_together(layouts: Sequence[Layout]) -> Reader:
    """Open what is published now in one home or in several; where nothing is in some of them, the reader says it.

    Raises:
        StoreError: as `open_reader`; or the generations cannot be read together.
    """
    parts = tuple(open_reader(layout) for layout in layouts if layout.current.exists())
    if len(layouts) == 1 or not parts:
        return open_reader(layouts[0])
    generation = generation_of([part.generation for part in parts])
    with reading_stores():
        index = tantivy_index.open_together([folder for part in parts for folder in part.folders])
    graphs = dict(chain.from_iterable(part.graphs.items() for part in parts))
    missing = "; ".join(
        f"nothing is in {layout.home} yet, so nothing of that cell is found"
        for layout in layouts
        if layout.home not in {part.layout.home for part in parts}
    )
    return Together(layouts[0], generation, index, index.searcher(), graphs, missing=missing, parts=parts)


def generation_of(generations: Sequence[Generation]) -> Generation:
    """What cells have published, as one generation, whose number grows with each publication of any of them.

    Raises:
        StoreError: they cannot be searched together: their vectors are of different models, or their schemas differ.
    """
    first = generations[0]
    for other in generations:
        if (other.model, other.endpoint, other.schema_version) != (first.model, first.endpoint, first.schema_version):
            raise StoreError(
                f"the cells are of different models or versions ({first.model}, {other.model}); "
                "wait until all have gone over, or run `docindex index`"
            )
    sources = {key: source for one in generations for key, source in one.sources.items()}
    number = sum(one.number for one in generations)
    return replace(first, number=number, table="", table_version=0, tantivy="", sources=dict(sorted(sources.items())))


def _beside(left: Links, right: Links) -> Links:
    """The links of two graphs that have no chunk in common."""
    ids = pa.concat_arrays([left.chunk_ids, right.chunk_ids])
    begins = np.concatenate([left.begins, left.begins[-1] + right.begins[1:]]).astype(np.int32)
    targets = np.concatenate([left.targets, np.int32(len(left.chunk_ids)) + right.targets]).astype(np.int32)
    return Links(ids, begins, targets, np.concatenate([left.weights, right.weights]))
