"""What a file defines by its chunks alone."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docindex_dagster.callgraph.extract.file import symbol_ids
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import Definition


def definitions_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[Definition]:
    """The symbols of chunks: what there is of a file of which only another package's chunker knows some."""
    symbols = [(row["start_byte"] or 0, symbol) for row in rows for symbol in row["symbols"] or ()]
    ids = symbol_ids([symbol["qualified_name"] for _, symbol in symbols])
    for identifier, (byte, symbol) in zip(ids, symbols, strict=True):
        yield Definition(
            id=identifier,
            name=symbol["name"],
            kind=symbol["kind"],
            qualified=symbol["qualified_name"],
            parent=symbol["parent"] or "",
            returns=declared_type(symbol["returns"]) if symbol["returns"] else None,
            is_local=bool(symbol["is_local"]),
            line=symbol["start_line"],
            byte=byte,
        )
