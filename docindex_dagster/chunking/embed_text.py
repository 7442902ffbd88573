"""The text that is embedded: a chunk under a one-line header that says where it stands, made without a model."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import COMMIT_PATH, MESSAGE_PATH
from docindex_dagster.documents.attribute_lists import readable

_READ = ["text", "language", "has_code", "part_number"]
COLUMNS = ("path", "qualified_name", "symbol_kind", "heading_path", "summary", *_READ)
"""Those of chunks that decide what is embedded."""
# A whole hash would be half of what a short message is embedded as.
_MESSAGE = rf"^{re.escape(MESSAGE_PATH)}.*$"  # nor is the id of a message anything that it says
_COMMIT = rf"^{re.escape(COMMIT_PATH)}([0-9a-f]{{12}})[0-9a-f]+$"


def embed_texts(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """The text to embed of each chunk: `path qualified.name kind` or `path Heading > Subheading`, then the text.

    A commit's begins `commit 1a2b3c4d5e6f 2026-01-31 > Ada Lovelace`.

    Args:
        chunks: a table with the columns path, qualified_name, symbol_kind, heading_path, summary and text, and those
            that say of Markdown what of the text is attribute lists: language, has_code and part_number.

    Returns:
        Strings, one a row, none null.
    """
    place = pc.replace_substring_regex(chunks["path"], _COMMIT, r"commit \1")
    place = pc.replace_substring_regex(place, _MESSAGE, "")
    headings = pc.binary_join(chunks["heading_path"], " > ")
    header = pc.binary_join_element_wise(
        place, chunks["qualified_name"], chunks["symbol_kind"], headings, " ", null_handling="skip"
    )
    text = pc.binary_join_element_wise(header, chunks["summary"], _readable(chunks), "\n", null_handling="skip")
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _readable(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """The texts, those of Markdown without attribute lists."""
    texts = chunks["text"]
    if not pc.any(pc.match_substring(texts, "{"), min_count=0).as_py():
        return texts
    return pa.array([readable(row) for row in chunks.select(_READ).to_pylist()], pa.string())


def embed_text_hashes(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """The hash of each text to embed: the key under which vectors are reused."""
    return pa.array([digest(text.encode()) for text in embed_texts(chunks).to_pylist()], pa.string())
