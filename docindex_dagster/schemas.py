"""The Arrow schemas of the intermediate tables, which are the contract between the stages.

Rows are sorted: files by path, chunks by (path, chunk_index), so that equal content gives equal tables.
"""

import pyarrow as pa

_STRINGS = pa.list_(pa.string())
_MOMENT = pa.timestamp("ms", tz="UTC")  # Parquet has no whole seconds

# A commit becomes a chunk of this source_type; its path begins so, where no file can lie, since `.git` is not entered.
COMMIT = "commit"
COMMIT_PATH = ".git/commit/"

DISCOVERED_FILES = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),  # POSIX, relative to the source, odd bytes percent-escaped
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("content_hash", pa.string()),  # null where the bytes were not read
        pa.field("source_type", pa.string()),  # doc | code | test | config
        pa.field("language", pa.string()),
        pa.field("git_blob", pa.string()),  # null outside git
        pa.field("commit", pa.string()),  # the last commit that changed the file
        pa.field("is_uncommitted", pa.bool_(), nullable=False),
        pa.field("loader", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("is_lossy", pa.bool_(), nullable=False),  # bytes that the encoding does not have were replaced
        pa.field("skipped_reason", pa.string()),  # null for a file to index
    ]
)

CHANGED_FILE = pa.struct(
    [
        pa.field("status", pa.string()),  # A | M | D | R (only its place) | T (another kind of file)
        pa.field("path", pa.string()),
        pa.field("renamed_from", pa.string()),
        pa.field("insertions", pa.int32()),  # lines; null where they were not counted, as in binary files
        pa.field("deletions", pa.int32()),
        pa.field("functions", _STRINGS),  # the lines by which git names the places that changed
    ]
)

# Sorted from the newest commit to the oldest.
COMMITS = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("commit", pa.string(), nullable=False),
        pa.field("row_hash", pa.string(), nullable=False),  # over every other column
        pa.field("parents", _STRINGS, nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("author_email", pa.string(), nullable=False),
        pa.field("authored_at", _MOMENT),  # null where it is no date
        pa.field("committed_at", _MOMENT),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),  # a very long one is cut
        pa.field("files", pa.list_(CHANGED_FILE), nullable=False),  # the first ones; none of a merge
        pa.field("file_count", pa.int32(), nullable=False),  # all of them
        pa.field("insertions", pa.int64()),  # null where lines were not counted: merges, very large commits
        pa.field("deletions", pa.int64()),
    ]
)

# One definition: `chunks.symbols` lists those that begin in the chunk.
SYMBOL = pa.struct(
    [
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("qualified_name", pa.string()),
        pa.field("parent", pa.string()),
        pa.field("start_line", pa.int32()),
        pa.field("end_line", pa.int32()),
    ]
)

CHUNKS = pa.schema(
    [
        pa.field("chunk_id", pa.string(), nullable=False),
        pa.field("row_hash", pa.string(), nullable=False),  # over every other column
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_kind", pa.string(), nullable=False),  # library | git
        pa.field("path", pa.string(), nullable=False),
        pa.field("chunk_index", pa.int32(), nullable=False),
        pa.field("total_chunks", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),  # of the file that the chunk was cut from
        pa.field("embed_text_hash", pa.string(), nullable=False),
        pa.field("source_type", pa.string(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("chunk_type", pa.string(), nullable=False),
        pa.field("start_line", pa.int32(), nullable=False),  # 1-based, inclusive
        pa.field("end_line", pa.int32(), nullable=False),
        pa.field("start_byte", pa.int64()),  # of the decoded text as UTF-8; null where the document was transformed
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
        pa.field("heading_path", _STRINGS),
        pa.field("section", pa.string()),
        pa.field("subsection", pa.string()),
        pa.field("has_code", pa.bool_(), nullable=False),
        pa.field("is_partial", pa.bool_(), nullable=False),
        pa.field("part_number", pa.int32()),
        pa.field("parent_chunk", pa.string()),
        pa.field("exports", _STRINGS),
        pa.field("fallback", pa.string()),  # why a code file was cut as text, else null
        pa.field("commit", pa.string()),
        pa.field("is_uncommitted", pa.bool_(), nullable=False),
        pa.field("summary", pa.string()),
    ]
)

NODES = pa.schema(
    [
        pa.field("node", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),  # file | symbol kind | section | module
        pa.field("name", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("path", pa.string()),
        pa.field("chunk_id", pa.string()),
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
    """The schema of an `embeddings` table whose vectors have `dimension` float16 values."""
    return pa.schema(
        [
            pa.field("chunk_id", pa.string(), nullable=False),
            pa.field("embed_text_hash", pa.string(), nullable=False),
            pa.field("model", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.field("item", pa.float16(), nullable=False), dimension), nullable=False),
        ]
    )
