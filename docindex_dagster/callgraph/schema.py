"""The table `references`: what is in it, and the version of that. How its rows hold it is in `table.py`."""

import pyarrow as pa

# Raise it with every change of what is extracted from the same file, or of how a row holds it.
REFERENCES_VERSION = "7"
# The key under which the metadata of a table hold what its rows were made with besides the bytes of the files.
MADE_WITH = b"docindex.references"

# Sorted by path. Of a file whose structure cannot be had, `content` is empty, and `problem` says why.
REFERENCES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("content", pa.large_binary(), nullable=False),
    ]
)
