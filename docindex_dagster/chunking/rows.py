"""Rows of the `chunks` table from the drafts of a file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.draft import Draft, FileDrafts
from docindex_dagster.chunking.embed_text import embed_text_hashes
from docindex_dagster.code.symbols import Symbol
from docindex_dagster.core.hashing import digest, digest_parts
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.tokenizer import TokenCounter


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


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file that was cut: who it is, and its chunks."""

    identity: FileIdentity
    content: FileDrafts
    human_language: str | None = None  # of a document


def rows(files: Sequence[CutFile], count_tokens: TokenCounter) -> pa.Table:
    """The rows of files, each column made once for all of them."""
    counts = [len(file.content.drafts) for file in files]
    drafts = [draft for file in files for draft in file.content.drafts]
    symbols = [draft.symbol for draft in drafts]

    def of_file(value: Callable[[CutFile], object]) -> list[object]:
        return [item for file, count in zip(files, counts, strict=True) for item in [value(file)] * count]

    def of_symbol(attribute: str) -> list[object]:
        return [getattr(symbol, attribute) if symbol else None for symbol in symbols]

    columns: dict[str, Sequence[object]] = {
        "chunk_id": [id_ for file in files for id_ in _ids(file)],
        "row_hash": [""] * len(drafts),
        "source": of_file(lambda file: file.identity.source),
        "source_kind": of_file(lambda file: file.identity.source_kind),
        "path": of_file(lambda file: file.identity.path),
        "chunk_index": [index for count in counts for index in range(count)],
        "total_chunks": of_file(lambda file: len(file.content.drafts)),
        "text": [draft.text for draft in drafts],
        "content_hash": of_file(lambda file: file.identity.content_hash),
        "embed_text_hash": [""] * len(drafts),
        "source_type": of_file(lambda file: file.identity.source_type),
        "language": of_file(lambda file: file.identity.language),
        "human_language": of_file(lambda file: file.human_language),
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
        "imports": of_file(lambda file: file.content.imports),
        "calls": [draft.calls or None for draft in drafts],
        "pointers": [draft.pointers for draft in drafts],
        "heading_path": [draft.heading_path or None for draft in drafts],
        "section": [draft.section for draft in drafts],
        "subsection": [draft.subsection for draft in drafts],
        "has_code": [draft.has_code for draft in drafts],
        "is_partial": [draft.part_number is not None for draft in drafts],
        "part_number": [draft.part_number for draft in drafts],
        "parent_chunk": [parent for file in files for parent in _parent_ids(file)],
        "exports": of_file(lambda file: file.content.exports),
        "fallback": of_file(lambda file: file.content.fallback),
        "commit": of_file(lambda file: file.identity.commit),
        "is_uncommitted": of_file(lambda file: file.identity.is_uncommitted),
        "summary": [None] * len(drafts),
    }
    table = pa.Table.from_arrays([pa.array(columns[field.name], field.type) for field in CHUNKS], schema=CHUNKS)
    return with_hashes(table)


def _ids(file: CutFile) -> list[str]:
    return [chunk_id(file.identity.source, file.identity.path, index) for index in range(len(file.content.drafts))]


def _parent_ids(file: CutFile) -> Iterator[str | None]:
    for draft in file.content.drafts:
        index = draft.parent_index
        yield None if index is None else chunk_id(file.identity.source, file.identity.path, index)


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
        "returns": symbol.return_type,
        "is_local": bool(symbol.signature and symbol.signature.startswith("static ")),
    }


def with_hashes(chunks: pa.Table) -> pa.Table:
    """The table with `embed_text_hash` and then `row_hash` set, which cover the other columns."""
    position = CHUNKS.get_field_index("embed_text_hash")
    return with_row_hashes(chunks.set_column(position, CHUNKS.field(position), embed_text_hashes(chunks)))


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
