"""The links between the chunks of a generation as a file, so that a new process need not open the graph for a context.

That takes half a second for 20,000 chunks. A file is a copy of what the graph files of a generation give, under a name
that says so; where it is missing or cannot be read, they are read instead. It is written after a publication, by who
has time, and by nobody who only reads.
"""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.graph.links import LINKS_VERSION, Links, links
from docindex_dagster.stores import graph_files
from docindex_dagster.stores.generation import Generation, read_generation

_LINK = pa.struct([pa.field("target", pa.int32(), nullable=False), pa.field("weight", pa.float64(), nullable=False)])
_SCHEMA = pa.schema({"chunk_id": pa.string(), "links": pa.list_(_LINK)})  # a list array is a matrix in CSR form


def bring_up_to_date(layout: Layout) -> bool:
    """Write the file of the published generation if it is missing or damaged; whether this was done.

    The links are found without any lock, and written under that of the publications: not where one is under way, or
    ended meanwhile, for who makes that one calls this as well. What fails here fails nothing else.
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
    """The links of a generation; None where their file is missing or damaged."""
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
    """What is wrong with the links that contexts follow; a file that is missing is not: the graph is read instead."""
    found = read(layout, generation)
    return "" if found is None or _table(found).equals(_table(expected)) else "other links than those of the graph"


def names(generation: Generation) -> set[str]:
    """The name of the file of a generation; none where it has no graph."""
    graphs = sorted(generation.graph_files())
    return {f"{digest_parts(LINKS_VERSION, *graphs)}.arrow"} if graphs else set()


def _path(layout: Layout, generation: Generation) -> Path | None:
    return next((layout.links / name for name in names(generation)), None)


def _write(path: Path, table: pa.Table) -> None:
    with replacing(path) as temporary:
        tables.write_arrow(temporary, table.to_batches(), table.schema)


def _table(linked: Links) -> pa.Table:
    of_all = pa.StructArray.from_arrays([pa.array(linked.targets), pa.array(linked.weights)], fields=list(_LINK))
    lists = pa.ListArray.from_arrays(pa.array(linked.begins), of_all, type=pa.list_(_LINK))
    return pa.table([linked.chunk_ids, lists], schema=_SCHEMA)


def _links(table: pa.Table) -> Links | None:
    """The links that a table holds; None where one leads to no chunk."""
    ids, lists = (column.combine_chunks() for column in table.columns)
    targets, weights = (lists.values.field(name).to_numpy() for name in ("target", "weight"))
    if len(targets) and not 0 <= targets.min() <= targets.max() < len(ids):
        return None
    return Links(ids, lists.offsets.to_numpy(), targets, weights)
