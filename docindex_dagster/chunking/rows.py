"""Rows of the `chunks` table from the drafts of a file."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.draft import Draft, FileDrafts
from docindex_dagster.chunking.embed_text import embed_text_hashes
from docindex_dagster.code.symbols import Symbol
from docindex_dagster.hashing import digest, digest_parts
from docindex_dagster.schemas import CHUNKS
from docindex_dagster.tokenizer import TokenCounter


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What every chunk of one file shares."""

    source: str
    source_kind: str
    path: str
    content_hash: str
    source_type: str
    language: str | None
    commit: str | None
    is_uncommitted: bool


def chunk_id(source: str, path: str, index: int) -> str:
    """The id of a chunk: the same each time the file is indexed."""
    return digest_parts(source, path, str(index))


def rows(file: FileIdentity, content: FileDrafts, count_tokens: TokenCounter) -> pa.RecordBatch:
    """The rows of one file, complete but for `row_hash`, which `with_row_hashes` sets once a table is assembled."""
    drafts = content.drafts
    number = len(drafts)
    symbols = [draft.symbol for draft in drafts]
    ids = [chunk_id(file.source, file.path, index) for index in range(number)]

    def of_symbol(attribute: str) -> list[object]:
        return [getattr(symbol, attribute) if symbol else None for symbol in symbols]

    columns: dict[str, Sequence[object]] = {
        "chunk_id": ids,
        "row_hash": [""] * number,
        "source": [file.source] * number,
        "source_kind": [file.source_kind] * number,
        "path": [file.path] * number,
        "chunk_index": range(number),
        "total_chunks": [number] * number,
        "text": [draft.text for draft in drafts],
        "content_hash": [file.content_hash] * number,
        "embed_text_hash": [""] * number,
        "source_type": [file.source_type] * number,
        "language": [file.language] * number,
        "chunk_type": [draft.chunk_type for draft in drafts],
        "start_line": [draft.start_line for draft in drafts],
        "end_line": [draft.end_line for draft in drafts],
        "start_byte": [draft.start_byte for draft in drafts],
        "end_byte": [draft.end_byte for draft in drafts],
        "char_count": [len(draft.text) for draft in drafts],
        "token_count": count_tokens([draft.text for draft in drafts]),
        "symbol_name": of_symbol("name"),
        "symbol_kind": of_symbol("kind"),
        "qualified_name": of_symbol("qualified_name"),
        "parent": of_symbol("parent"),
        "signature": of_symbol("signature"),
        "parameters": of_symbol("parameters"),
        "return_type": of_symbol("return_type"),
        "decorators": of_symbol("decorators"),
        "docstring": of_symbol("docstring"),
        "symbols": [_structs(draft) for draft in drafts],
        "imports": [content.imports] * number,
        "calls": [None] * number,
        "heading_path": [draft.heading_path or None for draft in drafts],
        "section": [draft.section for draft in drafts],
        "subsection": [draft.subsection for draft in drafts],
        "has_code": [draft.has_code for draft in drafts],
        "is_partial": [draft.part_number is not None for draft in drafts],
        "part_number": [draft.part_number for draft in drafts],
        "parent_chunk": [None if draft.parent_index is None else ids[draft.parent_index] for draft in drafts],
        "exports": [content.exports] * number,
        "fallback": [content.fallback] * number,
        "commit": [file.commit] * number,
        "is_uncommitted": [file.is_uncommitted] * number,
        "summary": [None] * number,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in CHUNKS]
    batch = pa.RecordBatch.from_arrays(arrays, schema=CHUNKS)
    position = CHUNKS.get_field_index("embed_text_hash")
    return batch.set_column(position, CHUNKS.field(position), embed_text_hashes(batch))


def _structs(draft: Draft) -> list[dict[str, object]] | None:
    return [_struct(symbol) for symbol in draft.symbols] or None


def _struct(symbol: Symbol) -> dict[str, object]:
    return {
        "name": symbol.name,
        "kind": symbol.kind,
        "qualified_name": symbol.qualified_name,
        "parent": symbol.parent,
        "start_line": symbol.start_line,
        "end_line": symbol.end_line,
    }


def with_row_hashes(chunks: pa.Table) -> pa.Table:
    """The table with `row_hash` set to a hash over all other columns of each row."""
    fields = [_as_text(chunks[field.name].combine_chunks()) for field in CHUNKS if field.name != "row_hash"]
    # Each value is preceded by its length, so that no text can imitate the border between two columns.
    parts = [part for field in fields for part in (pc.utf8_length(field).cast(pa.string()), field)]
    joined = pc.binary_join_element_wise(*parts, "|", null_handling="replace", null_replacement="-")
    hashes = pa.array([digest(row.encode()) for row in joined.to_pylist()], pa.string())
    position = CHUNKS.get_field_index("row_hash")
    return chunks.set_column(position, CHUNKS.field(position), hashes)


def _as_text(column: pa.Array) -> pa.Array:
    """Any column of the schema as strings, nulls kept."""
    if pa.types.is_list(column.type):
        if pa.types.is_struct(column.type.value_type):
            values = [
                None if row is None else repr([tuple(item.values()) for item in row]) for row in column.to_pylist()
            ]
            return pa.array(values, pa.string())
        values = [None if row is None else repr(row) for row in column.to_pylist()]
        return pa.array(values, pa.string())
    return column.cast(pa.string())
