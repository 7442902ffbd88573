"""Reference page of the tables' schemas."""

from collections.abc import Iterator

import pyarrow as pa

from docindex_dagster.core import schemas
from tests.reference.markdown import sentence, table

_ABOUT = """\
# Schemas

docindex stores its tables as Apache Arrow tables with these columns.
[Read the stores](../how-to/read-the-stores.md) shows how to open them.
"""
_TABLES = {
    "discovered_files": ("The files of a source, indexed or skipped.", schemas.DISCOVERED_FILES),
    "chunks": ("The chunks of all files, sorted by path and position.", schemas.CHUNKS),
    "commits": ("The commits of a git source, newest first.", schemas.COMMITS),
    "embeddings": ("The vectors of chunks.", schemas.embeddings_schema(256)),
    "nodes": ("The nodes of the knowledge graph.", schemas.NODES),
    "triples": ("The edges of the knowledge graph.", schemas.TRIPLES),
}
_STRUCTS = {
    "symbol": ("A definition.", schemas.SYMBOL),
    "changed file": ("A file that a commit changed.", schemas.CHANGED_FILE),
    "masked": ("A secret that no chunk contains.", schemas.MASKED),
}


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *_describe()])


def _describe() -> Iterator[str]:
    for name, (about, schema) in _TABLES.items():
        yield f"## {name}\n"
        yield f"{about}\n"
        yield table(("column", "type", "meaning"), (_column(field) for field in schema))
    for name, (about, struct) in _STRUCTS.items():
        yield f"## {name}\n"
        yield f"{about}\n"
        yield table(("field", "type"), ((f"`{field.name}`", _type(field.type)) for field in struct))


def _column(field: pa.Field) -> tuple[str, str, str]:
    return f"`{field.name}`", _type(field.type), sentence(schemas.DESCRIPTIONS.get(field.name, ""))


def _type(kind: pa.DataType) -> str:
    for name, (_, struct) in _STRUCTS.items():
        if kind.equals(struct):
            return f"[{name}](#{name.replace(' ', '-')})"
    if pa.types.is_list(kind):
        return f"list of {_type(kind.value_type)}"
    if pa.types.is_fixed_size_list(kind):
        return f"{kind.list_size} of {_type(kind.value_type)}"
    return str(kind)
