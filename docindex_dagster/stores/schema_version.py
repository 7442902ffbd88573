"""The version of the stores' schemas: a hash of them, so that no change of a column or field is forgotten.

Stores of another version are built anew beside those that are published; see `takeover`.
"""

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import CHUNKS, NODES, TRIPLES, embeddings_schema
from docindex_dagster.stores import analysis, tantivy_index

SCHEMA_VERSION = digest_parts(
    *(str(schema) for schema in (CHUNKS, NODES, TRIPLES, embeddings_schema(2))),
    repr(tantivy_index.FIELDS),
    analysis.TERMS_VERSION,
    "rows 1",  # the form of the files of rows
)
"""Also that of LanceDB's table, which has the columns of chunks and their vectors."""
