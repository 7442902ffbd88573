"""The Arrow schemas of the intermediate tables, which are the contract between the stages.

Rows are sorted: files by path, chunks by (path, chunk_index), so that equal content gives equal tables. What
the columns hold is described in `DESCRIPTIONS`.
"""

from collections.abc import Mapping

import pyarrow as pa

_STRINGS = pa.list_(pa.string())
_MOMENT = pa.timestamp("ms", tz="UTC")  # Parquet has no whole seconds

# How files without a known language are called where languages are named; their rows have none.
NO_LANGUAGE = "text"

# A commit becomes a chunk of this source_type; its path begins so, where no file can lie, since `.git` is not entered.
COMMIT = "commit"
COMMIT_PATH = ".git/commit/"
# So does the path of a message of a domain, in which no file lies.
MESSAGE_PATH = ".said/"

# One secret in a file: where, and by which rule.
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
        pa.field("row_hash", pa.string(), nullable=False),
        pa.field("parents", _STRINGS, nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("author_email", pa.string(), nullable=False),
        pa.field("authored_at", _MOMENT),
        pa.field("committed_at", _MOMENT),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("files", pa.list_(CHANGED_FILE), nullable=False),
        pa.field("file_count", pa.int32(), nullable=False),
        pa.field("insertions", pa.int64()),
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
        # Of files: hashes of their chunks and references, keys under which others find something in it, what they
        # find, and where it was looked itself.
        pa.field("made_from", pa.string()),
        pa.field("offers", _KEYS),
        pa.field("fingerprints", _KEYS),
        pa.field("depends", _KEYS),
        pa.field("problem", pa.string()),  # of a file: why only its definitions are there
        pa.field("unread", pa.string()),  # of a file of code: why its calls are not known
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


# Of every column that Dagster shows, by its name.
DESCRIPTIONS: Mapping[str, str] = {
    # Where a row comes from.
    "source": "key of the source: library/NAME, git/NAME or git/NAME@BRANCH",
    "source_kind": "library or git",
    "source_type": "doc, code, test or config; commit for a chunk that is one",
    "path": "relative to the source, with slashes; odd bytes are percent-escaped",
    "language": "of the file; null where none is known",
    "human_language": "in which a document is written, as ISO 639-1; null for code and where that is not sure",
    "content_hash": "of the file's bytes (of a commit, of its text); null where they were not read",
    "row_hash": "over every other column, so that a store sees which rows changed",
    "commit": "the row's own commit, or the last one that changed the file; null outside git",
    "is_uncommitted": "whether the file differs from its commit",
    # Files.
    "size": "bytes",
    "mtime_ns": "time of the last change, in nanoseconds since 1970",
    "git_blob": "git's id of the content; null outside git",
    "loader": "what turns the file into text",
    "encoding": "as which the bytes were read",
    "is_lossy": "whether bytes that the encoding does not have were replaced",
    "masked": "the secrets in it that no chunk holds; null where they were not looked for",
    "skipped_reason": "why the file is not indexed, as `rule: detail`; null where it is",
    # Commits.
    "parents": "the commits that it builds on",
    "author": "name",
    "author_email": "address",
    "authored_at": "when it was written, UTC; null where that is no date",
    "committed_at": "when it was put into the repository, UTC; null where that is no date",
    "subject": "the first line of a commit's message; of an edge, the node that it leaves",
    "message": "all of it; a very long one is cut",
    "files": "the first files that it changed, and how; none of a merge",
    "file_count": "how many files it changed",
    "insertions": "lines; null where they were not counted, as of merges and very large commits",
    "deletions": "lines; null where they were not counted, as of merges and very large commits",
    # Chunks.
    "chunk_id": "a hash of source, path and chunk_index; of an edge, the chunk that proves it",
    "chunk_index": "its position in the file, from 0",
    "total_chunks": "how many chunks the file has",
    "text": "what is shown and searched",
    "embed_text_hash": "of the text that is embedded; equal texts share a vector",
    "chunk_type": "what it is: function, method, class, section, message and so on",
    "start_line": "its first line, from 1",
    "end_line": "its last line, inclusive",
    "start_byte": "in the decoded text as UTF-8; null where the document was transformed",
    "end_byte": "in the decoded text as UTF-8, exclusive; null where the document was transformed",
    "char_count": "length of the text in characters",
    "token_count": "length of the text in tokens",
    "symbol_name": "of the definition that the chunk holds",
    "symbol_kind": "of the definition that the chunk holds",
    "qualified_name": "the symbol's name, after those of the scopes around it",
    "parent": "the symbol's scope",
    "signature": "the symbol's declaration",
    "parameters": "of the symbol",
    "return_type": "of the symbol",
    "decorators": "of the symbol",
    "docstring": "of the symbol",
    "symbols": "the definitions that begin in the chunk",
    "imports": "of the whole file",
    "exports": "of the whole file",
    "calls": "the names that the chunk calls, as dotted paths where they are written as such",
    "pointers": "links and anchors of a document that its text does not show, for the graph: one a line",
    "heading_path": "the headings above the chunk, the outermost first",
    "section": "the document's title, or its file's name; the subject of a commit",
    "subsection": "the heading of the second or third level above the chunk",
    "has_code": "whether it holds code",
    "is_partial": "whether it is a part of a section or definition that was too long",
    "part_number": "which part; null for a whole",
    "parent_chunk": "id of the chunk that it is a part or member of",
    "fallback": "why a code file was cut as text; null where it was parsed",
    "summary": "what a language model wrote of it, in a sentence or two; null where summaries are off or none is there",
    # References.
    "content": "what the file says, as JSON: definitions, imports, calls, assignments and so on",
    # Vectors.
    "model": "which made the vector",
    "vector": "of unit length, so that a dot product is the cosine",
    # Edges of the graph.
    "subject_type": "of the node that the edge leaves: file, section, module or the kind of a symbol",
    "predicate": "what the edge says: defines, contains, imports and so on",
    "object": "the node that the edge reaches",
    "object_type": "of the node that the edge reaches",
    "line": "where the source says so",
    "problem": "why a file has no edges but those to its definitions, or no structure; null where it has all",
    "unread": "why nothing is known of the calls in a file of code; null where they were read",
    "confidence": "1 where nothing was guessed",
    "resolution": "how the edge was found",
}
