"""Link files: the links between the chunks of a generation, so that a context need not open the graph.

Opening the graph takes half a second for 20,000 chunks. A link file is derived from the graph files of a generation and
named after them; if it is missing or unreadable, the graph is read instead. It is written after a publication by
processes that can spare the time, never by mere readers.
"""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.graph.links import LINKS_VERSION, Links, links
from docindex_dagster.stores import graph_files
from docindex_dagster.stores.generation import Generation, read_generation

_LINK = pa.struct([pa.field("target", pa.int32(), nullable=False), pa.field("weight", pa.float64(), nullable=False)])
_SCHEMA = pa.schema({"chunk_id": pa.string(), "links": pa.list_(_LINK)})  # a list array is a CSR matrix


def bring_up_to_date(layout: Layout) -> bool:
    """Write the link file of the published generation if it is missing or damaged; return whether it was written.

    Links are computed without a lock, and written under the publication lock. If a publication is running or has
    completed in the meantime, nothing is written, since the publisher calls this too. Errors are ignored.
    """
    with suppress(DocindexError, OSError, pa.ArrowException):
        generation = read_generation(layout)
        path = _path(layout, generation) if generation else None
        if generation is None or path is None or read(layout, generation) is not None:
            return False
        opened = graph_files.open_graph(generation, graph_files.mapped(layout, generation), generation.sources)
        table = _table(links(opened))
        with exclusive_if_free(layout.publication_lock, f"links of the graph, process {os.getpid()}") as is_free:
            current = read_generation(layout) if is_free else None
            if current is not None and _path(layout, current) == path:
                _write(path, table)
                return True
    return False


def read(layout: Layout, generation: Generation) -> Links | None:
    """Return the links of a generation; None if their file is missing or damaged."""
    path = _path(layout, generation)
    if path is None:
        return None
    try:
        table = tables.read_arrow(path)
        table.validate(full=True)
    except (OSError, pa.ArrowException):
        return None
    return _links(table) if table.schema.equals(_SCHEMA) and table.num_rows else None


def problem(layout: Layout, generation: Generation, expected: Links) -> str:
    """Return the problem with the link file, or an empty string; for a missing file, the graph is read instead."""
    found = read(layout, generation)
    return "" if found is None or _table(found).equals(_table(expected)) else "it differs from the links of the graph"


def names(generation: Generation) -> set[str]:
    """Return the name of a generation's link file; empty if it has no graph."""
    graphs = sorted(generation.graph_files())
    return {f"{digest_parts(LINKS_VERSION, *graphs)}.arrow"} if graphs else set()


def _path(layout: Layout, generation: Generation) -> Path | None:
    return next((layout.links / name for name in names(generation)), None)


def _write(path: Path, table: pa.Table) -> None:
    with atomic_write(path) as temporary:
        tables.write_arrow(temporary, table.to_batches(), table.schema)


def _table(matrix: Links) -> pa.Table:
    entries = pa.StructArray.from_arrays([pa.array(matrix.targets), pa.array(matrix.weights)], fields=list(_LINK))
    lists = pa.ListArray.from_arrays(pa.array(matrix.begins), entries, type=pa.list_(_LINK))
    return pa.table([matrix.chunk_ids, lists], schema=_SCHEMA)


def _links(table: pa.Table) -> Links | None:
    """Return the links in a table; None if a target is out of range."""
    ids, lists = (column.combine_chunks() for column in table.columns)
    targets, weights = (lists.values.field(name).to_numpy() for name in ("target", "weight"))
    if len(targets) and not 0 <= targets.min() <= targets.max() < len(ids):
        return None
    return Links(ids, lists.offsets.to_numpy(), targets, weights)
