"""Similar chunks, by the cosine between stored vectors; needs no model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docindex_dagster.core.errors import DamagedStoreError, QueryError
from docindex_dagster.core.references import Reference, parse
from docindex_dagster.search import candidates, snippets
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import hit_of, rows_of
from docindex_dagster.search.lookup import look_up
from docindex_dagster.search.model import Hit, Scored, Signal
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_SIGNAL = "vector"


def similar(
    reader: Reader,
    reference: str,
    sources: Sequence[str] = (),
    *,
    readings: Sequence[Reference] = (),
    filters: Filters,
    top_k: int = 10,
    same_file: bool = False,
) -> list[Hit]:
    """Return the chunks nearest to a location's vector, or to the mean vector of a file, best first.

    Args:
        reader: an open generation.
        reference: the user's input.
        sources: sources of the location; empty for all.
        readings: possible meanings of the reference; empty for all that `core.references` finds in it.
        filters: conditions for every hit.
        top_k: maximum number of hits.
        same_file: whether to include other chunks of the same file.

    Raises:
        QueryError: the reference matches no indexed location, or locations in several sources.
        DamagedStoreError: a store cannot be read.
    """
    _, rows = look_up(reader, readings or parse(reference, reader.generation.sources), sources)
    filters.check(reader.index.schema)
    files = {(row["source"], row["path"]) for row in rows}
    if len(files) > 1:
        places = ", ".join(sorted(f"{source} {path}" for source, path in files))
        raise QueryError(f"{reference!r} matches several files. Specify its source: {places}")
    ids = [row["chunk_id"] for row in rows]
    excluded = len(ids) if same_file else max(len(ids), *(row["total_chunks"] for row in rows))
    with reading_stores():
        nearest = candidates.vector(Pool(reader, filters, top_k + excluded), _mean(_vectors(reader, ids)))
        others = [(chunk_id, cosine) for chunk_id, cosine in nearest if chunk_id not in ids]
        scored = [
            Scored.of(chunk_id, (Signal(_SIGNAL, cosine, rank, cosine),))
            for rank, (chunk_id, cosine) in enumerate(others, start=1)
        ]
        found = rows_of(reader, scored)
    selected = [item for item in scored if same_file or _file(found[item.chunk_id]) not in files]
    return [hit_of(found[item.chunk_id], item, snippets.of_words(frozenset())) for item in selected[:top_k]]


def _file(row: dict[str, Any]) -> tuple[str, str]:
    return row["source"], row["path"]


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the normalized mean, shape (dimension,), of unit vectors, shape (vectors, dimension)."""
    mean: NDArray[np.float32] = vectors.mean(axis=0)
    mean /= np.linalg.norm(mean) or 1.0
    return mean


def _vectors(reader: Reader, ids: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of chunks: float32, (ids, dimension)."""
    found = reader.parts.vectors(ids)
    if not len(found):
        raise DamagedStoreError("the location has no vector. Run `docindex doctor --repair`")
    return found
