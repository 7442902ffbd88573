"""The jobs of parsing workers, and the rows of the `chunks` table that they return. Loads no parser."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES
from docindex_dagster.chunking.chunker import Draft, FileDrafts
from docindex_dagster.chunking.embedding_text import embed_text_hashes
from docindex_dagster.code.languages import can_contain_symbols
from docindex_dagster.code.symbols import Symbol
from docindex_dagster.core.hashing import digest, digest_parts
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.tokenizer import TokenCounter
from docindex_dagster.documents.model import is_converted
from docindex_dagster.sources.secrets import Secret

_PDF_PATIENCE = 12


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The fields that all chunks of a file share."""

    source: str
    source_kind: str
    path: str
    content_hash: str
    source_type: str
    language: str | None
    commit: str | None
    is_uncommitted: bool


@dataclass(frozen=True, slots=True)
class FileJob(FileIdentity):
    """A file to chunk, as discovery saw it, and the outputs to produce."""

    root: Path
    chunker: str
    size: int
    masked: tuple[Secret, ...] | None = None  # secrets in a file with this hash; None: nothing is masked
    max_file_bytes: int = 1 << 20  # the file may have grown since its size was checked
    wants_chunks: bool = True
    wants_references: bool = False

    @property
    def extracts_references(self) -> bool:
        """Whether to extract references from the file."""
        return self.wants_references and self.language is not None and can_contain_symbols(self.language)

    @property
    def patience(self) -> int:
        """The timeout multiplier: a PDF with hundreds of pages is read at about twenty pages a second."""
        return _PDF_PATIENCE if is_converted(self.language) else 1


@dataclass(frozen=True, slots=True)
class ChunkedFiles:
    """The result for a batch of files: chunk rows, skipped files with reasons, and reference rows."""

    rows: pa.Table
    left_out: tuple[tuple[str, str], ...] = ()
    references: pa.Table = field(default_factory=REFERENCES.empty_table)


def chunk_id(source: str, path: str, index: int) -> str:
    """Return the id of a chunk, which is the same each time the file is indexed."""
    return digest_parts(source, path, str(index))


# Columns named like an attribute of the object that they come from.
_FILE_COLUMNS = tuple(field.name for field in fields(FileIdentity))
_CONTENT_COLUMNS = ("imports", "exports", "fallback")
_DRAFT_COLUMNS = (
    *("text", "chunk_type", "start_line", "end_line", "start_byte", "end_byte", "pointers", "section", "subsection"),
    *("has_code", "part_number"),
)
_SYMBOL_COLUMNS = ("qualified_name", "parent", "signature", "parameters", "return_type", "decorators", "docstring")


@dataclass(frozen=True, slots=True)
class CutFile:
    """A chunked file: its identity and its chunks."""

    identity: FileIdentity
    content: FileDrafts
    human_language: str | None = None  # only for documents


def rows(files: Sequence[CutFile], count_tokens: TokenCounter) -> pa.Table:
    """Return the rows of files, building each column once for all files."""
    counts = [len(file.content.drafts) for file in files]
    drafts = [draft for file in files for draft in file.content.drafts]
    symbols = [draft.symbol for draft in drafts]

    def per_chunk(values: Iterable[object]) -> list[object]:
        return [item for value, count in zip(values, counts, strict=True) for item in [value] * count]

    columns: dict[str, Any] = {
        **{name: per_chunk(getattr(file.identity, name) for file in files) for name in _FILE_COLUMNS},
        **{name: per_chunk(getattr(file.content, name) for file in files) for name in _CONTENT_COLUMNS},
        **{name: [getattr(draft, name) for draft in drafts] for name in _DRAFT_COLUMNS},
        **{name: [getattr(symbol, name, None) for symbol in symbols] for name in _SYMBOL_COLUMNS},
        "symbol_name": [symbol and symbol.name for symbol in symbols],
        "symbol_kind": [symbol and symbol.kind for symbol in symbols],
        "chunk_id": [id_ for file in files for id_ in _ids(file)],
        "row_hash": [""] * len(drafts),
        "embed_text_hash": [""] * len(drafts),
        "chunk_index": [index for count in counts for index in range(count)],
        "total_chunks": per_chunk(counts),
        "human_language": per_chunk(file.human_language for file in files),
        "char_count": [len(draft.text) for draft in drafts],
        "token_count": count_tokens([draft.text for draft in drafts]),
        "symbols": [_structs(draft) for draft in drafts],
        "calls": [draft.calls or None for draft in drafts],
        "heading_path": [draft.heading_path or None for draft in drafts],
        "is_partial": [draft.part_number is not None for draft in drafts],
        "parent_chunk": [parent for file in files for parent in _parent_ids(file)],
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
    """Return the table with `embed_text_hash` and then `row_hash` recomputed from the other columns."""
    position = CHUNKS.get_field_index("embed_text_hash")
    return with_row_hashes(chunks.set_column(position, CHUNKS.field(position), embed_text_hashes(chunks)))


def with_row_hashes(chunks: pa.Table) -> pa.Table:
    """Return the table with `row_hash` set to a hash over all other columns of each row."""
    fields = [_as_text(chunks[field.name].combine_chunks()) for field in CHUNKS if field.name != "row_hash"]
    # Each value is preceded by its length, so that no text can imitate a column boundary.
    parts = [part for field in fields for part in (pc.utf8_length(field).cast(pa.string()), field)]
    joined = pc.binary_join_element_wise(*parts, "|", null_handling="replace", null_replacement="-")
    hashes = pa.array([digest(row.encode()) for row in joined.to_pylist()], pa.string())
    position = CHUNKS.get_field_index("row_hash")
    return chunks.set_column(position, CHUNKS.field(position), hashes)


def _as_text(column: pa.Array) -> pa.Array:
    """Convert any column of the schema to strings, preserving nulls."""
    if pa.types.is_list(column.type):
        if pa.types.is_struct(column.type.value_type):
            values = [
                None if row is None else repr([tuple(item.values()) for item in row]) for row in column.to_pylist()
            ]
            return pa.array(values, pa.string())
        values = [None if row is None else repr(row) for row in column.to_pylist()]
        return pa.array(values, pa.string())
    return column.cast(pa.string())
