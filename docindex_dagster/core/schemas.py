"""Arrow schemas of the intermediate tables, the contract between the stages.

Rows are sorted (files by path, chunks by path and chunk_index), so equal content gives equal tables. `DESCRIPTIONS`
documents the columns.
"""

from collections.abc import Mapping

import pyarrow as pa

_STRINGS = pa.list_(pa.string())
_TIMESTAMP = pa.timestamp("ms", tz="UTC")  # Parquet does not support seconds

# Displayed as the language of files without a known one; in their rows, it is null.
NO_LANGUAGE = "text"

# A commit becomes a chunk with this source_type. The path prefix clashes with no file, since `.git` is never entered.
COMMIT = "commit"
COMMIT_PATH = ".git/commit/"
# The path prefix of a domain's messages; domains contain no files.
MESSAGE_PATH = ".said/"

# One secret in a file: its position, and the rule that found it.
MASKED = pa.struct(
    [
        pa.field("rule", pa.string()),
        pa.field("start_line", pa.int32()),
        pa.field("end_line", pa.int32()),
        pa.field("start_byte", pa.int64()),
        pa.field("end_byte", pa.int64()),
    ]
)

DISCOVERED_FILES = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("content_hash", pa.string()),
        pa.field("source_type", pa.string()),
        pa.field("language", pa.string()),
        pa.field("git_blob", pa.string()),
        pa.field("commit", pa.string()),
        pa.field("is_uncommitted", pa.bool_(), nullable=False),
        pa.field("loader", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("is_lossy", pa.bool_(), nullable=False),
        pa.field("masked", pa.list_(MASKED)),
        pa.field("skipped_reason", pa.string()),
    ]
)

CHANGED_FILE = pa.struct(
    [
        pa.field("status", pa.string()),  # A | M | D | R (path only) | T (file type)
        pa.field("path", pa.string()),
        pa.field("renamed_from", pa.string()),
        pa.field("insertions", pa.int32()),  # lines; null if not counted, as for binary files
        pa.field("deletions", pa.int32()),
        pa.field("functions", _STRINGS),  # the function names in git's hunk headers
    ]
)

# Sorted from the newest commit to the oldest.
COMMITS = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("commit", pa.string(), nullable=False),
        pa.field("row_hash", pa.string(), nullable=False),
        pa.field("parents", _STRINGS, nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("author_email", pa.string(), nullable=False),
        pa.field("authored_at", _TIMESTAMP),
        pa.field("committed_at", _TIMESTAMP),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("files", pa.list_(CHANGED_FILE), nullable=False),
        pa.field("file_count", pa.int32(), nullable=False),
        pa.field("insertions", pa.int64()),
        pa.field("deletions", pa.int64()),
    ]
)

# One definition; `chunks.symbols` lists the definitions that start in the chunk.
SYMBOL = pa.struct(
    [
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("qualified_name", pa.string()),
        pa.field("parent", pa.string()),
        pa.field("start_line", pa.int32()),
        pa.field("end_line", pa.int32()),
        pa.field("returns", pa.string()),
        pa.field("is_local", pa.bool_()),
    ]
)

