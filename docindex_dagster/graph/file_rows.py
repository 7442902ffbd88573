"""The chunks of files as they are read for a graph: row by row, and no more of them than is needed."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.callgraph.languages import read_configurations, rules_of
from docindex_dagster.callgraph.modules import Modules, is_configuration
from docindex_dagster.graph.documents import DOCUMENT

_NEEDED = (
    "chunk_id",
    "source",
    "source_type",
    "path",
    "start_line",
    "end_line",
    "text",
    "embed_text_hash",
    "imports",
    "heading_path",
    "chunk_type",
    "has_code",
    "part_number",
    "pointers",
    "row_hash",
)
_MOST_ROWS = 4096  # that are dictionaries


def spans_of(files: pa.Table) -> dict[str, tuple[int, int]]:
    """The first row and the end of each file in a table of chunks, which is sorted by path and position."""
    paths = files["path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(begins, len(codes))[1:]
    names = paths.dictionary.take(pa.array(codes[begins])).to_pylist()
    return dict(zip(names, zip(begins.tolist(), ends.tolist(), strict=True), strict=True))


def families(chunks: pa.Table) -> list[NDArray[np.int64]]:
    """The rows of a table, those of files together in whose languages names meet; each of shape (rows,), int64."""
    spans = spans_of(chunks)
    languages = chunks["language"].take(pa.array([begin for begin, _ in spans.values()], pa.int64())).to_pylist()
    rows: dict[str, list[NDArray[np.int64]]] = {}
    for (begin, end), language in zip(spans.values(), languages, strict=True):
        rows.setdefault(rules_of(language or "").family, []).append(np.arange(begin, end))
    return [np.concatenate(of_family) for of_family in rows.values()]


def needed(chunks: pa.Table, is_document: pa.ChunkedArray) -> pa.Table:
    """What of chunks is needed: the text and pointers of documents alone."""
    columns = chunks.select(list(_NEEDED))
    for name in ("text", "pointers"):
        of_documents = pc.if_else(is_document, chunks[name], pa.scalar(None, pa.string()))
        columns = columns.set_column(columns.schema.get_field_index(name), name, of_documents)
    return columns


def modules_of(chunks: pa.Table, spans: Mapping[str, tuple[int, int]]) -> Modules:
    """The files of a table of chunks, of which `spans_of` gives the spans."""
    texts = chunks["text"]

    def text(path: str) -> str:
        begin, end = spans[path]
        return "".join(texts.slice(begin, end - begin).to_pylist())

    return Modules(frozenset(spans), text)


def without_code(chunks: pa.Table) -> pa.Table:
    """The chunks with the text of documents and settings alone, which a graph is made from: code is most of it."""
    modules = modules_of(chunks, spans_of(chunks))
    settings = [*filter(is_configuration, modules.paths), *read_configurations(modules)]
    is_setting = pc.is_in(chunks["path"], pa.array(settings, pa.string()))
    is_read = pc.or_(pc.equal(chunks["source_type"], DOCUMENT), is_setting)
    at = chunks.schema.get_field_index("text")
    return chunks.set_column(at, chunks.field(at), pc.if_else(is_read, chunks["text"], ""))


def rows_of(chunks: pa.Table, order: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Some chunks as dictionaries: those of rows of shape (rows,), int64, in this order."""
    for begin in range(0, len(order), _MOST_ROWS):
        yield from chunks.take(pa.array(order[begin : begin + _MOST_ROWS])).to_pylist()