CHUNKS = pa.schema(
    [
        pa.field("chunk_id", pa.string(), nullable=False),
        pa.field("row_hash", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_kind", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("chunk_index", pa.int32(), nullable=False),
        pa.field("total_chunks", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("embed_text_hash", pa.string(), nullable=False),
        pa.field("source_type", pa.string(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("human_language", pa.string()),
        pa.field("chunk_type", pa.string(), nullable=False),
        pa.field("start_line", pa.int32(), nullable=False),
        pa.field("end_line", pa.int32(), nullable=False),
        pa.field("start_byte", pa.int64()),
        pa.field("end_byte", pa.int64()),
        pa.field("char_count", pa.int32(), nullable=False),
        pa.field("token_count", pa.int32(), nullable=False),
        pa.field("symbol_name", pa.string()),
        pa.field("symbol_kind", pa.string()),
        pa.field("qualified_name", pa.string()),
        pa.field("parent", pa.string()),
        pa.field("signature", pa.string()),
        pa.field("parameters", _STRINGS),
        pa.field("return_type", pa.string()),
        pa.field("decorators", _STRINGS),
        pa.field("docstring", pa.string()),
        pa.field("symbols", pa.list_(SYMBOL)),
        pa.field("imports", _STRINGS),
        pa.field("calls", _STRINGS),
        pa.field("pointers", pa.string()),
        pa.field("heading_path", _STRINGS),
        pa.field("section", pa.string()),
        pa.field("subsection", pa.string()),
        pa.field("has_code", pa.bool_(), nullable=False),
        pa.field("is_partial", pa.bool_(), nullable=False),
        pa.field("part_number", pa.int32()),
        pa.field("parent_chunk", pa.string()),
        pa.field("exports", _STRINGS),
        pa.field("fallback", pa.string()),
        pa.field("commit", pa.string()),
        pa.field("is_uncommitted", pa.bool_(), nullable=False),
        pa.field("summary", pa.string()),
    ]
)

_KEYS = pa.list_(pa.field("item", pa.uint32(), nullable=False))

NODES = pa.schema(
    [
        pa.field("node", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),  # file | symbol kind | section | concept | external | unresolved
        pa.field("name", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("path", pa.string()),
        pa.field("chunk_id", pa.string()),
        # For files: a hash of their chunks and references, the keys under which other files find something in them,
        # the fingerprints of the results, and the keys that they look up themselves.
        pa.field("made_from", pa.string()),
        pa.field("offers", _KEYS),
        pa.field("fingerprints", _KEYS),
        pa.field("depends", _KEYS),
        pa.field("problem", pa.string()),  # for a file: why it has only its definitions
        pa.field("unread", pa.string()),  # for a code file: why its calls are unknown
    ]
)

TRIPLES = pa.schema(
    [
        pa.field("subject", pa.string(), nullable=False),
        pa.field("subject_type", pa.string(), nullable=False),
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("object", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("chunk_id", pa.string(), nullable=False),
        pa.field("line", pa.int32()),
        pa.field("confidence", pa.float32(), nullable=False),
        pa.field("resolution", pa.string(), nullable=False),
    ]
)


def embeddings_schema(dimension: int) -> pa.Schema:
    """Return the schema of an `embeddings` table whose vectors have `dimension` float16 values."""
    return pa.schema(
        [
            pa.field("chunk_id", pa.string(), nullable=False),
            pa.field("embed_text_hash", pa.string(), nullable=False),
            pa.field("model", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.field("item", pa.float16(), nullable=False), dimension), nullable=False),
        ]
    )


# Descriptions of all columns that Dagster shows.
DESCRIPTIONS: Mapping[str, str] = {
    # Origin of a row.
    "source": "key of the source: library/NAME, git/NAME or git/NAME@BRANCH",
    "source_kind": "library or git",
    "source_type": "doc, code, test or config; commit for a chunk of a commit",
    "path": "path relative to the source, with forward slashes; invalid bytes are percent-encoded",
    "language": "language of the file; null if unknown",
    "human_language": "natural language of a document, as ISO 639-1; null for code or if uncertain",
    "content_hash": "hash of the file's bytes, or of a commit's text; null if not read",
    "row_hash": "hash of all other columns, which shows stores which rows changed",
    "commit": "the commit itself, or the last commit that changed the file; null outside git",
    "is_uncommitted": "whether the file differs from its last commit",
    # Files.
    "size": "size in bytes",
    "mtime_ns": "modification time, in nanoseconds since 1970",
    "git_blob": "git's blob ID of the content; null outside git",
    "loader": "the loader that converts the file to text",
    "encoding": "the encoding used to decode the file",
    "is_lossy": "whether undecodable bytes were replaced",
    "masked": "secrets in the file that are left out of chunks; null if it was not scanned for them",
    "skipped_reason": "why the file is not indexed, as `rule: detail`; null if it is indexed",
    # Commits.
    "parents": "parent commits",
    "author": "author's name",
    "author_email": "author's email address",
    "authored_at": "author date, UTC; null if invalid",
    "committed_at": "commit date, UTC; null if invalid",
    "subject": "first line of the commit message; for an edge, its source node",
    "message": "full commit message; truncated if very long",
    "files": "the first changed files, with their changes; empty for merges",
    "file_count": "number of changed files",
    "insertions": "inserted lines; null if not counted, as for merges and very large commits",
    "deletions": "deleted lines; null if not counted, as for merges and very large commits",
    # Chunks.
    "chunk_id": "hash of source, path and chunk_index; for an edge, the chunk that proves it",
    "chunk_index": "position in the file, 0-based",
    "total_chunks": "number of chunks in the file",
    "text": "the text that is displayed and searched",
    "embed_text_hash": "hash of the embedded text; equal texts share a vector",
    "chunk_type": "function, method, class, section, message and so on",
    "start_line": "first line, 1-based",
    "end_line": "last line, inclusive",
    "start_byte": "start offset in the decoded text as UTF-8; null if the document was transformed",
    "end_byte": "end offset in the decoded text as UTF-8, exclusive; null if the document was transformed",
    "char_count": "length of the text in characters",
    "token_count": "length of the text in tokens",
    "symbol_name": "name of the chunk's definition",
    "symbol_kind": "kind of the chunk's definition",
    "qualified_name": "the symbol's name, qualified by its enclosing scopes",
    "parent": "the symbol's enclosing scope",
    "signature": "the symbol's declaration",
    "parameters": "the symbol's parameters",
    "return_type": "the symbol's return type",
    "decorators": "the symbol's decorators",
    "docstring": "the symbol's docstring",
    "symbols": "definitions that start in the chunk",
    "imports": "imports of the file",
    "exports": "exported symbols of the file",
    "calls": "names that the chunk calls, as dotted paths if written that way",
    "pointers": "links and anchors of a document that its text does not show, one per line; used for the graph",
    "heading_path": "headings above the chunk, outermost first",
    "section": "title of the document, or its file name; for a commit, its subject",
    "subsection": "second- or third-level heading above the chunk",
    "has_code": "whether the chunk contains code",
    "is_partial": "whether the chunk is part of a section or definition that was split",
    "part_number": "number of the part; null if not split",
    "parent_chunk": "ID of the chunk that this chunk is a part or member of",
    "fallback": "why a code file was chunked as plain text; null if it was parsed",
    "summary": "LLM-written summary in one or two sentences; null if summaries are disabled or missing",
    # References.
    "content": "facts extracted from the file, as JSON: definitions, imports, calls, assignments and so on",
    # Vectors.
    "model": "embedding model of the vector",
    "vector": "embedding of unit length, so a dot product is the cosine similarity",
    # Edges of the graph.
    "subject_type": "type of the edge's source node: file, section, module or a symbol kind",
    "predicate": "relation of the edge: defines, contains, imports and so on",
    "object": "target node of the edge",
    "object_type": "type of the edge's target node",
    "line": "line that proves the edge",
    "problem": "why a file has only edges to its definitions, or no structure; null if complete",
    "unread": "why the calls in a code file are unknown; null if they were extracted",
    "confidence": "confidence of the edge; 1 if nothing was inferred",
    "resolution": "how the edge was resolved",
}
